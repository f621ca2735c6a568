"""`tacit calibrate`: do fresh experts satisfy what was learned from others?"""

from pathlib import Path

import tyro

from tacit.command_line.tables import console, percent, show_facts
from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError
from tacit.evaluation.conformal import calibrate as calibrated
from tacit.inference.constraint import LearnedConstraint
from tacit.inference.experts import ExpertSteps, fingerprint
from tacit.inference.result import load
from tacit.inference.simulated_result import SimulatedResult


def calibrate(
    folder: tyro.conf.Positional[Path],
    experts: Path,
    rate: float = 0.9,
    out: Path | None = None,
) -> None:
    """Check a learned constraint with held-out demonstrations, and adjust it on request.

    Args:
        folder: of `tacit infer`, or a file of a constraint.
        experts: demonstrations of the same experts that were not used to learn it.
        rate: share of fresh expert episodes that are to satisfy it.
        out: where to write the adjusted constraint.
    """
    demonstrations = Trajectories.load(experts)
    if folder.is_file():
        constraint = LearnedConstraint.load(folder)
    else:
        constraint = constraint_in(folder, demonstrations)
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
        written = found.constraint.save(out)
        console.print(f"written: {written}", markup=False, soft_wrap=True)


def constraint_in(folder: Path, held_out: Trajectories) -> LearnedConstraint:
    """The constraint of a run that learned from others than these."""
    result = load(folder)
    if not isinstance(result, SimulatedResult):
        raise ArgumentError(f"{folder}: a constraint in a table has nothing to calibrate")
    if result.task is not None:
        seen = fingerprint(ExpertSteps.of(result.task, held_out))
        if seen == result.settings["demonstrations_sha256"]:
            raise ArgumentError(
                f"{folder} was learned from these demonstrations: they are not held out, and "
                "satisfy it by construction; give others"
            )
    return result.constraint
