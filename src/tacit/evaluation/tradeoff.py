"""What a confidence level costs: reward and violation against it, to pick one by.

On simulated tasks one inference is run in full, at the highest confidence. From there the policy
goes on to each lower one in turn, for a quarter of the steps: the belief is the same, and what has
been learned is not learned again. K levels take 1 + (K - 1) / 4 runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tacit.argument_checks import check_confidence
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.evaluate import EXECUTED_EPISODES, Evaluation, evaluate, execute, summary
from tacit.evaluation.intervals import Estimate
from tacit.inference.infer import infer
from tacit.inference.loop import Inference
from tacit.inference.method import Method, NamedMethod, chosen_method
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
    method: NamedMethod | str | None = None,
    confidences: Sequence[float] = LEVELS,
    seed: int = 0,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> list[Choice]:
    """Violation and feasible reward at several confidences, the lowest first.

    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> tradeoff(task, tacit.collect(tacit.train_expert(task), 9, seed=1))[0].confidence
    0.1

    Arguments:
        task: from `tacit.make`.
        demonstrations: what the experts did.
        method: as for `tacit.infer`; one that learns by acting must answer at every confidence.
        confidences: the levels to choose from.
        seed: of everything random.
        forward: settings of PPO; None for those of the task.
        folder: where to keep the full run; after a stop the same call continues it.
        threads: for the simulator.
        progress: is told the numbers of every update.
    """
    levels = sorted_levels(confidences)
    chosen = chosen_method(method, task)
    if not isinstance(chosen, Method):
        # Every level is computed by itself.
        learn = partial(infer, task, demonstrations, method=chosen, seed=seed)
        return [choice_of(level, evaluate(learn(confidence=level))) for level in levels]
    if not chosen.any_confidence:
        raise ArgumentError(
            f"method {chosen.name!r} with these settings answers at one confidence only"
        )
    choices = []
    with Inference.of(
        task, demonstrations, chosen, levels[-1], seed=seed, forward=forward, threads=threads
    ) as run:
        run.finish(folder, progress)
        for level in reversed(levels):
            if level != levels[-1]:
                run.continue_at(level, run.experts, SHARE)
                run.finish(None, progress)
            choices.append(choice_of(level, played(run, threads)))
    return choices[::-1]


def sorted_levels(confidences: Sequence[float]) -> list[float]:
    """The confidences in order; an error if one is none, or is there twice."""
    levels = sorted(confidences)
    if not levels or len(set(levels)) < len(levels):
        raise ArgumentError(f"confidences must be some that differ, not {list(confidences)}")
    for level in levels:
        check_confidence(level)
    return levels


def played(run: Inference, threads: int | None) -> Evaluation:
    """What the run's policy does in fresh episodes."""
    policy = run.result().policy
    return summary(execute(run.task, policy, episodes=EXECUTED_EPISODES, threads=threads))


def choice_of(level: float, report: Evaluation) -> Choice:
    """What a policy was seen to do; all its reward where nobody knows the rule."""
    known = report.violation.value == report.violation.value
    return Choice(level, report.violation, report.feasible_reward if known else report.reward)
