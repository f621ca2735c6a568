"""Demonstrations from and to npz archives; tables are in `csv_table`.

Two layouts are read. Padded: the fields of `Trajectories` under their names. Flat, as in D4RL: all
steps one after the other with `terminals` and `timeouts`, and `next_observations` because the final
observation of each episode is part of the demonstration.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacit.demonstrations.checks import LARGEST_BYTES, blame, flags, numbers, place
from tacit.demonstrations.trajectories import ARRAY_FIELDS, PathName, Trajectories
from tacit.errors import DemonstrationError
from tacit.runs.atomic_write import atomic_write

OPTIONAL = ("costs", "terminated", "provenance")
FLAT = ("observations", "next_observations", "actions", "rewards", "terminals")
KNOWN = {*ARRAY_FIELDS, *OPTIONAL, *FLAT, "timeouts"}
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def write_npz(trajectories: Trajectories, path: PathName) -> None:
    """Write the padded arrays under their field names, and the provenance as JSON text."""
    fields = {name: getattr(trajectories, name) for name in ARRAY_FIELDS}
    kept = {name: array for name, array in fields.items() if array is not None}
    facts = np.array(json.dumps(dict(trajectories.provenance)))
    with atomic_write(Path(path)) as part, part.open("xb") as file:
        np.savez_compressed(file, **kept, provenance=facts)


def read_npz(path: PathName) -> Trajectories:
    """Read either layout, whole or not at all."""
    path = Path(path)
    with blame(path):
        fields = read_archive(path)
        if "lengths" in fields:
            return from_padded(fields)
        if "terminals" in fields:
            return from_flat(fields)
        raise DemonstrationError(
            f"field 'lengths': is missing (there are: {', '.join(fields) or 'no fields'}); give "
            "padded arrays with 'lengths', or flat ones with 'terminals' and 'next_observations'"
        )


def read_archive(path: Path) -> dict[str, np.ndarray]:
    """The known arrays of the archive (others stay empty); Python objects are refused."""
    if not path.is_file():
        raise DemonstrationError("is not a file; check the name and the working directory")
    what = "the archive"
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            declared = sum(member.file_size for member in archive.infolist())
            if declared > LARGEST_BYTES:
                raise DemonstrationError(
                    f"declares {declared} bytes, more than {LARGEST_BYTES}; it is damaged or must "
                    "be split"
                )
            fields = {}
            for member in archive.namelist():
                name = member.removesuffix(".npy")
                what = f"field '{name}'"
                if name not in KNOWN:
                    fields[name] = np.empty(0)
                    continue
                with archive.open(member) as stream:
                    fields[name] = np.lib.format.read_array(stream, allow_pickle=False)
                    stream.read()  # the checksum is looked at when the end is reached
            return fields
    except DemonstrationError:
        raise
    except UNREADABLE as error:
        raise DemonstrationError(
            f"{what} cannot be read ({error}); it must be an .npz of number arrays, without "
            "Python objects: save it again or get a fresh copy"
        ) from error


def from_padded(fields: Mapping[str, np.ndarray]) -> Trajectories:
    """The fields of `Trajectories` under their names."""
    for name in ARRAY_FIELDS:
        if name not in fields and name not in OPTIONAL:
            raise DemonstrationError(f"field '{name}': is missing; padded archives need it")
    if unknown := sorted(set(fields) - {*ARRAY_FIELDS, *OPTIONAL}):
        raise DemonstrationError(
            f"field '{unknown[0]}': is unknown; rename it to one of "
            f"{', '.join((*ARRAY_FIELDS, 'provenance'))}, or leave it out"
        )
    arrays: dict[str, Any] = {name: fields.get(name) for name in ARRAY_FIELDS}
    try:
        facts = json.loads(str(fields["provenance"])) if "provenance" in fields else {}
        return Trajectories(**arrays, provenance=dict(facts))
    except (json.JSONDecodeError, TypeError) as error:
        raise DemonstrationError(f"field 'provenance': is not a JSON object ({error})") from error


def from_flat(fields: Mapping[str, np.ndarray]) -> Trajectories:
    """Steps one after the other, cut where `terminals` or `timeouts` is true."""
    for name in FLAT:
        if name not in fields:
            raise DemonstrationError(
                f"field '{name}': is missing; flat archives need {', '.join(FLAT)}"
            )
    steps = len(np.atleast_1d(fields["rewards"]))
    flat: dict[str, np.ndarray] = {}
    for name in (*FLAT, "timeouts", "costs"):
        array = fields.get(name, np.zeros(steps, bool))
        if array.ndim == 0 or len(array) != steps:
            raise DemonstrationError(
                f"field '{name}': has shape {array.shape}, but there are {steps} rewards"
            )
        ends = name in ("terminals", "timeouts")
        flat[name] = flags(array, name).reshape(-1) if ends else numbers(array, name)
    if steps == 0:
        raise DemonstrationError("field 'rewards': there are no steps; give at least one episode")
    last = flat["terminals"] | flat["timeouts"]
    last[-1] = True
    refuse_jumps(flat["observations"], flat["next_observations"], last)
    cuts = np.flatnonzero(last)[:-1] + 1
    following = np.split(flat["next_observations"], cuts)
    return Trajectories.from_arrays(
        observations=[
            np.concatenate([before, after[-1:]])
            for before, after in zip(np.split(flat["observations"], cuts), following, strict=True)
        ],
        actions=np.split(flat["actions"], cuts),
        rewards=np.split(flat["rewards"], cuts),
        costs=np.split(flat["costs"], cuts) if "costs" in fields else None,
        terminated=flat["terminals"][last],
        provenance={"imported": "flat npz"},
    )


def refuse_jumps(observations: np.ndarray, following: np.ndarray, last: np.ndarray) -> None:
    """Within an episode, what follows a step must be what the next step starts from."""
    if observations.shape != following.shape:
        raise DemonstrationError(
            f"field 'next_observations': has shape {following.shape}, observations have "
            f"{observations.shape}"
        )
    same = observations[1:] == following[:-1]
    same |= (observations[1:] != observations[1:]) & (following[:-1] != following[:-1])
    jumps = ~same.reshape(len(same), -1).all(axis=1) & ~last[:-1]
    if jumps.any():
        step = int(np.flatnonzero(jumps)[0])
        episode = int(last[:step].sum())
        raise DemonstrationError(
            f"{place(episode, 'next_observations')}: row {step} of the archive differs from "
            f"observation {step + 1}; mark the end of each episode in 'terminals' or 'timeouts'"
        )
