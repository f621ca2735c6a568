"""`tacit rules` and `tacit calibrate`: read a learned constraint, and check it."""

from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium
import tyro

from tacit.command_line.console import console, percent, show_facts, show_text, show_written
from tacit.command_line.inputs import importable, load_experts
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.demonstrations.trajectories import Trajectories
    from tacit.inference.constraint import Constraint
    from tacit.inference.result import Result


def rules(run: tyro.conf.Positional[Path], confidence: float | None = None) -> None:
    """Print what is forbidden in words, the rule with the strongest evidence first.

    Args:
        run: folder of `tacit infer`, or a file of a constraint.
        confidence: to read the constraint at; by default the one it was learned for.
    """
    constraint, _ = load_constraint(run)
    if confidence is not None:
        constraint = constraint.at(confidence)
    found = constraint.rules()
    known = [str(constraint.facts[name]) for name in ("method", "task") if name in constraint.facts]
    where = f" ({' on '.join(known)})" if known else ""
    show_text(f"{run}{where} at confidence {constraint.confidence:g}:")
    for place, rule in enumerate(found, start=1):
        show_text(f"{place}. {rule}")
    if not found:
        show_text("no rule: the experts avoided nothing that policies wanted to do")


def calibrate(
    folder: tyro.conf.Positional[Path], experts: Path, rate: float = 0.9, out: Path | None = None
) -> None:
    """Check a learned constraint with held-out demonstrations, and adjust it on request.

    Args:
        folder: of `tacit infer`, or a file of a constraint.
        experts: demonstrations of the same experts that were not used to learn it.
        rate: share of fresh expert episodes that are to satisfy it.
        out: where to write the adjusted constraint.
    """
    from tacit.evaluation.conformal import calibrate as calibrated

    demonstrations = load_experts(experts)
    constraint, result = load_constraint(folder)
    if isinstance(constraint.spaces.observation, gymnasium.spaces.Discrete):
        raise ArgumentError(f"{folder}: a constraint in a table has nothing to calibrate")
    if result is not None:
        demonstrations = held_out(folder, result, demonstrations)
    found = calibrated(constraint, demonstrations, rate=rate)
    facts = {
        "held-out demonstrations": str(len(demonstrations)),
        "satisfy it as it is": percent(found.satisfied),
        "asked for": f"{100 * rate:g} % of fresh expert episodes",
        "feasible from": f"{found.threshold:.3f}" + ("" if found.adjusted else " (no change)"),
    }
    show_facts(f"{folder} at confidence {constraint.confidence:g}", facts)
    console.print(
        f"A fresh episode of the same experts has no infeasible step with probability {rate:g} or "
        "more, on average over such sets of held-out demonstrations; after this one set, at least "
        f"{100 * found.at_least:.0f} % of them with 95 % certainty. This says nothing about "
        "whether enough is forbidden.",
        highlight=False,
        markup=False,
    )
    if out is not None:
        show_written(found.constraint.save(out))


def load_constraint(path: Path) -> "tuple[Constraint, Result | None]":
    """The constraint in a file, or in a folder with the whole result."""
    from tacit.inference.constraint import Constraint
    from tacit.inference.result import load

    if path.is_file():
        return Constraint.load(path), None
    with importable(Path.cwd()):
        result = load(path)
    return result.constraint, result


def held_out(folder: Path, result: "Result", demonstrations: "Trajectories") -> "Trajectories":
    """The demonstrations as the run sees them; an error if it learned from these."""
    from tacit.inference.experts import ExpertSteps, as_simulated, fingerprint

    if result.task is None:
        return demonstrations
    simulator, shown = as_simulated(result.task, demonstrations)
    if fingerprint(ExpertSteps.of(simulator, shown)) == result.settings["demonstrations_sha256"]:
        raise ArgumentError(
            f"{folder} was learned from these demonstrations: they are not held out, and "
            "satisfy it by construction; give others"
        )
    return shown
