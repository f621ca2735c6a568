"""Time the worlds: a step of ours against bare MuJoCo, and a rollout as worlds are added.

    python benchmarks/worlds.py [--quick]

prints, for 64 worlds of each MuJoCo task with noise 0.2, our steps per second as a ratio to
`mujoco.batch` with the same model, threads and actions in the same run; and, on half-cheetah, the
time of one environment step of a rollout with 8 to 256 worlds as a ratio to that with 64. Exits
with 1 if a target is missed.
"""

import argparse
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from bare_physics import NAMES, BarePhysics, random_actions
from timing import Row, Target, describe_machine, in_turns, rate, ratio, show, timed, verdict

import tacit
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer
from tacit.environments.mujoco_worlds import STEPS_OF_A_BLOCK
from tacit.environments.registry import Simulated

STEP_TARGETS: dict[str, Target] = dict.fromkeys(NAMES[:3], Target(0.8))
NUMBERS = (8, 16, 32, 64, 128, 256)
STEPS_OF_A_TURN = 32


def environment_step(name: Simulated, quick: bool) -> Row:
    """Our step against the bare one."""
    worlds = tacit.make(name, noise_std=0.2).worlds(64)
    worlds.reset(0)
    actions = random_actions(worlds, 2 if quick else STEPS_OF_A_TURN)
    bare = BarePhysics(worlds, actions)

    def step_all() -> None:
        for action in actions:
            worlds.step(action)

    step_all()
    bare.simulate()
    # Noise is drawn in blocks: with this many turns, every round pays for exactly one.
    turns = 1 if quick else STEPS_OF_A_BLOCK // STEPS_OF_A_TURN
    seconds = in_turns(
        {"ours": lambda: timed(step_all), "bare": bare.seconds},
        rounds=2 if quick else 15,
        turns=turns,
        seconds=9.0,
    )
    work = turns * bare.steps
    share = ratio(seconds["bare"], seconds["ours"])
    worlds.close()
    return Row(
        (name, rate(work, seconds["ours"]), rate(work, seconds["bare"])),
        str(share),
        share.middle,
        STEP_TARGETS.get(name),
    )


def growth(quick: bool) -> list[Row]:
    """Rollouts with ever more worlds."""
    task = tacit.make("BlockedHalfCheetah", noise_std=0.2)
    length = 8 if quick else STEPS_OF_A_BLOCK
    trainers = {
        number: Trainer(task, PPO(worlds=number, rollout=length), seed=0)
        for number in ((8, 64) if quick else NUMBERS)
    }
    blocks = {
        str(number): lambda trainer=trainer: timed(trainer.roll_out)
        for number, trainer in trainers.items()
    }
    in_turns(blocks, rounds=1)
    seconds = in_turns(blocks, rounds=2 if quick else 10, seconds=25.0)
    each = {number: seconds[str(number)] / (number * length) for number in trainers}
    rows = []
    for number, trainer in trainers.items():
        trainer.close()
        relative = ratio(each[number], each[64])
        rows.append(Row((str(number), rate(1, each[number])), str(relative), relative.middle))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    quick = parser.parse_args().quick
    describe_machine()
    met = show(
        "Environment step, 64 worlds, noise 0.2: ours / bare mujoco.batch",
        ("task", "steps/s", "bare", "ratio"),
        [environment_step(name, quick) for name in (NAMES[:2] if quick else NAMES)],
    )
    show(
        "Rollout, half-cheetah: time of one environment step / that with 64 worlds",
        ("worlds", "steps/s", "ratio"),
        growth(quick),
    )
    return verdict(met, quick=quick)


if __name__ == "__main__":
    sys.exit(main())
