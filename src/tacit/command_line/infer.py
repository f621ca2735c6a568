"""`tacit infer` and `tacit evaluate`: learn a constraint, judge what was learned."""

from pathlib import Path
from typing import Annotated

import tyro

import tacit.evaluation.evaluate as evaluation
import tacit.inference.infer as inference
from tacit.command_line.data import read
from tacit.command_line.tables import console, percent, show_facts
from tacit.command_line.tasks import find_task
from tacit.constraints.belief import Reading
from tacit.environments.tabular import check_tabular
from tacit.evaluation.trajectory_calibration import calibration_error
from tacit.inference.ca_icrl import Objective, Votes
from tacit.inference.result import Result, load


def infer(
    task: tyro.conf.Positional[str],
    experts: Path,
    method: str = "ca-icrl",
    confidence: float = 0.8,
    objective: Objective = "counts",
    votes: Votes | None = None,
    reading: Reading = "graded",
    seed: int = 0,
    out: Path | None = None,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
) -> None:
    """Learn the rule that the experts obeyed, and the best policy that keeps it.

    Args:
        task: name of a task (Chain, GridWorld) or an .npz file with your own arrays.
        experts: file or folder with the demonstrations.
        method: ca-icrl.
        confidence: how sure the constraint must be at least as tight as the truth.
        objective: how the belief is learned.
        votes: how an expert speaks for or against a state: visits or visits-fallible with counts,
            independent or abstain with evidence and quantile.
        reading: how the confidence reads a constraint off the belief.
        seed: kept with the result.
        out: folder to save the result in.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
    """
    chosen = check_tabular(find_task(task, settings))
    demonstrations = read(experts)
    with console.status("learning"):
        result = inference.infer(
            chosen,
            demonstrations,
            method=method,
            confidence=confidence,
            seed=seed,
            objective=objective,
            votes=votes,
            reading=reading,
        )
    if out is not None:
        result.save(out)
    show_facts(
        f"{method} on {chosen.name}, {len(demonstrations)} demonstrations",
        {**performance(result), **({"saved in": str(out)} if out else {})},
    )


def evaluate(
    folder: tyro.conf.Positional[Path], episodes: int | None = None, seed: int = 51
) -> None:
    """Judge a saved result by the true rule.

    Args:
        folder: what `tacit infer --out` wrote.
        episodes: roll out that many instead of computing exactly.
        seed: of the episodes.
    """
    result = load(folder)
    error = calibration_error(result, seed=seed)
    show_facts(
        f"{folder} on {result.task.name}",
        {**performance(result, episodes, seed), "calibration error (ECE)": f"{error:.3f}"},
    )


def performance(result: Result, episodes: int | None = None, seed: int = 51) -> dict[str, str]:
    """The result's numbers in words."""
    report = evaluation.evaluate(result, episodes=episodes, seed=seed)
    allowed = result.constraint.allowed_map()
    return {
        "confidence": f"{result.constraint.confidence:g}",
        "allowed by the constraint": f"{allowed.sum()} of {allowed.size} "
        + ("states" if result.task.rule_on == "state" else "state-action pairs"),
        "violation of the true rule": f"{percent(report.violation)} "
        f"(promise: at most {percent(1 - result.constraint.confidence)}, "
        f"{'kept' if report.violation <= 1 - result.constraint.confidence else 'BROKEN'})",
        "reward per episode": str(report.reward),
        "feasible reward": str(report.feasible_reward),
        "price of a violated step": f"{result.metrics['multiplier']:.1f}",
    }
