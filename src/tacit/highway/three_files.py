"""A recording as three CSV files: about itself, about its vehicles, and their tracks.

highD and exiD come like this: `03_recordingMeta.csv`, `03_tracksMeta.csv` and `03_tracks.csv`,
each of which may be compressed (`.csv.gz`).
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from tacit.highway.csv_columns import Columns, Layout, read_columns
from tacit.highway.recording import Notices, RecordingError

PARTS = ("recordingMeta", "tracksMeta", "tracks")


class ThreeFiles(NamedTuple):
    """The files of one recording, and its name, e.g. "03"."""

    name: str
    recording: Path
    vehicles: Path
    tracks: Path


def three_files(folder: Path, number: int | str) -> ThreeFiles:
    """The files of a recording; a number has two digits in their names."""
    name = f"{number:02d}" if isinstance(number, int) else number
    paths = []
    for part in PARTS:
        choices = [folder / f"{name}_{part}.csv", folder / f"{name}_{part}.csv.gz"]
        found = [path for path in choices if path.is_file()]
        if not found:
            raise RecordingError(
                f"{choices[0]}: is missing (also as .csv.gz); a recording needs the files "
                + ", ".join(f"{name}_{wanted}.csv" for wanted in PARTS)
            )
        paths.append(found[0])
    return ThreeFiles(name, *paths)


def read_about_recording(files: ThreeFiles, layout: Layout, number: str) -> Columns:
    """The one row about the recording; its number, in column `number`, must be that of the name."""
    about = read_columns(files.recording, layout)
    if len(about) != 1:
        raise RecordingError(f"{files.recording}: has {len(about)} rows; it must have one")
    refuse_number(about, number, files.name)
    if not about["frameRate"][0] > 0:
        raise RecordingError(
            f"{about.place(0, 'frameRate')}: is {about['frameRate'][0]}; it must be positive"
        )
    return about


def refuse_number(columns: Columns, column: str, name: str) -> None:
    """A file that belongs to another recording than its name says."""
    if not name.isdecimal():
        return
    wrong = np.flatnonzero(columns[column] != int(name))
    if len(wrong):
        raise RecordingError(
            f"{columns.place(wrong[0], column)}: is {columns[column][wrong[0]]}, but the name of "
            f"the file says {name}; one of them is wrong"
        )


def match_vehicles(
    vehicle: Int[np.ndarray, " rows"],
    described: Int[np.ndarray, " vehicles"],
    numbers: Int[np.ndarray, " vehicles"],
    notices: Notices,
) -> Int[np.ndarray, " rows"]:
    """For each row of the tracks the place of its vehicle in the description, or -1.

    Args:
        vehicle: of each row of the tracks.
        described: vehicles in the file about them.
        numbers: of frames that they should have.
        notices: gets what does not fit.
    """
    known, places = np.unique(described, return_index=True)
    notices.add("vehicles described twice, the first counts", len(described) - len(known))
    at = np.searchsorted(known, vehicle).clip(max=len(known) - 1)
    found = known[at] == vehicle
    lost = len(np.unique(vehicle[~found]))
    notices.add("vehicles dropped, they have rows but no description", lost)
    seen = np.bincount(at[found], minlength=len(known))
    notices.add("vehicles described that have no rows", int((seen == 0).sum()))
    other = (seen != numbers[places]) & (seen > 0)
    notices.add("vehicles with another number of frames than described", int(other.sum()))
    return np.where(found, places[at], -1)
