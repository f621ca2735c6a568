"""The demo's report: one page with pictures that opens in any browser."""

from collections.abc import Sequence

import numpy as np

from tacit.evaluation.intervals import Estimate
from tacit.experiments.demo import (
    DATA_SETS,
    NUMBER,
    SHOWN,
    WANTED_CONFIDENCE,
    Demonstration,
)
from tacit.reports.confidence_curves import confidence_curves, coverage_against_confidence
from tacit.reports.maps import MapPanel, constraint_maps
from tacit.reports.number_curve import reward_against_number
from tacit.reports.page import Fact, Page, Section
from tacit.reports.style import Band
from tacit.reports.table import Table


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
            *(violation_fact(demo, confidence) for confidence in (0.7, 0.9)),
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


def violation_fact(demo: Demonstration, confidence: float) -> Fact:
    """Violation at one confidence against the promise."""
    row = next(row for row in demo.rows if row.confidence == confidence)
    kept = row.violation.high <= 1 - confidence
    return Fact(
        f"violation at confidence {confidence:g}",
        f"{100 * row.violation.value:.1f} %",
        f"promised: at most {100 * (1 - confidence):.0f} %",
        tone="good" if kept else "bad",
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
            band([row.violation for row in demo.rows]),
            band([row.reward for row in demo.rows]),
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
            band([row.joint for row in demo.rows]),
            band([row.pointwise for row in demo.rows]),
        ),
        caption=f"{DATA_SETS} data sets of {NUMBER} demonstrations; cells that a policy without "
        "any rule would visit in more than 1 % of its episodes.",
    )


def enough_section(demo: Demonstration) -> Section:
    """Reward against the number of demonstrations, and the answers."""
    few, many = demo.answers
    curve = many.curve
    values = [Estimate(*triple(row)) for row in curve.values[:-1]] + [many.value]
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
            band(values),
            demo.wanted,
            [bool(value.value >= demo.wanted) for value in values],
            recommended,
        ),
        caption=f"Reward of the policy learned from nested subsets of {many.number} "
        f"demonstrations at confidence {WANTED_CONFIDENCE:g} (bands: range over random orders). "
        f"The recommendation is the one made from {few.number} demonstrations; an interval that "
        "is open above is drawn up to the largest data set.",
    )


def band(estimates: Sequence[Estimate]) -> Band:
    """Estimates as a band for a figure."""
    return Band(
        np.array([estimate.value for estimate in estimates]),
        np.array([estimate.low for estimate in estimates]),
        np.array([estimate.high for estimate in estimates]),
    )


def triple(values: np.ndarray) -> tuple[float, float, float]:
    """Mean, smallest and largest."""
    return float(values.mean()), float(values.min()), float(values.max())
