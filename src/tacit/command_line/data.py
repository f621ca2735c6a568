"""`tacit data`: look at demonstrations and turn one format into another."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import tyro

from tacit.command_line.tables import console, percent, show_facts
from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError, StorageError
from tacit.evaluation.intervals import mean_interval
from tacit.evaluation.violation import violation_rate


def data(
    action: tyro.conf.Positional[Literal["show", "convert"]],
    file: tyro.conf.Positional[Path],
    out: Path | None = None,
) -> None:
    """Look at a file of demonstrations, or write it in another format.

    Args:
        action: show or convert.
        file: .hdf5, .npz, .csv or a folder in Minari's layout.
        out: with convert: what to write; the ending tells the format.
    """
    demonstrations = read(file)
    if action == "convert":
        if out is None:
            raise ArgumentError("convert needs --out, the file to write")
        write(demonstrations, out)
        console.print(f"written: {out}", markup=False)
        return
    lengths = demonstrations.lengths
    facts = {
        "episodes": str(len(demonstrations)),
        "steps": str(demonstrations.steps),
        "length of an episode": f"{lengths.min()} to {lengths.max()}",
        "observation": f"{demonstrations.observations.shape[2]} x "
        f"{demonstrations.observations.dtype}",
        "action": f"{demonstrations.actions.shape[2]} x {demonstrations.actions.dtype}",
        "reward per episode": str(mean_interval(demonstrations.returns)),
    }
    if demonstrations.costs is not None:
        facts["violation"] = percent(violation_rate(demonstrations))
    for name, value in demonstrations.provenance.items():
        facts[f"provenance: {name}"] = str(value)
    show_facts(str(file), facts)


def read(file: Path) -> Trajectories:
    """Read demonstrations in the format that the file's ending tells."""
    readers: dict[str, Callable[[Path], Trajectories]] = {
        ".npz": Trajectories.from_npz,
        ".csv": Trajectories.from_csv,
    }
    return readers.get(file.suffix, Trajectories.load)(file)


def check_destination(out: Path) -> None:
    """Raise an error now if `write` could not write there after long work."""
    known = (".hdf5", ".npz", ".csv")
    if out.suffix not in known and out.suffix[1:].isalpha():
        raise ArgumentError(
            f"{out}: the ending must be {', '.join(known)}, or none for a folder in Minari's layout"
        )
    if out.suffix in known and out.is_dir():
        raise StorageError(f"{out}: is a folder; choose another name")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{out}: cannot be written ({error})") from error
    if not os.access(out.parent, os.W_OK):
        raise StorageError(f"{out}: {out.parent} cannot be written to; check its permissions")


def write(demonstrations: Trajectories, out: Path) -> None:
    """Write demonstrations in the format that the file's ending tells."""
    writers = {".npz": demonstrations.to_npz, ".csv": demonstrations.to_csv}
    writers.get(out.suffix, demonstrations.save)(out)
