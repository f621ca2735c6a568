"""What `tacit demo` shows: the whole library on one small grid, in under a minute."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.control.expert import Expert, collect, train_expert
from tacit.environments.lab_tasks import grid_world
from tacit.environments.tabular import TabularTask
from tacit.evaluation.coverage import joint_coverage, pointwise_coverage, reachable_queries
from tacit.evaluation.intervals import Estimate, mean_intervals
from tacit.experiments.coverage_cell import allowed_sets, performances
from tacit.inference.counts.counts import Counts
from tacit.inference.counts.many_data_sets import VisitCounts, learn_beliefs
from tacit.inference.infer import infer
from tacit.inference.result import Result
from tacit.sufficiency.answer import Answer
from tacit.sufficiency.decision import sufficient

CONFIDENCES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHOWN = (0.3, 0.7, 0.9)
NUMBER = 20
DATA_SETS = 30
FEW, MANY = 10, 100
WANTED_CONFIDENCE = 0.8


@dataclass(frozen=True)
class Row:
    """One confidence level, over all data sets."""

    confidence: float
    violation: Estimate
    reward: Estimate
    joint: Estimate
    pointwise: Estimate


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Everything the demo found out."""

    task: TabularTask
    expert: Expert
    discarded: int
    result: Result
    rows: list[Row]
    wanted: float
    answers: list[Answer]


def run_demo(seed: int, report: Callable[[str], None]) -> Demonstration:
    """Demonstrations, constraints at several confidences, coverage, and "enough?" twice."""
    report("training an expert on the true rule")
    task = grid_world("open")
    expert = train_expert(task)
    report(f"learning from {NUMBER} demonstrations")
    demonstrations = collect(expert, NUMBER, seed=seed)
    result = infer(task, demonstrations, confidence=SHOWN[1], seed=seed)
    report(f"learning from {DATA_SETS} data sets of {NUMBER} demonstrations")
    rows = confidence_rows(task, expert, seed)
    wanted = expert.reward - 0.04 * abs(expert.reward)
    answers = []
    for number in (FEW, MANY):
        report(f"are {number} demonstrations enough?")
        answers.append(
            sufficient(
                task,
                collect(expert, number, seed=seed),
                confidence=WANTED_CONFIDENCE,
                reward=round(wanted, 1),
                seed=seed,
            )
        )
    return Demonstration(
        task=task,
        expert=expert,
        discarded=int(demonstrations.provenance["discarded"]),
        result=result,
        rows=rows,
        wanted=round(wanted, 1),
        answers=answers,
    )


def confidence_rows(task: TabularTask, expert: Expert, seed: int) -> list[Row]:
    """Violation, reward and coverage at every confidence, over many data sets."""
    seeds = np.random.SeedSequence(seed).generate_state(DATA_SETS, np.uint64)
    counts = VisitCounts.of(task, [collect(expert, NUMBER, seed=int(own)) for own in seeds])
    beliefs = learn_beliefs(task, counts, CONFIDENCES, Counts())
    violation, reward = performances(task, counts, beliefs, CONFIDENCES, "graded")
    allowed = allowed_sets(beliefs, CONFIDENCES)
    truth = (task.allowed, reachable_queries(task))
    violations = np.stack(mean_intervals(violation), axis=1)
    rewards = np.stack(mean_intervals(reward), axis=1)
    return [
        Row(
            confidence=float(confidence),
            violation=Estimate(*map(float, violations[level])),
            reward=Estimate(*map(float, rewards[level])),
            joint=joint_coverage(allowed[level], *truth),
            pointwise=pointwise_coverage(allowed[level], *truth),
        )
        for level, confidence in enumerate(CONFIDENCES)
    ]
