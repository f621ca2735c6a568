"""Experts: the best policies under the true rule, and the demonstrations that they give."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.argument_checks import check_count, check_seed
from tacit.control import simulated_expert, tabular_expert
from tacit.control.play import as_function
from tacit.control.presets import expert_preset
from tacit.control.settings import PPO
from tacit.control.table_policy import TablePolicy
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, TaskError
from tacit.runs.settings_file import installed_versions

ACTOR_FILE = "actor.safetensors"
LARGEST_SEED = 2**63


@dataclass(frozen=True, eq=False)
class Expert:
    """A policy for a task, with what is known about it.

    `train_expert` makes one. A policy of your own becomes an expert as `Expert(task, policy)`,
    where `policy` is a function from a batch of observations [n, o] to a batch of actions, or an
    agent of Stable-Baselines3; on a tabular task, an array [H, S, A] of action probabilities.

    Fields:
        task: the task that it acts in.
        policy: on a tabular task a `TablePolicy`; on a simulated one an `Actor`, or what you gave.
        violation: probability that an episode violates the true rule; exact on tabular tasks, over
            128 fresh episodes on others; this and the following are NaN where not measured.
        reward: expected reward of an episode; exact or measured as the violation is.
        feasible_reward: the same with violating episodes counted as 0; NaN on tabular tasks.
        multiplier: the price of a violated step at the end of training, added up over constraints.
        facts: JSON-able facts about its training: settings, seed, steps.
    """

    task: TabularTask | SimulatedTask
    policy: Any
    violation: float = math.nan
    reward: float = math.nan
    feasible_reward: float = math.nan
    multiplier: float = math.nan
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.task, TabularTask):
            return
        policy = self.policy
        policy = policy if isinstance(policy, TablePolicy) else TablePolicy(policy)
        wanted = self.task.horizon, self.task.number_of_states, self.task.number_of_actions
        if policy.table.shape != wanted:
            raise ArgumentError(
                f"a policy of the shape {list(policy.table.shape)} does not fit {self.task.name}, "
                f"which has {list(wanted)} steps, states and actions"
            )
        object.__setattr__(self, "policy", policy)


def train_expert(
    task: TabularTask | SimulatedTask,
    *,
    seed: int = 0,
    settings: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: Callable[[dict[str, float]], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Expert:
    """Find the best policy under the true cost (equation 4).

    >>> round(train_expert(tacit.make("Chain", length=9, limit=-2, horizon=10)).violation, 3)
    0.018

    On a table it is exact. On a simulator PPO-Lagrange trains it; of the best one of 100 episodes
    of training and the last, the one that is better without exploration is kept.

    Arguments:
        task: from `tacit.make`.
        seed: of everything random.
        settings: of PPO; None for the preset of the task's experts.
        folder: where to keep the run and the policy; the same call again continues the run.
        threads: for the simulator, None for all cores.
        progress: called with the numbers of every update.
        notice: called with a sentence about what was found in the folder.
    """
    check_seed(seed)
    if isinstance(task, TabularTask):
        policy, exact = tabular_expert.optimal_policy(task)
        violation, reward, multiplier = exact["violation"], exact["reward"], exact["multiplier"]
        return Expert(task, policy, violation, reward, multiplier=multiplier)
    check_training(seed, settings)
    check_rule(task)
    kept = {"folder": folder, "threads": threads, "progress": progress, "notice": notice}
    trainer = simulated_expert.train(task, settings or expert_preset(task), seed=seed, **kept)
    actor, measured, facts = simulated_expert.best_of(trainer, threads)
    if folder is not None:
        actor.save(Path(folder) / ACTOR_FILE, facts)
    price = float(np.asarray(trainer.now.learner.multiplier.price).sum())
    return Expert(
        task,
        actor,
        violation=measured["violation"],
        reward=measured["reward"],
        feasible_reward=measured["feasible_reward"],
        multiplier=price,
        facts=facts,
    )


def collect(
    expert: Expert,
    number: int,
    *,
    seed: int,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trajectories:
    """Roll the expert out until `number` episodes are feasible; the others are discarded.

    >>> demonstrations = collect(train_expert(tacit.make("Chain")), 20, seed=1)
    >>> len(demonstrations), demonstrations.provenance["discarded"]
    (20, 0)

    Arguments:
        expert: from `train_expert`, or made of a policy of your own.
        number: how many episodes to keep.
        seed: of the worlds and of random actions.
        threads: for the simulator, None for all cores.
        progress: called with the number of feasible episodes so far.
    """
    check_request(number, seed)
    task = expert.task
    if isinstance(task, TabularTask):
        episodes, discarded = tabular_expert.feasible_episodes(
            task, expert.policy.table, number, seed=seed, progress=progress
        )
    else:
        episodes, discarded = simulated_expert.feasible_episodes(
            task, as_function(expert.policy), number, seed=seed, threads=threads, progress=progress
        )
    provenance = {
        "task": task.name,
        "seed": seed,
        "feasible": number,
        "discarded": discarded,
        "expert_violation": None if math.isnan(expert.violation) else expert.violation,
        "expert_reward": None if math.isnan(expert.reward) else expert.reward,
        "versions": installed_versions(),
    }
    if isinstance(task, SimulatedTask):
        provenance["options"] = dict(task.options)
        provenance["expert"] = dict(expert.facts)
    return Trajectories(**episodes, provenance=provenance)


def check_request(number: int, seed: int) -> None:
    """Raise an error unless `number` and `seed` can be used."""
    check_count("number", number)
    check_seed(seed)


def check_rule(task: SimulatedTask) -> None:
    """Raise an error where the task has no rule that an expert could obey."""
    if not task.constraints:
        raise TaskError(
            f"nobody knows the rule of {task.name} (cost='unknown'), so that no expert can be "
            "trained on it: bring demonstrations, or a policy as Expert(task, policy)"
        )


def check_training(seed: int, settings: PPO | None) -> None:
    """Raise an error unless JAX can use the seed, and `settings` is a `PPO` or None."""
    if seed >= LARGEST_SEED:
        raise ArgumentError(f"seed must be below 2**63, not {seed!r}")
    if settings is not None and not isinstance(settings, PPO):
        raise ArgumentError(f"settings must be a tacit.PPO, not {type(settings).__name__}")
