"""What a confidence level costs: reward and violation against it, to pick one by.

On simulated tasks one inference is run in full, at the highest confidence. From there the policy
goes on to each lower one in turn, for a quarter of the steps: the belief is the same, and what has
been learned is not learned again. K levels take 1 + (K - 1) / 4 runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.control.ppo import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.evaluate import EXECUTED_EPISODES, evaluate, summary
from tacit.evaluation.execution import FIRST_EXECUTED, execute
from tacit.evaluation.intervals import Estimate
from tacit.inference.counts.model import check_confidence
from tacit.inference.infer import infer
from tacit.inference.methods import make_method
from tacit.inference.simulated_inference import Asked, completed, prepared, summed_up
from tacit.runs.resumable_run import ProgressCallback

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
SHARE = 0.25


@dataclass(frozen=True)
class Choice:
    """What one confidence gives.

    Fields:
        confidence: lambda.
        violation: share of fresh episodes that break the true rule; exact on tabular tasks, and
            NaN where nobody knows the rule.
        reward: feasible reward per episode, likewise; all reward where nobody knows the rule.
        promised: at most so much violation, 1 - lambda.
    """

    confidence: float
    violation: Estimate
    reward: Estimate

    @property
    def promised(self) -> float:
        """1 - lambda."""
        return 1 - self.confidence


def tradeoff(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    *,
    confidences: Sequence[float] = LEVELS,
    seed: int = 0,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> list[Choice]:
    """Violation and feasible reward of CA-ICRL at several confidences, the lowest first.

    Arguments:
        task: from `tacit.make`.
        demonstrations: what the experts did.
        confidences: the levels to choose from.
        seed: of everything random.
        forward: settings of PPO on simulated tasks; None for those of the task.
        folder: where to keep the full run; after a stop the same call continues it.
        threads: for the simulator.
        progress: is told the numbers of every update.
        settings: of CA-ICRL, as for `tacit.infer`.
    """
    levels = sorted(confidences)
    if not levels or len(set(levels)) < len(levels):
        raise ArgumentError(f"confidences must be some that differ, not {list(confidences)}")
    for level in levels:
        check_confidence(level)
    if isinstance(task, TabularTask):
        return [exact_choice(task, demonstrations, level, seed, settings) for level in levels]
    if not make_method("ca-icrl", task, settings).any_confidence:
        raise ArgumentError("objective 'quantile' is trained for one confidence only")
    asked = Asked("ca-icrl", levels[-1], seed, settings, forward)
    run, described = prepared(task, demonstrations, asked, threads)
    choices = []
    try:
        completed(run, described, folder, progress, None)
        for level in reversed(levels):
            if level != levels[-1]:
                run.turn_to(level, run.experts, SHARE)
                completed(run, described, None, progress, None)
            policy = summed_up(run, described, threads).policy
            rows = execute(
                task, policy, episodes=EXECUTED_EPISODES, seed=FIRST_EXECUTED, threads=threads
            )
            report = summary(rows)
            known = report.violation.value == report.violation.value
            reward = report.feasible_reward if known else report.reward
            choices.append(Choice(level, report.violation, reward))
    finally:
        run.close()
    return choices[::-1]


def exact_choice(
    task: TabularTask,
    demonstrations: Trajectories,
    level: float,
    seed: int,
    settings: dict[str, Any],
) -> Choice:
    """On a tabular task every level is computed by itself."""
    report = evaluate(infer(task, demonstrations, confidence=level, seed=seed, **settings))
    return Choice(level, report.violation, report.feasible_reward)
