"""Objective 2 of the paper where policies learn by acting: one whole inference, then smaller sets.

The whole run finds out where policies are tempted, which does not depend on the experts. For a
subset of them the policy begins as an imitation of *these* experts, counts *these* experts, and
learns for an eighth of the steps. Two sizes in three random orders make six eighths, so that all
takes less than two runs.
"""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.evaluation.evaluate import FIRST_EXECUTED, execute
from tacit.inference.constraint import Constraint
from tacit.inference.experts import ExpertSteps, as_simulated
from tacit.inference.loop import Inference
from tacit.inference.method import Method
from tacit.runs.resumable_run import ProgressCallback
from tacit.sufficiency.answer import Answer, History, recommend, words
from tacit.sufficiency.learning_curve import LearningCurve

ORDERS = 3
SHARE = 1 / 8
EPISODES = 50


def decide_by_acting(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    history: History,
    *,
    method: Method,
    confidence: float,
    wanted: float,
    seed: int,
    folder: Path | str | None,
    **chosen: Any,
) -> Answer:
    """The answer for the demonstrations at hand; `chosen` is for `simulated_curve`."""
    number = len(demonstrations)
    curve, constraint = simulated_curve(
        task,
        demonstrations,
        method=method,
        confidence=confidence,
        seed=seed,
        # Each number of demonstrations is a run of its own.
        folder=None if folder is None else Path(folder) / str(number),
        **chosen,
    )
    value = curve.value
    enough = value.low >= wanted
    recommended, interval = (number, None) if enough else recommend(curve, wanted, seed)
    reason = words(value, wanted, enough, recommended, interval)
    if not enough and value.high >= wanted:
        reason = f"not clear, so {reason} (interval {value.low:.4g} to {value.high:.4g})"
    return Answer(
        enough=bool(enough),
        value=value,
        wanted=float(wanted),
        confidence=float(confidence),
        number=number,
        constraint=constraint,
        recommended_number=recommended,
        recommended_interval=interval,
        largest_confidence=None,
        curve=curve,
        reason=reason,
        history=(*history, (number, value.value)),
        demonstrations=demonstrations,
    )


def simulated_curve(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    *,
    method: Method,
    confidence: float,
    seed: int,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[LearningCurve, Constraint]:
    """The reward of policies learned from nested subsets; and the constraint from all.

    Values are means over 50 fresh episodes without exploration.
    """
    generator = np.random.default_rng([seed, len(demonstrations)])
    orders = [generator.permutation(len(demonstrations)) for _ in range(ORDERS)]
    sizes = simulated_sizes(len(demonstrations))
    values = np.empty((len(sizes), ORDERS))
    with Inference.of(
        task, demonstrations, method, confidence, seed=seed, forward=forward, threads=threads
    ) as run:
        run.finish(folder, progress)
        result = run.result()
        earned = rewards_of(run, threads)
        values[-1] = earned.mean()
        known = run.now.learned
        for row, size in enumerate(sizes[:-1]):
            for column, order in enumerate(orders):
                # What one subset finds out must not help the next.
                run.now.learned = known
                some = ExpertSteps.of(*as_simulated(task, demonstrations.take(order[:size])))
                run.continue_at(confidence, some, SHARE)
                run.finish(None, progress)
                values[row, column] = rewards_of(run, threads).mean()
    noise = float(earned.std(ddof=1) / np.sqrt(len(earned)))
    return LearningCurve(sizes, values, noise), result.constraint


def rewards_of(run: Inference, threads: int | None) -> Float[np.ndarray, " m"]:
    """What the run's policy earns in fresh episodes."""
    return execute(
        run.task, run.result().policy, episodes=EPISODES, seed=FIRST_EXECUTED, threads=threads
    )[:, 0]


def simulated_sizes(number: int) -> np.ndarray:
    """A quarter, a half, and all."""
    return np.unique([max(1, number // 4), max(1, number // 2), number])
