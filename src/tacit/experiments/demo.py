"""`tacit demo` shows the whole library on one small grid, in under a minute, as one page."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.control.expert import Expert, collect, train_expert
from tacit.environments.lab_tasks import grid_world
from tacit.environments.tabular import TabularTask
from tacit.evaluation.coverage import joint_coverage, pointwise_coverage, reachable_queries
from tacit.evaluation.intervals import Estimate, mean_intervals
from tacit.experiments.coverage_cell import allowed_sets, performances
from tacit.inference.counts.counts import Counts, learn_beliefs
from tacit.inference.counts.model import VisitCounts
from tacit.inference.infer import infer
from tacit.inference.result import Result
from tacit.reports.confidence_curves import band_of, confidence_curves, coverage_against_confidence
from tacit.reports.feasibility import MapPanel, constraint_maps
from tacit.reports.number_curve import reward_against_number
from tacit.reports.page import Fact, Page, Section
from tacit.reports.table import Table
from tacit.sufficiency.answer import Answer
from tacit.sufficiency.decision import sufficient

CONFIDENCES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHOWN = (0.3, 0.7, 0.9)
STATED = (0.7, 0.9)
NUMBER = 20
DATA_SETS = 30
FEW, MANY = 10, 100
WANTED_CONFIDENCE = 0.8


@dataclass(frozen=True)
class Row:
    """The measurements at one confidence level, over all data sets."""

    confidence: float
    violation: Estimate
    reward: Estimate
    joint: Estimate
    pointwise: Estimate


@dataclass(frozen=True, eq=False)
class Demonstration:
    """All that the demo learns and measures."""

    task: TabularTask
    expert: Expert
    discarded: int
    result: Result
    rows: list[Row]
    wanted: float
    answers: list[Answer]


def run_demo(seed: int, report: Callable[[str], None]) -> Demonstration:
    """Collect demonstrations, learn at several confidences, and ask twice whether they suffice."""
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


def demo_page(demo: Demonstration) -> Page:
    """Maps, curves, coverage and the answer to "enough?"."""
    few, many = demo.answers
    return Page(
        title="What rule did the experts obey?",
        lead=(
            f"Experts walked from S to G on a slippery {demo.task.name.split()[1]} grid and kept "
            "off some cells without saying so. tacit learned the rule from their walks, at "
            "several levels of confidence, and checked itself against the truth."
        ),
        facts=[
            Fact("demonstrations", str(NUMBER), f"{demo.discarded} broke the rule, discarded"),
            *(
                violation_fact(row.violation, row.confidence)
                for row in demo.rows
                if row.confidence in STATED
            ),
            *(
                Fact(
                    f"{answer.number} demonstrations enough?",
                    "yes" if answer.enough else "no",
                    f"for reward {answer.wanted:g} at confidence {answer.confidence:g}",
                    tone="good" if answer.enough else "bad",
                )
                for answer in (few, many)
            ),
        ],
        sections=[
            map_section(demo),
            curve_section(demo),
            coverage_section(demo),
            enough_section(demo),
        ],
        foot="Made by `tacit demo`. Violation, reward and coverage are computed exactly for each "
        "data set; intervals are 95 % over data sets.",
    )


def violation_fact(violation: Estimate, confidence: float) -> Fact:
    """The violation at one confidence, beside the promise."""
    return Fact(
        f"violation at confidence {confidence:g}",
        f"{100 * violation.value:.1f} %",
        f"promised: at most {100 * (1 - confidence):.0f} %",
        tone="good" if violation.high <= 1 - confidence else "bad",
    )


def map_section(demo: Demonstration) -> Section:
    """The true and the learned rule, side by side."""
    constraint = demo.result.constraint
    states = np.arange(demo.task.number_of_states)
    idle = np.zeros_like(states)
    panels = [MapPanel("true rule", demo.task.allowed.astype(float))]
    panels += [
        MapPanel(
            f"learned, confidence {confidence:g}", constraint.feasibility(states, idle, confidence)
        )
        for confidence in SHOWN
    ]
    return Section(
        heading="The rule, true and learned",
        text=(
            "A cell is allowed when the experts' behaviour makes it sure enough that it is "
            "acceptable. Nobody said which cells are forbidden: a cell speaks against itself when "
            "experts would have gained by going there and did not.\n\nThe more confidence is "
            "asked for, the fewer cells are left: what no expert has shown to be fine is not "
            "used."
        ),
        figure=constraint_maps(demo.task, panels),
        caption=f"Feasibility learned from {NUMBER} demonstrations, read at three confidence "
        "levels from one and the same belief. Hatched: truly forbidden.",
    )


def curve_section(demo: Demonstration) -> Section:
    """Violation and reward against confidence."""
    return Section(
        heading="What confidence costs and buys",
        text=(
            "The promise of a confidence level: the learned policy breaks the true rule in at "
            "most one minus that share of its episodes."
        ),
        figure=confidence_curves(
            [row.confidence for row in demo.rows],
            band_of([row.violation for row in demo.rows]),
            band_of([row.reward for row in demo.rows]),
            demo.expert.violation,
            demo.expert.reward,
        ),
        caption=f"Mean over {DATA_SETS} independent data sets of {NUMBER} demonstrations, with "
        "95 % intervals.",
        table=Table(
            ["confidence", "violation", "promised", "reward", "reward of the experts"],
            [
                [
                    f"{row.confidence:g}",
                    str(row.violation),
                    f"≤ {1 - row.confidence:.1f}",
                    str(row.reward),
                    f"{demo.expert.reward:.2f}",
                ]
                for row in demo.rows
            ],
        ),
    )


def coverage_section(demo: Demonstration) -> Section:
    """Coverage against nominal confidence."""
    return Section(
        heading="Is the confidence honest?",
        text=(
            "Coverage compares the learned rule itself with the truth, over many data sets. "
            "Jointly: how often is everything that the learned rule allows truly allowed? Cell by "
            "cell: what share of the allowed cells is truly allowed? Both should lie on or above "
            "the diagonal (the first from confidence 0.5 on; below, unknown cells are allowed on "
            "purpose)."
        ),
        figure=coverage_against_confidence(
            [row.confidence for row in demo.rows],
            band_of([row.joint for row in demo.rows]),
            band_of([row.pointwise for row in demo.rows]),
        ),
        caption=f"{DATA_SETS} data sets of {NUMBER} demonstrations; cells that a policy without "
        "any rule would visit in more than 1 % of its episodes.",
    )


def enough_section(demo: Demonstration) -> Section:
    """Reward against the number of demonstrations, and the answers."""
    few, many = demo.answers
    curve = many.curve
    values = [
        Estimate(float(row.mean()), float(row.min()), float(row.max())) for row in curve.values[:-1]
    ]
    values.append(many.value)
    recommended = None
    if few.recommended_number is not None and few.recommended_interval is not None:
        low, high = few.recommended_interval
        # An open upper end is drawn up to the largest data set there is.
        recommended = (
            few.recommended_number,
            low,
            high or max(many.number, few.recommended_number),
        )
    return Section(
        heading="Are the demonstrations enough?",
        text="\n\n".join(
            f"With {answer.number} demonstrations: {answer.reason}. The largest confidence at "
            f"which they would do: {answer.largest_confidence or 'none'}."
            for answer in (few, many)
        ),
        figure=reward_against_number(
            curve.sizes,
            band_of(values),
            demo.wanted,
            [bool(value.value >= demo.wanted) for value in values],
            recommended,
        ),
        caption=f"Reward of the policy learned from nested subsets of {many.number} "
        f"demonstrations at confidence {WANTED_CONFIDENCE:g} (bands: range over random orders). "
        f"The recommendation is the one made from {few.number} demonstrations; an interval that "
        "is open above is drawn up to the largest data set.",
    )
