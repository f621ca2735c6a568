"""The peers' side of `training.py`; runs in `.venv-peers`, which has what is imported here.

    python benchmarks/peer_training.py {sb3,sbx,torch} --batch 16384

After a warm-up it prints one JSON line, and then one with the seconds of a block of work for every
line it reads: a whole update of PPO on Gymnasium's HalfCheetah-v5 (rollout and 10 epochs), or for
"torch" one epoch of gradient steps.
"""

# pyright: reportMissingImports=false

import argparse
import functools
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import gymnasium
import numpy as np
import torch

WORLDS, MINIBATCH, EPOCHS, HIDDEN = 8, 64, 10, (64, 64, 64)
OBSERVED, ACTED, SIGNALS = 18, 6, 2


def make_worlds(vector: str | None) -> tuple[Any, str]:
    """Eight half-cheetahs, in this process or in one each; None: whichever is faster."""
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

    makers = [functools.partial(gymnasium.make, "HalfCheetah-v5")] * WORLDS
    kinds = [
        kind for kind in (DummyVecEnv, SubprocVecEnv) if vector is None or kind.__name__ == vector
    ]
    choices = [kind(makers) for kind in kinds]
    times = [[] for _ in choices]
    for _ in range(9):
        for worlds, record in zip(choices, times, strict=True):
            record.append(seconds_of_steps(worlds))
    best = int(np.argmin(np.median(times, axis=1)))
    for place, worlds in enumerate(choices):
        if place != best:
            worlds.close()
    return VecNormalize(choices[best]), kinds[best].__name__


def seconds_of_steps(worlds: Any) -> float:
    """Time of thirty steps of all worlds."""
    worlds.reset()
    actions = np.zeros((WORLDS, ACTED), np.float32)
    begin = time.perf_counter()
    for _ in range(30):
        worlds.step(actions)
    return time.perf_counter() - begin


def sb3(batch: int, vector: str | None) -> tuple[Callable[[], Any], str]:
    """Updates of Stable-Baselines3's PPO."""
    from stable_baselines3 import PPO

    worlds, kind = make_worlds(vector)
    networks = {"net_arch": list(HIDDEN), "activation_fn": torch.nn.Tanh}
    model = PPO("MlpPolicy", worlds, **shared_settings(batch), device="cpu", policy_kwargs=networks)
    return functools.partial(model.learn, batch, reset_num_timesteps=False), kind


def sbx(batch: int, vector: str | None) -> tuple[Callable[[], Any], str]:
    """Updates of SBX's PPO."""
    import flax.linen
    from sbx import PPO

    worlds, kind = make_worlds(vector)
    networks = {"net_arch": list(HIDDEN), "activation_fn": flax.linen.tanh}
    model = PPO("MlpPolicy", worlds, **shared_settings(batch), policy_kwargs=networks)
    return functools.partial(model.learn, batch, reset_num_timesteps=False), kind


def shared_settings(batch: int) -> dict[str, Any]:
    """What both are told; neither stops early unless it is given a target KL."""
    return {"n_steps": batch // WORLDS, "batch_size": MINIBATCH, "n_epochs": EPOCHS, "seed": 0}


def gradient_steps(batch: int, vector: str | None) -> tuple[Callable[[], Any], str]:
    """One epoch of our loss, `tacit.control.ppo`, written in torch and run eagerly."""
    del vector
    torch.manual_seed(0)
    policy, critics = network(ACTED), [network(1) for _ in range(SIGNALS)]
    log_std = torch.nn.Parameter(torch.zeros(ACTED))
    of_policy = [*policy.parameters(), log_std]
    of_critics = [weight for critic in critics for weight in critic.parameters()]
    adams = [torch.optim.Adam(group, 3e-4, eps=1e-5) for group in (of_policy, of_critics)]
    data = [torch.randn(batch, size) for size in (OBSERVED, ACTED, SIGNALS, SIGNALS)]
    price = torch.ones(SIGNALS - 1)

    def log_probability(observations: Any, actions: Any) -> Any:
        spread = log_std.clamp(min=math.log(0.01))
        distance = (actions - policy(observations)) * torch.exp(-spread)
        return -(0.5 * distance**2 + spread + 0.5 * math.log(2 * math.pi)).sum(-1)

    with torch.no_grad():
        data.append(log_probability(data[0], data[1]))

    def gradient_step(rows: Any) -> None:
        observations, actions, gains, returns, old = (field[rows] for field in data)
        centred = gains - gains.mean(0)
        reward = centred[:, 0] / (centred[:, 0].std() + 1e-8)
        advantage = (reward - centred[:, 1:] @ price) / (1 + price.sum())
        ratio = torch.exp(log_probability(observations, actions) - old)
        gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        values = torch.cat([critic(observations) for critic in critics], 1)
        loss = (0.5 * (values - returns) ** 2).mean(0).sum() - gain
        for adam in adams:
            adam.zero_grad()
        loss.backward()
        for adam, group in zip(adams, (of_policy, of_critics), strict=True):
            torch.nn.utils.clip_grad_norm_(group, 0.5)
            adam.step()

    def epoch() -> None:
        for rows in torch.randperm(batch).split(MINIBATCH):
            gradient_step(rows)

    return epoch, "eager"


def network(outputs: int) -> Any:
    """A perceptron of tanh units."""
    layers = []
    for above, below in zip((OBSERVED, *HIDDEN[:-1]), HIDDEN, strict=True):
        layers += [torch.nn.Linear(above, below), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], outputs))


PEERS = {"sb3": sb3, "sbx": sbx, "torch": gradient_steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--batch", type=int, default=WORLDS * 2048, help="steps of a rollout")
    parser.add_argument("--vector", help="how worlds are stepped, e.g. DummyVecEnv")
    given = parser.parse_args()
    # Networks this small run faster on one thread than on two (2.4k against 1.9k steps/s in SB3).
    torch.set_num_threads(1)
    work, detail = PEERS[given.peer](given.batch, given.vector)
    work()
    print(json.dumps({"ready": given.peer, "detail": detail}), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        work()
        print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)


if __name__ == "__main__":
    main()
