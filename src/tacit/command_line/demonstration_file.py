"""Files of demonstrations by their endings."""

import os
from collections.abc import Callable
from pathlib import Path

from tacit.demonstrations.dataset_file import refuse_foreign_folder
from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError, StorageError


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
    if out.suffix not in known:
        refuse_foreign_folder(out, out / "data")
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
