"""Folders of driving recordings: what is in them, read one by one.

What was read once is kept as arrays in a cache folder, because reading text takes long.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tacit.errors import ArgumentError, StorageError
from tacit.highway.csv_columns import first_line
from tacit.highway.exid_files import exid_reading
from tacit.highway.highd_files import PARTS, ThreeFiles, highd_reading, three_files
from tacit.highway.ngsim_files import (
    is_ngsim,
    ngsim_reading,
    sites_in,
    us101_clip_names,
    us101_reading,
)
from tacit.highway.recording import (
    Carriageway,
    Geometry,
    Notices,
    Reading,
    RecordingError,
    Track,
    refuse_geometry,
)
from tacit.runs.atomic_write import atomic_write

DataSet = Literal["highD", "exiD", "NGSIM", "US-101 clips"]
ONE_OF_THREE = re.compile(rf"(.+)_(?:{'|'.join(PARTS)})\.csv(?:\.gz)?")
PLAIN_TABLE = re.compile(r"(.+)\.(?:csv|txt)(?:\.gz)?", re.IGNORECASE)
EXPECTED = (
    "expected highD or exiD (03_recordingMeta.csv, 03_tracksMeta.csv, 03_tracks.csv), NGSIM (text "
    "files of 18 columns or the CSV file of the data portal), or US-101 clips (us101_clips.csv, "
    "us101_states.csv); each may be compressed as .gz"
)
KEPT = ("boundaries", "tracks", "sizes", "states")
VERSION = 1
"""Raise it when a reader gives other numbers for the same files, or this layout changes."""


@dataclass(frozen=True)
class RecordingSource:
    """A recording that can be read when it is needed.

    Fields:
        name: of the recording, unique in its folder.
        data_set: where it comes from.
        files: that it is read from.
        part: of files that hold several recordings: the site (NGSIM) or the clip (US-101 clips).
    """

    name: str
    data_set: DataSet
    files: tuple[Path, ...]
    part: str | None = None

    def read(self, geometry: Geometry = "centre", cache: bool = True) -> tuple[Carriageway, ...]:
        """Read its carriageways; one warning says what was dropped or repaired.

        The result is kept in the user's cache folder, or in TACIT_CACHE, until a file changes.
        """
        refuse_geometry(geometry)
        if geometry == "legacy" and self.data_set != "highD":
            raise ArgumentError(
                f"geometry: 'legacy' is how the published simulator shows highD; read {self.name} "
                f"({self.data_set}) with 'centre'"
            )
        folder = cache_folder() if cache else None
        if folder is None:
            return self.reading(geometry).announce()
        try:
            key = cache_key(self.files, geometry=geometry, data_set=self.data_set, part=self.part)
        except OSError as error:
            raise RecordingError(f"{self.files[0]}: cannot be read ({error})") from error
        path = cache_path(folder, self.name, key)
        reading = recall(path, key)
        if reading is None:
            reading = self.reading(geometry)
            keep(path, key, reading)
        return reading.announce()

    def reading(self, geometry: Geometry) -> Reading:
        """Read the files themselves."""
        if self.data_set == "highD":
            return highd_reading(ThreeFiles(self.name, *self.files), geometry)
        if self.data_set == "exiD":
            return exid_reading(ThreeFiles(self.name, *self.files))
        if self.data_set == "NGSIM":
            return ngsim_reading(self.files[0], self.part)
        return us101_reading(self.files[0], self.files[1], self.name)


def find_recordings(folder: str | Path) -> tuple[RecordingSource, ...]:
    """All recordings in a folder, or in its folder `data`, ordered by name; none is loaded."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RecordingError(f"{folder}: is not a folder; {EXPECTED}")
    for place in (folder, folder / "data"):
        found = list(recordings_in(place)) if place.is_dir() else []
        if found:
            found.sort(key=lambda source: source.name)
            refuse_twins(found)
            return tuple(found)
    raise RecordingError(f"{folder}: holds no recording; {EXPECTED}")


def refuse_twins(sources: list[RecordingSource]) -> None:
    """Raise an error if two of the recordings, which are sorted by name, have the same name."""
    for one, other in pairwise(sources):
        if one.name == other.name:
            raise RecordingError(
                f"{other.files[0]}: holds recording {one.name!r}, as does {one.files[0]}; move one "
                "of them to another folder"
            )


def recordings_in(folder: Path) -> Iterator[RecordingSource]:
    """The recordings of all data sets in one folder."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    three = [match[1] for name in names if (match := ONE_OF_THREE.fullmatch(name))]
    for name in dict.fromkeys(three):
        files = three_files(folder, name)
        data_set = "exiD" if "xCenter" in first_line(files.tracks) else "highD"
        yield RecordingSource(name, data_set, tuple(files[1:]))
    clips, states = (either(folder, f"us101_{part}.csv") for part in ("clips", "states"))
    if clips and states:
        for name in us101_clip_names(clips):
            yield RecordingSource(name, "US-101 clips", (states, clips), name)
    for name in names:
        if (match := PLAIN_TABLE.fullmatch(name)) and not ONE_OF_THREE.fullmatch(name):
            yield from ngsim_in(folder / name, match[1])


def ngsim_in(path: Path, name: str) -> Iterator[RecordingSource]:
    """The sites of an NGSIM file; nothing if it is another file, such as a README."""
    try:
        if not is_ngsim(first_line(path)):
            return
    except RecordingError:
        return
    for site in sites_in(path):
        yield RecordingSource(name if site is None else site, "NGSIM", (path,), site)


def either(folder: Path, name: str) -> Path | None:
    """The file of that name, plain or compressed; None if there is neither."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    return found[0] if found else None


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
    """The file for a key; its name begins with that of the recording, for people."""
    word = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    return folder / f"{word[:80]}-{hashlib.sha256(key.encode()).hexdigest()[:20]}.npz"


def keep(path: Path, key: str, reading: Reading) -> None:
    """Write a recording to the cache, if the folder can be written."""
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
    """Read a recording from the cache; None if it is missing, damaged or of other files."""
    try:
        # NumPy would leave the file of a damaged archive open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            header = json.loads(str(arrays["header"]))
            if header["key"] != key:
                return None
            ways = [
                carriageway_of(about, {name: arrays[f"{name}_{i}"] for name in KEPT})
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
