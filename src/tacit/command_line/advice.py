"""`tacit sufficient` and `tacit tradeoff`: are there enough data, and which confidence to take?"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.command_line.console import show_choices, show_facts, show_table, show_written
from tacit.command_line.inputs import Learning
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.evaluation.tradeoff import Choice
    from tacit.sufficiency.answer import Answer


@dataclass(frozen=True, kw_only=True)
class Sufficient(Learning):
    """Say whether the demonstrations are enough, and how many would be.

    Args:
        reward: the expected reward wanted.
        confidence: how sure the constraint must be at least as tight as the truth.
        out: folder to keep the run on a simulated task in; the same command goes on with it.
    """

    reward: float
    confidence: float = 0.8
    out: Path | None = None

    def run(self) -> None:
        """Learn from subsets with a bar, then show the curve and the answer."""
        from tacit.sufficiency.decision import sufficient

        asked = self.read()
        exact = asked.forward is None
        if exact and (self.out is not None or self.threads is not None):
            raise ArgumentError(
                f"{asked.task.name} is computed exactly: --out and --threads are not used"
            )
        with self.shown(asked, "nested subsets") as options:
            answer = sufficient(
                asked.task,
                asked.demonstrations,
                self.confidence,
                self.reward,
                folder=self.out,
                **options,
            )
        show_answer(asked.task.name, answer, exact=exact)


def show_answer(name: str, answer: "Answer", *, exact: bool) -> None:
    """The curve and the answer."""
    show_table(
        "Value of the learned policy",
        ["demonstrations", "mean value", "lowest", "highest"],
        [
            [str(size), f"{values.mean():.2f}", f"{values.min():.2f}", f"{values.max():.2f}"]
            for size, values in zip(answer.curve.sizes, answer.curve.values, strict=True)
        ],
    )
    facts = {
        "answer": answer.reason,
        "value (interval: other data sets)": str(answer.value),
        "recommended number": recommendation(answer),
    }
    if exact:
        largest = answer.largest_confidence
        facts["largest confidence that would do"] = "none" if largest is None else f"{largest:g}"
    show_facts(f"Are {answer.number} demonstrations enough on {name}?", facts)


def recommendation(answer: "Answer") -> str:
    """The recommended number with its interval, in words."""
    if answer.recommended_number is None:
        return "none: more demonstrations alone will not do"
    if answer.recommended_interval is None:
        return str(answer.recommended_number)
    low, high = answer.recommended_interval
    return f"{answer.recommended_number} [{low}, {'?' if high is None else high}]"


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Learning):
    """Show reward and violation against confidence, as a table and a figure.

    The method must be one that answers at every confidence.

    Args:
        out: folder for tradeoff.json, tradeoff.png and the run.
        confidences: levels to choose from.
        number: use so many demonstrations, drawn at random by the seed; by default all.
    """

    out: Path
    confidences: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    number: int | None = None

    def run(self) -> None:
        """Learn with a bar, write, and show the table."""
        from tacit.evaluation.tradeoff import tradeoff

        asked = self.read(self.number)
        with self.shown(asked, "tradeoff") as options:
            choices = tradeoff(
                asked.task,
                asked.demonstrations,
                confidences=self.confidences,
                folder=self.out / "run",
                **options,
            )
        number = len(asked.demonstrations)
        write_choices(self.out, choices, number)
        title = f"What a confidence gives on {asked.task.name}, {number} demonstrations"
        show_choices(title, choices, "feasible reward")
        show_written(self.out / "tradeoff.png", self.out / "tradeoff.json")


def without_nan(facts: dict[str, Any]) -> dict[str, Any]:
    """What is unknown as null: JSON has no NaN."""
    return {
        name: without_nan(value) if isinstance(value, dict) else value if value == value else None
        for name, value in facts.items()
    }


def write_choices(out: Path, choices: "list[Choice]", demonstrations: int) -> None:
    """The numbers for programs and the figure for people."""
    from tacit.reports.confidence_curves import Curve, number_panels
    from tacit.reports.style import write_png
    from tacit.runs.files import write_json

    write_json(out / "tradeoff.json", [without_nan(asdict(choice)) for choice in choices])
    figure = number_panels([Curve(f"{demonstrations} demonstrations", choices)])
    write_png(out / "tradeoff.png", figure)
