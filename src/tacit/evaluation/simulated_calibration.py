"""Trajectories of both kinds on simulated tasks, with the feasibility that a constraint states."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Literal

import gymnasium
import numpy as np
from jaxtyping import Bool, Float

from tacit.control.play import Act, Episodes, as_function, play
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.inference.result import Result

Aggregate = Literal["product", "mean", "worst"]

WORLDS = 64
MOST_BATCHES = 60
# Fewer of a kind leave an ECE whose noise is as large as what it is to measure.
FEWEST = 50
RANDOM_SHARES = (0.2, 0.5, 1.0)


def aggregated(
    feasibility: Float[np.ndarray, "m T"], lengths: np.ndarray, aggregate: Aggregate
) -> Float[np.ndarray, " m"]:
    """The feasibility of each trajectory, phi(tau), from that of its T steps, phi(s_t, a_t).

    - "product", the paper's: phi(tau) = prod_t phi(s_t, a_t). Over long episodes it vanishes for
      any soft belief (0.99 a step is 0.00004 over 1000), so that all trajectories are called
      infeasible and the ECE is near 0.5 whatever was learned.
    - "mean": the geometric mean, phi(tau) to the power of 1 / T; one step at 0 still makes 0.
    - "worst": the smallest phi of any step, as one step is enough to break a rule.
    """
    present = np.arange(feasibility.shape[1]) < lengths[:, None]
    stated = np.where(present, np.asarray(feasibility, np.float64), 1.0)
    if aggregate == "worst":
        return stated.min(axis=1)
    with np.errstate(divide="ignore"):
        total = np.log(stated).sum(axis=1)
    return np.exp(total / lengths if aggregate == "mean" else total)


def stated_and_true(
    result: Result,
    task: SimulatedTask,
    *,
    number: int,
    confidence: float | None,
    aggregate: Aggregate,
    behaviours: Sequence[Any],
    seed: int,
    threads: int | None,
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Stated feasibility and true label of `number` trajectories of each kind, or of fewer.

    Behaviours take turns until there are enough of both kinds. From the second turn on, only those
    are played that have shown a kind of which there are too few, if any has.
    """
    act = as_function(result.policy)
    # Every behaviour with the share of its actions that are random.
    kinds = [(act, share) for share in (0.0, *RANDOM_SHARES)]
    kinds += [(as_function(behaviour), 0.0) for behaviour in behaviours]
    found = [{True: np.zeros(0), False: np.zeros(0)} for _ in kinds]
    for turn, episodes in batches(task, kinds, found, number, seed, threads):
        steps = result.constraint.feasibility(
            episodes.observations[:, :-1], episodes.actions, confidence
        )
        if result.constraint.over_time:
            # The feasibility at the last step is that of the whole trajectory already.
            stated = steps[np.arange(len(steps)), episodes.lengths - 1]
        else:
            stated = aggregated(steps, episodes.lengths, aggregate)
        for label in (True, False):
            more = stated[episodes.violated != label]
            found[turn][label] = np.concatenate([found[turn][label], more])
    enough = balanced_number(task, found, number)
    parts = [evenly([own[label] for own in found], enough) for label in (True, False)]
    return np.concatenate(parts), np.arange(2 * enough) < enough


def batches(
    task: SimulatedTask,
    kinds: Sequence[tuple[Act, float]],
    found: list[dict[bool, np.ndarray]],
    number: int,
    seed: int,
    threads: int | None,
) -> Iterator[tuple[int, Episodes]]:
    """(which behaviour, 64 episodes of it), until `found` is enough or 60 batches were played."""
    batch = 0
    with closing(task.worlds(WORLDS, threads=threads)) as worlds:
        while batch < MOST_BATCHES:
            have = totals(found)
            short = [label for label in (True, False) if have[label] < number]
            if not short:
                return
            useful = [
                turn for turn, own in enumerate(found) if any(len(own[label]) for label in short)
            ]
            turns = useful if batch and useful else list(range(len(kinds)))
            for turn in turns[: MOST_BATCHES - batch]:
                act, share = kinds[turn]
                generator = np.random.default_rng([seed, batch])
                noisy = mixed(act, share, task.action_space, generator)
                yield turn, play(worlds, noisy, seed=seed + WORLDS * batch)
                batch += 1


def mixed(act: Act, share: float, space: gymnasium.Space, generator: np.random.Generator) -> Act:
    """A policy that replaces a share of its actions by random ones from the whole space."""
    if share == 0:
        return act

    def choose(observations: np.ndarray) -> np.ndarray:
        drawn = random_actions(space, len(observations), generator)
        replaced = generator.random(len(observations)) < share
        kept = np.asarray(act(observations)).reshape(drawn.shape)
        return np.where(replaced.reshape(-1, *(1,) * (drawn.ndim - 1)), drawn, kept)

    return choose


def random_actions(
    space: gymnasium.Space, number: int, generator: np.random.Generator
) -> np.ndarray:
    """Actions drawn uniformly from the space; within -1 and 1 where a box has no bounds."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return generator.integers(space.n, size=number)
    assert isinstance(space, gymnasium.spaces.Box)
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    low, high = np.where(bounded, space.low, -1), np.where(bounded, space.high, 1)
    return generator.uniform(low, high, (number, *space.shape)).astype(space.dtype)


def totals(found: list[dict[bool, np.ndarray]]) -> dict[bool, int]:
    """How many of each kind all behaviours have shown."""
    return {label: sum(len(own[label]) for own in found) for label in (True, False)}


def balanced_number(task: SimulatedTask, found: list[dict[bool, np.ndarray]], number: int) -> int:
    """How many of each kind to use: a warning if fewer than wanted, an error if far too few."""
    have = totals(found)
    if min(have.values()) >= number:
        return number
    label = min(have, key=lambda kind: have[kind])
    what = "follow the rule" if label else "break the rule"
    told = (
        f"{shortage(task.name, have, number)} in {MOST_BATCHES} batches of {WORLDS}; "
        f"give `behaviours`: a list of policies that {what} more often"
    )
    if have[label] < min(FEWEST, number):
        raise TaskError(told)
    warnings.warn(f"{told}. The ECE is of {have[label]} of each kind.", stacklevel=4)
    return have[label]


def shortage(name: str, have: dict[bool, int], number: int) -> str:
    """The sentence that says which kind of trajectory could not be found."""
    label = min(have, key=lambda kind: have[kind])
    kind = "feasible" if label else "infeasible"
    return f"only {have[label]} of {number} {kind} trajectories were found on {name}"


def evenly(parts: Sequence[np.ndarray], number: int) -> np.ndarray:
    """`number` values, as equally from all parts as their sizes allow, the first of each."""
    chosen: list[np.ndarray] = []
    left = number
    for place, part in enumerate(sorted(parts, key=len)):
        share = min(len(part), -(-left // (len(parts) - place)))
        chosen.append(part[:share])
        left -= share
    return np.concatenate(chosen)
