"""Folders of driving recordings: what is in them, named at once and read one by one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from tacit.errors import ArgumentError
from tacit.highway.exid_files import exid_reading
from tacit.highway.highd_files import highd_reading
from tacit.highway.ngsim_files import ngsim_reading
from tacit.highway.ngsim_tables import first_line, is_ngsim, sites_in
from tacit.highway.recording import (
    Carriageway,
    Geometry,
    Reading,
    RecordingError,
    refuse_geometry,
)
from tacit.highway.recording_cache import (
    cache_folder,
    cache_key,
    cache_path,
    keep,
    recall,
)
from tacit.highway.three_files import PARTS, ThreeFiles, three_files
from tacit.highway.us101_clips import us101_clip_names, us101_reading

DataSet = Literal["highD", "exiD", "NGSIM", "US-101 clips"]
ONE_OF_THREE = re.compile(rf"(.+)_(?:{'|'.join(PARTS)})\.csv(?:\.gz)?")
PLAIN_TABLE = re.compile(r"(.+)\.(?:csv|txt)(?:\.gz)?", re.IGNORECASE)
EXPECTED = (
    "expected highD or exiD (03_recordingMeta.csv, 03_tracksMeta.csv, 03_tracks.csv), NGSIM (text "
    "files of 18 columns or the CSV file of the data portal), or US-101 clips (us101_clips.csv, "
    "us101_states.csv); each may be compressed as .gz"
)


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
        """Its carriageways; says in one warning what was dropped or repaired.

        What was read is kept in the user's cache folder, or in TACIT_CACHE, until a file changes.
        """
        refuse_geometry(geometry)
        if geometry == "legacy" and self.data_set != "highD":
            raise ArgumentError(
                f"geometry: 'legacy' is how the published simulator shows highD; read {self.name} "
                f"({self.data_set}) with 'centre'"
            )
        folder = cache_folder() if cache else None
        if folder is None:
            return self.reading(geometry).issued()
        try:
            key = cache_key(self.files, geometry=geometry, data_set=self.data_set, part=self.part)
        except OSError as error:
            raise RecordingError(f"{self.files[0]}: cannot be read ({error})") from error
        path = cache_path(folder, self.name, key)
        reading = recall(path, key)
        if reading is None:
            reading = self.reading(geometry)
            keep(path, key, reading)
        return reading.issued()

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
    """Two recordings of the same name, in order of names: nobody could tell them apart."""
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
    """A file under its name or compressed, or None."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    return found[0] if found else None
