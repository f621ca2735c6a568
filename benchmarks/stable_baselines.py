"""Agents of Stable-Baselines3 trained with and without a learned cost in their reward.

    python benchmarks/stable_baselines.py [--result FOLDER --task NAME] [--steps 60000]

Without a result it learns the rule of GridWorld from 50 demonstrations first. Start it with tacit's
own Python: it moves to `.venv-peers`, and lends it what tacit needs.

The learned cost is added up over an episode; violation is the share of episodes in which the true
rule, which no agent is told, is broken.
"""

# pyright: reportMissingImports=false

import argparse
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SETTINGS = {"n_steps": 1024, "batch_size": 128, "ent_coef": 0.01, "learning_rate": 1e-3}
EPISODES = 200
LENT = "LIBRARIES_OF_TACIT"


class Score(NamedTuple):
    """Means over episodes."""

    learned_cost: float
    violation: float
    reward: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--result", help="a folder that tacit's Result.save wrote")
    parser.add_argument("--task", default="GridWorld", help="what the result was learned on")
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--penalty", type=float, default=5.0, help="reward lost per unit of cost")
    parser.add_argument("--confidence", type=float, help="to read the constraint at")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if importlib.util.find_spec("stable_baselines3") is None:
        return move_to_the_peers()
    compare(given)
    return 0


def move_to_the_peers() -> int:
    """Run this script with the Python of the peers, and lend it our libraries."""
    import peers

    try:
        peers.prepare_peers()
    except peers.PeerError as error:
        print(f"no Stable-Baselines3: {error}")
        return 1
    lent = os.pathsep.join([str(HERE.parent / "src"), sysconfig.get_paths()["purelib"]])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", LENT: lent}
    return subprocess.run([str(peers.PYTHON), *sys.argv], env=environment).returncode


def compare(given: argparse.Namespace) -> None:
    # Last, so that what the peers have themselves comes first.
    sys.path += [folder for folder in os.environ.get(LENT, "").split(os.pathsep) if folder]
    import torch

    torch.set_num_threads(1)
    constraint = learned_constraint(given)
    print(
        f"{given.task}, confidence {given.confidence or constraint.confidence}, seed {given.seed}"
    )
    print(f"{'agent':<22}{'steps':>8}{'learned cost':>14}{'violation':>11}{'reward':>10}")
    for name, penalty in (("PPO", 0.0), ("PPO with learned cost", given.penalty)):
        for steps, score in scores(given, constraint, penalty):
            print(
                f"{name:<22}{steps:>8}{score.learned_cost:>14.3f}{score.violation:>11.1%}"
                f"{score.reward:>10.2f}",
                flush=True,
            )


def learned_constraint(given: argparse.Namespace) -> Any:
    """The constraint of the result, or a new one of GridWorld."""
    import tacit

    if given.result:
        return tacit.load(given.result).constraint
    task = tacit.make("GridWorld", layout="open")
    demonstrations = tacit.collect(tacit.train_expert(task), 50, seed=given.seed + 1)
    return tacit.infer(task, demonstrations).constraint


def scores(given: argparse.Namespace, constraint: Any, penalty: float) -> list[tuple[int, Score]]:
    """Before and after training against `penalty`; scored without one."""
    from stable_baselines3 import PPO

    training, testing = (wrapped(given, constraint, price) for price in (penalty, 0.0))
    agent = PPO("MlpPolicy", training, **SETTINGS, seed=given.seed, device="cpu")
    before = score(agent, testing, given.seed)
    agent.learn(given.steps)
    return [(0, before), (agent.num_timesteps, score(agent, testing, given.seed))]


def wrapped(given: argparse.Namespace, constraint: Any, penalty: float) -> Any:
    """The environment with the learned cost."""
    import gymnasium

    from tacit.use.cost_wrapper import CostWrapper

    env = gymnasium.make(f"tacit/{given.task}-v0")
    return CostWrapper(env, constraint, confidence=given.confidence, penalty=penalty)


def score(agent: Any, env: Any, seed: int) -> Score:
    """Episodes played as the agent plays while it trains."""
    import numpy as np
    import torch

    torch.manual_seed(seed)
    totals = np.zeros((EPISODES, 3))
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=1_000_000 + episode)
        ended = False
        while not ended:
            action, _ = agent.predict(observation)
            observation, reward, terminated, truncated, info = env.step(action)
            totals[episode] += info["cost"], info["true_cost"] > 0, reward
            ended = terminated or truncated
    totals[:, 1] = totals[:, 1] > 0
    return Score(*totals.mean(axis=0))


if __name__ == "__main__":
    sys.exit(main())
