"""`tacit sufficient` and `tacit tradeoff`: are there enough data, and which confidence to take?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.command_line.console import console, percent, show_facts, show_table
from tacit.command_line.inputs import MethodName, Options, Pairs, TaskName, learning, read_request
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.evaluation.tradeoff import Choice
    from tacit.sufficiency.answer import Answer


def sufficient(
    task: TaskName,
    experts: Path,
    reward: float,
    method: MethodName = None,
    confidence: float = 0.8,
    seed: int = 0,
    out: Path | None = None,
    threads: int | None = None,
    settings: Options = (),
    learn: Pairs = (),
    train: Pairs = (),
) -> None:
    """Say whether the demonstrations are enough, and how many would be.

    Args:
        task: name of a task, a Gymnasium id, or an .npz file with your own arrays.
        experts: file or folder with the demonstrations.
        reward: the expected reward wanted.
        method: one of those that `tacit methods` lists; by default counts on tables and reach
            elsewhere. Add --help-method to list the settings of a method and stop.
        confidence: how sure the constraint must be at least as tight as the truth.
        seed: of the random subsets, and of the simulation.
        out: folder to keep the run on a simulated task in; the same command goes on with it.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
        learn: settings of the method, as in --learn votes=visits-fallible.
        train: settings of PPO on a simulated task, as in --train steps=2000000.
    """
    from tacit.sufficiency.decision import sufficient as answered

    asked = read_request(task, settings, experts, method, learn, train)
    exact = asked.forward is None
    if exact and (out is not None or threads is not None):
        raise ArgumentError(
            f"{asked.task.name} is computed exactly: --out and --threads are not used"
        )
    with learning(asked, "nested subsets") as watching:
        answer = answered(
            asked.task,
            asked.demonstrations,
            confidence,
            reward,
            method=asked.method,
            seed=seed,
            folder=out,
            threads=threads,
            **watching,
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


def tradeoff(
    task: TaskName,
    experts: Path,
    out: Path,
    method: MethodName = None,
    confidences: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9),
    number: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    settings: Options = (),
    learn: Pairs = (),
    train: Pairs = (),
) -> None:
    """Show reward and violation against confidence, as a table and a figure.

    Args:
        task: name of a task, a Gymnasium id, or an .npz file with your own arrays.
        experts: file or folder with the demonstrations.
        out: folder for tradeoff.json, tradeoff.png and the run.
        method: one of those that `tacit methods` lists, if it answers at every confidence; by
            default counts on tables and reach elsewhere. Add --help-method to list the settings of
            a method and stop.
        confidences: levels to choose from.
        number: use so many demonstrations, drawn at random by the seed; by default all.
        seed: of everything random.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set noise_std=0.1.
        learn: settings of the method, as in --learn votes=visits-fallible.
        train: settings of PPO, as in --train steps=2000000.
    """
    from tacit.evaluation.tradeoff import tradeoff as measured

    asked = read_request(task, settings, experts, method, learn, train, number=number, seed=seed)
    with learning(asked, "tradeoff") as watching:
        choices = measured(
            asked.task,
            asked.demonstrations,
            method=asked.method,
            confidences=confidences,
            seed=seed,
            folder=out / "run",
            threads=threads,
            **watching,
        )
    number = len(asked.demonstrations)
    write_choices(out, choices, number)
    show_choices(asked.task.name, number, choices)
    console.print(f"written: {out / 'tradeoff.png'}, {out / 'tradeoff.json'}", markup=False)


def show_choices(name: str, number: int, choices: "list[Choice]") -> None:
    """The table."""
    show_table(
        f"What a confidence gives on {name}, {number} demonstrations",
        ["confidence", "violation", "promised", "feasible reward"],
        [
            [
                f"{choice.confidence:g}",
                percent(choice.violation),
                f"<= {100 * choice.promised:.0f} %",
                str(choice.reward),
            ]
            for choice in choices
        ],
    )


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
    from tacit.runs.json_file import write_json

    write_json(out / "tradeoff.json", [without_nan(asdict(choice)) for choice in choices])
    figure = number_panels([Curve(f"{demonstrations} demonstrations", choices)])
    write_png(out / "tradeoff.png", figure)
