"""`tacit demo`: the whole library on one small grid, or on a noisy point."""

import time
from pathlib import Path

from rich.markup import escape

from tacit.command_line.console import console, show_choices


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
    show_choices(
        f"{found.task.name}: {NUMBER} demonstrations, {DATA_SETS} data sets, 95 % intervals",
        found.rows,
        "reward",
        found.expert.reward,
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
    show_choices(
        f"{found.task.name}: {len(found.demonstrations)} demonstrations",
        found.choices,
        "feasible reward",
        found.demonstrations.returns.mean(),
    )
    return path
