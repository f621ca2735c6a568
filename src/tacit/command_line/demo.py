"""`tacit demo`: the whole library on one small grid, or on a noisy point."""

import time
from pathlib import Path

from rich.markup import escape

from tacit.command_line.console import console, percent, show_table


def demo(out: Path = Path("demo"), seed: int = 1, continuous: bool = False) -> None:
    """Learn a rule on a grid at several confidences, ask "enough?", and write a report.

    Args:
        out: folder for report.html.
        seed: of all demonstrations.
        continuous: learn by acting on a noisy point instead, in under two minutes.
    """
    start = time.monotonic()
    path = (on_a_point if continuous else on_a_grid)(out, seed)
    elapsed = time.monotonic() - start
    console.print(f"report: {path} ({elapsed:.0f} s)", markup=False, soft_wrap=True)


def on_a_grid(out: Path, seed: int) -> Path:
    """Learn on a grid, where everything is computed."""
    from tacit.experiments.demo import DATA_SETS, NUMBER, demo_page, run_demo
    from tacit.reports.page import write_page

    with console.status("starting") as status:
        found = run_demo(seed, report=status.update)
        status.update("drawing the report")
        path = write_page(demo_page(found), out / "report.html")
    show_table(
        f"{found.task.name}: {NUMBER} demonstrations, {DATA_SETS} data sets, 95 % intervals",
        ["confidence", "violation", "promised", "reward", "experts' reward"],
        [
            [
                f"{row.confidence:g}",
                percent(row.violation),
                f"<= {100 * (1 - row.confidence):.0f} %",
                str(row.reward),
                f"{found.expert.reward:.2f}",
            ]
            for row in found.rows
        ],
    )
    for answer in found.answers:
        console.print(
            f"[bold]Are {answer.number} demonstrations enough[/] for a reward of "
            f"{answer.wanted:g} at confidence {answer.confidence:g}? {escape(answer.reason)}.",
            soft_wrap=True,
        )
    return path


def on_a_point(out: Path, seed: int) -> Path:
    """Learn on a point that moves, where everything is learned by acting."""
    from tacit.experiments.continuous_demo import continuous_page, rule_facts, run_continuous_demo
    from tacit.reports.page import write_page

    with console.status("starting") as status:
        found = run_continuous_demo(seed, report=status.update)
        status.update("drawing the report")
        path = write_page(continuous_page(found), out / "report.html")
    for fact in rule_facts(found.result.constraint.rules()):
        note = f" ({fact.note})" if fact.note else ""
        console.print(f"[bold]{fact.label}:[/] {escape(fact.value + note)}", soft_wrap=True)
    show_table(
        f"{found.task.name}: {len(found.demonstrations)} demonstrations",
        ["confidence", "violation", "promised", "feasible reward", "experts' reward"],
        [
            [
                f"{choice.confidence:g}",
                percent(choice.violation),
                f"<= {100 * choice.promised:.0f} %",
                str(choice.reward),
                f"{found.demonstrations.returns.mean():.2f}",
            ]
            for choice in found.choices
        ],
    )
    return path
