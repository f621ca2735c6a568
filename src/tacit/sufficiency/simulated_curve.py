"""The learning curve on a simulated task: one whole inference, then smaller data sets from there.

The whole run finds out where policies are tempted, which does not depend on the experts. For a
subset of them the policy begins as an imitation of *these* experts,
counts *these* experts, and learns for an eighth of the steps. Two sizes in three random orders make
six eighths, so that all takes less than two runs.
"""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from tacit.control.actor import Actor
from tacit.control.ppo import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.task import SimulatedTask
from tacit.evaluation.execution import FIRST_EXECUTED, execute
from tacit.inference.constraint import LearnedConstraint
from tacit.inference.experts import ExpertSteps
from tacit.inference.simulated_inference import Asked, completed, prepared, summed_up
from tacit.runs.resumable_run import ProgressCallback
from tacit.sufficiency.learning_curve import LearningCurve

ORDERS = 3
SHARE = 1 / 8
EPISODES = 50


def simulated_curve(
    task: SimulatedTask,
    demonstrations: Trajectories,
    *,
    confidence: float,
    seed: int,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> tuple[LearningCurve, LearnedConstraint]:
    """The reward of policies learned from nested subsets; and the constraint from all.

    Values are means over 50 fresh episodes without exploration.
    """
    asked = Asked("ca-icrl", confidence, seed, settings, forward)
    run, described = prepared(task, demonstrations, asked, threads)

    def rewards(policy: Actor) -> Float[np.ndarray, " m"]:
        return execute(task, policy, episodes=EPISODES, seed=FIRST_EXECUTED, threads=threads)[:, 0]

    generator = np.random.default_rng([seed, len(demonstrations)])
    orders = [generator.permutation(len(demonstrations)) for _ in range(ORDERS)]
    sizes = simulated_sizes(len(demonstrations))
    values = np.empty((len(sizes), ORDERS))
    try:
        completed(run, described, folder, progress, None)
        result = summed_up(run, described, threads)
        earned = rewards(result.policy)
        values[-1] = earned.mean()
        known = run.learned
        for row, size in enumerate(sizes[:-1]):
            for column, order in enumerate(orders):
                # What one subset finds out must not help the next.
                run.learned = known
                run.turn_to(
                    confidence, ExpertSteps.of(task, demonstrations.take(order[:size])), SHARE
                )
                completed(run, described, None, progress, None)
                values[row, column] = rewards(summed_up(run, described, threads).policy).mean()
    finally:
        run.close()
    noise = float(earned.std(ddof=1) / np.sqrt(len(earned)))
    return LearningCurve(sizes, values, noise), result.constraint


def simulated_sizes(number: int) -> np.ndarray:
    """A quarter, a half, and all."""
    return np.unique([max(1, number // 4), max(1, number // 2), number])
