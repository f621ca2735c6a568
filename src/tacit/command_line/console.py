"""What the terminal shows: tables, the worth of a result, and bars while something runs."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from tacit.control.settings import PPO
    from tacit.evaluation.evaluate import Evaluation
    from tacit.evaluation.intervals import Estimate
    from tacit.evaluation.tradeoff import Choice
    from tacit.experiments.demo import Row
    from tacit.inference.result import Result

SECONDS_BETWEEN_LINES = 30
RULE = "violation of the learned rule"

# Colons in paths and messages are not the names of pictures.
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

Watch = Callable[[dict[str, float]], None]


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False
) -> None:
    """Print a table; the first column is text, the others are numbers, or all are `words`."""
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place and not words else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def show_facts(title: str, facts: dict[str, str]) -> None:
    """Print names and values, one per line."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in facts.items():
        table.add_row(escape(name), escape(value))
    console.print(table)


def show_text(text: str) -> None:
    """Print text as it is, broken by the terminal only."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def show_note(sentence: str) -> None:
    """Print a sentence that the user should know of."""
    console.print(f"note: {sentence}", markup=False)


def show_written(*files: Path | str) -> None:
    """Print where something was written."""
    console.print(f"written: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def show_choices(
    title: str, choices: "Sequence[Choice | Row]", reward: str, experts: float | None = None
) -> None:
    """Print violation, promise and reward at each confidence, and the reward of the experts."""
    columns = ["confidence", "violation", "promised", reward]
    rows = [
        [
            f"{choice.confidence:g}",
            percent(choice.violation),
            f"<= {100 * (1 - choice.confidence):.0f} %",
            str(choice.reward),
        ]
        for choice in choices
    ]
    if experts is not None:
        columns.append("experts' reward")
        rows = [[*row, f"{experts:.2f}"] for row in rows]
    show_table(title, columns, rows)


def show_line(sentence: str) -> None:
    """Print a sentence above the bar that is shown."""
    errors.print(sentence, markup=False)


def percent(share: "float | Estimate") -> str:
    """A share as a percentage, with its interval where it has one."""
    value = float(share)
    if math.isnan(value):
        return "unknown"
    words = f"{100 * value:.1f} %"
    if isinstance(share, float | int) or share.low == share.high:
        return words
    return f"{words} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def facts_of(result: "Result") -> dict[str, str]:
    """What a new result is worth, in words."""
    from tacit.control.table_policy import TablePolicy

    return exact_facts(result) if isinstance(result.policy, TablePolicy) else played_facts(result)


def worth(report: "Evaluation") -> dict[str, str]:
    """What a policy did, in words."""
    return {
        "violation of the true rule": percent(report.violation),
        "reward per episode": str(report.reward),
        "feasible reward": str(report.feasible_reward),
    }


def exact_facts(result: "Result", episodes: int | None = None, seed: int = 51) -> dict[str, str]:
    """The numbers of a policy of a table in words."""
    from tacit.evaluation.evaluate import evaluate as judged
    from tacit.inference.counts.model import TableModel

    report = judged(result, episodes=episodes, seed=seed)
    confidence, model = result.constraint.confidence, result.constraint.model
    facts = {"confidence": f"{confidence:g}"}
    if isinstance(model, TableModel):
        allowed = model.allowed(confidence)
        about = "states" if model.rule_on == "state" else "state-action pairs"
        facts["allowed by the constraint"] = f"{allowed.sum()} of {allowed.size} {about}"
    facts |= worth(report)
    kept = "kept" if report.violation <= 1 - confidence else "BROKEN"
    facts["violation of the true rule"] += f" (promise: at most {percent(1 - confidence)}, {kept})"
    if "multiplier" in result.metrics:
        facts["price of a violated step"] = f"{result.metrics['multiplier']:.1f}"
    return facts


def played_facts(result: "Result") -> dict[str, str]:
    """The numbers of a policy that learned by acting in words, from fresh episodes."""
    from tacit.evaluation.evaluate import evaluate as judged

    metrics, constraint, facts = result.metrics, result.constraint, {}
    with console.status("playing episodes"):
        report = judged(result)
    if constraint.promises:
        facts["confidence"] = f"{constraint.confidence:g}"
    if report.rule_violation is not None:
        facts[RULE] = percent(report.rule_violation)
        for warning in warning_of(report, 1 - constraint.confidence):
            show_note(warning)
    facts |= worth(report)
    if report.training is not None:
        facts |= {
            "violation while training": percent(report.training.violation),
            "feasible reward while training": str(report.training.feasible_reward),
        }
    if "cost" in metrics:
        # Of `reach` it is a share of experts, of all others a cost.
        reach = "rules" in metrics
        own = "share of fresh experts who go further" if reach else "that of the experts"
        facts |= {
            "learned cost of a step": f"{metrics['cost']:.3f}",
            own: f"{metrics['expert_cost']:.3f}",
            "price of cost": f"{metrics['multiplier']:.1f}",
        }
    if "constraint_loss" in metrics:
        facts["loss of the constraint"] = f"{metrics['constraint_loss']:.3f}"
    return facts


def warning_of(report: "Evaluation", promised: float) -> list[str]:
    """What to say where the policy does not even keep the rule that it learned."""
    if report.rule_violation is None or report.rule_violation <= promised:
        return []
    return [
        f"the policy breaks the rule that it learned in {percent(float(report.rule_violation))} of "
        f"its episodes, where at most {percent(promised)} were asked for: nothing shows that the "
        "promise is kept. It may take more steps or better experts, or be out of reach"
    ]


@contextmanager
def progress_bar(text: str, total: float = 1) -> Iterator[Callable[..., None]]:
    """A bar with what is being done, how far it is and the time left.

    Gives the function that moves it, which takes how much is done, of how much, and a new text.
    """
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(TextColumn("{task.description}"), *columns, console=errors) as bar:
        job = bar.add_task(text, total=total)

        def show(done: float, total: float | None = None, text: str | None = None) -> None:
            bar.update(job, completed=done, total=total, description=text)

        yield show


@contextmanager
def watched(title: str, settings: "PPO") -> Iterator[Watch]:
    """A progress bar with speed, reward, violation and multiplier; lines without a terminal.

    Gives the function that is to be told the numbers of every update.
    """
    if not errors.is_terminal:
        yield lines(title, settings)
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[facts]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
    )
    with bar:
        job = bar.add_task(title, total=settings.iterations * settings.batch, facts="")
        speed = Speed()

        def show(facts: dict[str, float]) -> None:
            words = f"{speed(facts):,.0f} steps/s  {summary(facts)}"
            bar.update(job, completed=int(facts["steps"]), facts=words)

        yield show


def lines(title: str, settings: "PPO") -> Watch:
    """One line every half minute, for logs."""
    speed = Speed()
    last = time.monotonic()
    say(f"{title}: starting; the first update compiles")

    def show(facts: dict[str, float]) -> None:
        nonlocal last
        done = facts["steps"] / (settings.iterations * settings.batch)
        if time.monotonic() - last < SECONDS_BETWEEN_LINES and done < 1:
            return
        last = time.monotonic()
        say(f"{title}: {done:4.0%}  {speed(facts):,.0f} steps/s  {summary(facts)}")

    return show


def say(line: str) -> None:
    """Write a line for people to the error stream, at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Speed:
    """Steps per second since the first update that was seen (which compiles)."""

    def __init__(self) -> None:
        self.first: tuple[float, float] | None = None

    def __call__(self, facts: dict[str, float]) -> float:
        """The mean speed so far."""
        now = facts["steps"], facts["seconds"]
        if self.first is None:
            self.first = now
        steps, seconds = now[0] - self.first[0], now[1] - self.first[1]
        return steps / seconds if seconds > 0 else now[0] / now[1]


def summary(facts: dict[str, float]) -> str:
    """Reward, violation, multiplier, and cost and loss of a constraint that learns, in words."""
    words = []
    if "reward" in facts:
        words = [f"reward {facts['reward']:.1f}"]
    if "violation" in facts:
        words.append(f"violation {100 * facts['violation']:.0f} %")
    prices = [value for name, value in facts.items() if name.startswith("multiplier")]
    if "constraint_loss" in facts and "cost" in facts:
        words.append(f"cost {facts['cost']:.3f}")
    if prices:
        words.append(f"multiplier {'/'.join(f'{price:.2f}' for price in prices)}")
    if "constraint_loss" in facts:
        words.append(f"constraint loss {facts['constraint_loss']:.3f}")
    return "  ".join(words)
