"""Time training: against SB3 and SBX, against the physics limit, and a gradient step against torch.

    python benchmarks/training.py [--quick] [--no-peers]

prints, each as a ratio taken in the same run: PPO-Lagrange (with the cost critic that the others
lack) over the PPO of Stable-Baselines3 and SBX on half-cheetah, with equal rollouts, minibatches,
epochs and networks; torch's time for one gradient step over ours; and training with the shipped
settings over bare `mujoco.batch`. The peers live in `.venv-peers`, which the first run makes;
without it the first two tables are left out. Exits with 1 if a target is missed.
"""

import argparse
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from bare_physics import NAMES, BarePhysics, random_actions
from peers import Peer, PeerError, prepare_peers
from timing import Row, Target, describe_machine, in_turns, rate, ratio, show, timed, verdict

import tacit
from tacit.control import learner as learning
from tacit.control.ppo import Batch
from tacit.control.presets import preset
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer, critic_pass, policy_pass
from tacit.environments.registry import Simulated

CHEETAH: Simulated = "BlockedHalfCheetah"
PEERS = {"sb3": ("SB3", Target(5.0)), "sbx": ("SBX", Target(3.5))}
LIMIT_TARGETS: dict[str, Target] = {CHEETAH: Target(0.35)}
BATCH, QUICK_BATCH = 8 * 2048, 512
# Both sides work for about as long at a time: a busy machine favours whoever has just slept. Torch
# is sent one epoch, the bare physics as many steps as take a good part of an update.
EPOCHS_OF_A_BLOCK, BARE_STEPS = 8, 256
# Nothing may stop the epochs early: both sides shall do the same work.
PLAIN = PPO(minibatch=64, epochs=10, hidden=(64, 64, 64), target_kl=None)


def warmed(name: Simulated, settings: PPO) -> Trainer:
    """A trainer after two updates, so that everything is compiled."""
    trainer = Trainer(tacit.make(name, noise_std=0.2), settings, seed=0)
    for _ in range(2):
        trainer.advance()
    return trainer


def against_peers(quick: bool) -> bool:
    """Whole training, ours and theirs in turns."""
    batch = QUICK_BATCH if quick else BATCH
    with ExitStack() as stack:
        sb3 = stack.enter_context(Peer("sb3", f"--batch={batch}"))
        vector = sb3.answer()["detail"]
        sbx = stack.enter_context(Peer("sbx", f"--batch={batch}", f"--vector={vector}"))
        sbx.answer()
        trainers = {
            f"{worlds} x {batch // worlds}": warmed(
                CHEETAH, replace(PLAIN, worlds=worlds, rollout=batch // worlds)
            )
            for worlds in (8, 64)
        }
        theirs = {"sb3": sb3.seconds, "sbx": sbx.seconds}
        ours = {
            shape: lambda trainer=trainer: timed(trainer.advance)
            for shape, trainer in trainers.items()
        }
        in_turns(theirs, rounds=1)
        seconds = in_turns({**ours, **theirs}, rounds=2 if quick else 4, seconds=50.0)
    rows = []
    for name, (title, target) in PEERS.items():
        for shape, trainer in trainers.items():
            speed = ratio(seconds[name], seconds[shape])
            cells = (title, shape, rate(batch, seconds[shape]), rate(batch, seconds[name]))
            rows.append(Row(cells, str(speed), speed.middle, target))
            trainer.close()
    return show(
        f"Training on half-cheetah: ours / peer with 8 x {batch // 8}, {vector}",
        ("peer", "our worlds", "steps/s", "peer", "ratio"),
        rows,
    )


def random_batch(size: int, observed: int, acted: int) -> Batch:
    """Steps that look like any others to the clock."""
    draw = np.random.default_rng(0).standard_normal
    shapes = ((size, observed), (size, acted), (size,), (size, 2), (size, 2))
    return Batch(*(jnp.asarray(draw(shape), jnp.float32) for shape in shapes))


def gradient_step(quick: bool) -> Row:
    """Policy, reward critic and cost critic, on two threads as in training; torch does the same."""
    size = QUICK_BATCH if quick else BATCH
    settings = replace(PLAIN, worlds=64, rollout=size // 64, epochs=EPOCHS_OF_A_BLOCK)
    task = tacit.make(CHEETAH)
    observed, acted = task.observation_space.shape[0], task.action_space.shape
    assert acted is not None
    key = jax.random.key(0)
    learner = learning.start(observed, task.action_space, 1, task.horizon, settings, key=key)
    batch = random_batch(size, observed, acted[0])

    def epochs() -> None:
        pace = settings.rate(learner.updates)
        critics = helper.submit(
            critic_pass, learner.critics, learner.critic_optimiser, batch, pace, settings, key=key
        )
        policy = policy_pass(
            learner.policy,
            learner.policy_optimiser,
            batch,
            learner.multiplier.price,
            pace,
            settings,
            key=key,
        )
        jax.block_until_ready((policy, critics.result()))

    with ThreadPoolExecutor(max_workers=1) as helper, Peer("torch", f"--batch={size}") as torch:
        torch.answer()
        epochs()
        blocks = {"ours": lambda: timed(epochs) / EPOCHS_OF_A_BLOCK, "torch": torch.seconds}
        seconds = in_turns(blocks, rounds=2 if quick else 12, seconds=15.0)
    speed = ratio(seconds["torch"], seconds["ours"])
    each = (1e3 * np.median(seconds[name]) / (size // 64) for name in ("ours", "torch"))
    return Row(("minibatch 64", *(f"{one:.2f} ms" for one in each)), str(speed), speed.middle)


def against_limit(name: Simulated, quick: bool) -> Row:
    """Training with the settings for a learned rule over the physics alone."""
    settings = preset(tacit.make(name))
    if quick:
        rollout = settings.minibatch // math.gcd(settings.minibatch, settings.worlds)
        settings = replace(settings, rollout=rollout, epochs=2)
    trainer = warmed(name, settings)
    bare = BarePhysics(trainer.worlds, random_actions(trainer.worlds, 2 if quick else BARE_STEPS))
    bare.seconds()
    seconds = in_turns(
        {"ours": lambda: timed(trainer.advance), "bare": bare.seconds},
        rounds=2 if quick else 10,
        seconds=8.0,
    )
    trainer.close()
    share = ratio(settings.batch / seconds["ours"], bare.steps / seconds["bare"])
    return Row(
        (name, rate(settings.batch, seconds["ours"]), rate(bare.steps, seconds["bare"])),
        str(share),
        share.middle,
        LIMIT_TARGETS.get(name),
    )


def with_peers(quick: bool) -> bool:
    """The tables that need the peers, unless they cannot be had."""
    try:
        prepare_peers()
        met = against_peers(quick)
        show(
            "Gradient step, three networks of 3 x 64: torch's time / ours",
            ("", "ours", "torch eager", "ratio"),
            [gradient_step(quick)],
        )
    except PeerError as error:
        print(f"no comparison with other libraries: {error}")
        return True
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    parser.add_argument("--no-peers", action="store_true", help="leave out other libraries")
    given = parser.parse_args()
    describe_machine()
    met = given.no_peers or with_peers(given.quick)
    met &= show(
        "Training with the shipped settings / bare mujoco.batch",
        ("task", "steps/s", "bare", "ratio"),
        [against_limit(name, given.quick) for name in (NAMES[:1] if given.quick else NAMES)],
    )
    return verdict(met, quick=given.quick)


if __name__ == "__main__":
    sys.exit(main())
