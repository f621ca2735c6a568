"""Recordings that were read before, kept as arrays: reading them again takes no time."""

import hashlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import StorageError
from tacit.highway.recording import Carriageway, Notices, Reading, Track
from tacit.runs.atomic_write import atomic_write

PARTS = ("boundaries", "tracks", "sizes", "states")
VERSION = 1
"""To be raised when a reader gives other numbers for the same files, or this layout changes."""


def cache_folder() -> Path | None:
    """Where recordings are kept: below TACIT_CACHE, else where the system keeps such files."""
    if chosen := os.environ.get("TACIT_CACHE"):
        return Path(chosen) / "highway"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "tacit" / "highway"


def cache_key(files: tuple[Path, ...], **options: Any) -> str:
    """What a kept recording depends on: the files as they are now, and how they were read."""
    states = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return json.dumps([VERSION, states, options], sort_keys=True)


def cache_path(folder: Path, name: str, key: str) -> Path:
    """The file for a key, with the name of the recording for people."""
    word = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    return folder / f"{word[:80]}-{hashlib.sha256(key.encode()).hexdigest()[:20]}.npz"


def keep(path: Path, key: str, reading: Reading) -> None:
    """Write a recording; a folder that cannot be written is no reason to fail."""
    arrays: dict[str, np.ndarray] = {}
    about = []
    for i, way in enumerate(reading.carriageways):
        about.append([way.name, way.direction, way.dt, way.frames, way.start, way.end])
        whole = [(track.vehicle, track.kind, track.first, len(track.s)) for track in way]
        arrays[f"boundaries_{i}"] = way.boundaries
        arrays[f"tracks_{i}"] = np.array(whole, np.int64).reshape(-1, 4)
        arrays[f"sizes_{i}"] = np.array([(track.length, track.width) for track in way]).reshape(
            -1, 2
        )
        states = [np.stack([track.s, track.d, track.vs, track.vd]) for track in way]
        arrays[f"states_{i}"] = np.concatenate([np.zeros((4, 0), np.float32), *states], axis=1)
    header = {"key": key, "about": about, "notices": [*reading.notices]}
    with suppress(StorageError), atomic_write(path) as part, part.open("xb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]


def recall(path: Path, key: str) -> Reading | None:
    """A recording that was kept, or None: never kept, damaged, or of other files."""
    try:
        # NumPy would leave the file of a damaged archive open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            header = json.loads(str(arrays["header"]))
            if header["key"] != key:
                return None
            ways = [
                carriageway_of(about, {name: arrays[f"{name}_{i}"] for name in PARTS})
                for i, about in enumerate(header["about"])
            ]
            name, counts = header["notices"]
            return Reading(tuple(ways), Notices(name, dict(counts)))
    # A damaged archive fails in a dozen ways, and all of them mean: read the recording again.
    except Exception:
        return None


def carriageway_of(about: list[Any], arrays: dict[str, np.ndarray]) -> Carriageway:
    """A carriageway from its arrays."""
    name, direction, dt, frames, start, end = about
    cuts = np.cumsum(arrays["tracks"][:, 3])
    pieces = np.split(arrays["states"], cuts[:-1], axis=1)
    tracks = [
        Track(vehicle, kind, length, width, first, *(row.copy() for row in piece))
        for (vehicle, kind, first, _), (length, width), piece in zip(
            arrays["tracks"].tolist(), arrays["sizes"].tolist(), pieces, strict=True
        )
    ]
    return Carriageway(name, direction, dt, frames, arrays["boundaries"], start, end, tuple(tracks))
