"""The execution phase on simulated tasks: fresh episodes, no learning, no exploration."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Protocol

import gymnasium
import numpy as np
from jaxtyping import Float

from tacit.control.actor import Actor
from tacit.control.play import Episodes, as_function, play
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import simulator_of
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError

WORLDS = 50
FIRST_EXECUTED = 51
"""The paper trains on seeds 1 to 50 and executes from here on."""


class SimulatedOutcome(Protocol):
    """What evaluation must know of a result on a simulated task.

    Fields:
        constraint: has `confidence` and `feasibility(observations, actions, confidence)`.
        policy: from a batch of observations to actions without exploration.
        training: [m, 4] the last episodes of training: reward, feasible reward, violated, length.
        task: what it was learned on; None where it could not be made again.
    """

    @property
    def constraint(self) -> Any: ...  # noqa: D102

    @property
    def policy(self) -> Any: ...  # noqa: D102

    @property
    def training(self) -> np.ndarray: ...  # noqa: D102

    @property
    def task(self) -> SimulatedTask | None: ...  # noqa: D102


def execute(
    task: SimulatedTask, policy: Any, *, episodes: int, seed: int, threads: int | None = None
) -> Float[np.ndarray, "m 4"]:
    """Reward, feasible reward (0 if violated), violated and length of each episode."""
    played = executed(task, policy, episodes=episodes, seed=seed, threads=threads)
    return np.concatenate([summed(part) for part in played])


def executed(
    task: SimulatedTask, policy: Any, *, episodes: int, seed: int, threads: int | None = None
) -> Iterator[Episodes]:
    """So many episodes, some at a time.

    Episode i draws all its randomness from `seed + i`, whatever the number of threads. Episodes
    are played in up to 50 worlds at a time, the first of each world.
    """
    act = as_function(policy)
    number = min(episodes, WORLDS)
    with closing(task.worlds(number, threads=threads)) as worlds:
        for start in range(0, episodes, number):
            wanted = np.arange(min(number, episodes - start))
            yield play(worlds, act, seed=seed + start).chosen(wanted)


def summed(episodes: Episodes) -> Float[np.ndarray, "m 4"]:
    """One row for each episode, as in `SimulatedOutcome.training`; NaN where nobody knows."""
    rewards = episodes.rewards.sum(axis=1, dtype=np.float64)
    violated = episodes.violated.astype(np.float64)
    if not episodes.costs.shape[-1]:
        violated[:] = np.nan
    return np.stack([rewards, rewards * (1 - violated), violated, episodes.lengths], axis=1).astype(
        np.float64
    )


def simulated_task(
    result: SimulatedOutcome, task: TabularTask | SimulatedTask | None
) -> SimulatedTask:
    """The task to judge the result on: the one given, or its own; an error if it does not fit."""
    chosen = result.task if task is None else task
    if chosen is None:
        raise ArgumentError(
            "this result does not know its task (an environment of one's own cannot be saved): "
            "give the task, as in tacit.evaluate(result, task)"
        )
    if isinstance(chosen, TabularTask):
        chosen = simulator_of(chosen)
    if not isinstance(chosen, SimulatedTask):
        raise ArgumentError(
            "this result was learned on a simulated task and cannot be judged on a "
            f"{type(chosen).__name__}: give a task, as tacit.make returns one"
        )
    own = sizes_of_policy(result)
    if own is not None and own != (wanted := sizes(chosen)):
        raise ArgumentError(
            f"the policy takes {own[0]} observed numbers and gives {own[1]}, but {chosen.name} "
            f"shows {wanted[0]} and takes {wanted[1]}: give the task that it was learned on, or "
            "one like it"
        )
    return chosen


def sizes(task: SimulatedTask) -> tuple[int, str]:
    """How many numbers an observation has, and what actions are, in words."""
    space = task.action_space
    discrete = isinstance(space, gymnasium.spaces.Discrete)
    kind = f"1 of {space.n} actions" if discrete else f"{np.prod(space.shape)} continuous actions"
    return int(np.prod(task.observation_space.shape)), kind


def sizes_of_policy(result: SimulatedOutcome) -> tuple[int, str] | None:
    """The same as `sizes` of what the policy was made for; None where nobody knows."""
    policy = result.policy
    if isinstance(policy, Actor):
        outputs = len(policy.biases[-1])
        kind = f"1 of {outputs} actions" if policy.std is None else f"{outputs} continuous actions"
        return len(policy.weights[0]), kind
    return None if result.task is None else sizes(result.task)
