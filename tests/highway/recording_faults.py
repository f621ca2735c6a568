"""Damage that recordings come with, made on purpose, to test what reads them.

Each fault edits the first recording of a folder in the layout of highD, and says what a reader must
do about it: refuse the recording (`error`), go on with a warning, or take it as it is.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from text_table import TextTable
from vehicle_faults import (
    cut_frames,
    cut_to_one_frame,
    drop_description,
    drop_rows,
    each_time_to_collision,
    fewer_frames_described,
    jitter,
    no_frames,
    repeat_rows,
    resize,
    swap_sizes,
    turn_around,
    unknown_directions,
)

from tacit.errors import StorageError
from tacit.highway.highd_files import ThreeFiles, three_files
from tacit.runs.atomic_write import atomic_write

Expected = Literal["error", "warning", "accepted"]
Edit = Callable[[TextTable], TextTable]


class Fault(NamedTuple):
    """One kind of damage.

    Fields:
        what: it does, in one line.
        expected: of a reader; `warning` after a repair or after leaving a vehicle out.
        damage: edits the files of a recording.
    """

    what: str
    expected: Expected
    damage: Callable[[ThreeFiles], None]

    def inject(self, folder: Path) -> None:
        """Edit the first recording of a folder."""
        names = sorted(path.name for path in folder.glob("*_recordingMeta.csv"))
        if not names:
            raise StorageError(f"{folder}: has no *_recordingMeta.csv; nothing to damage")
        self.damage(three_files(folder, names[0].removesuffix("_recordingMeta.csv")))


def edit_tracks(edit: Edit, files: ThreeFiles) -> None:
    """Rewrite the rows of all vehicles."""
    edit(TextTable.read(files.tracks)).write(files.tracks)


def edit_recording(edit: Edit, files: ThreeFiles) -> None:
    """Rewrite the row about the recording."""
    edit(TextTable.read(files.recording)).write(files.recording)


def set_recording(column: str, cell: str) -> Callable[[ThreeFiles], None]:
    """Another cell in the row about the recording."""
    return partial(edit_recording, lambda table: table.change(column, cell))


def mark_byte_order(files: ThreeFiles) -> None:
    """Put the mark in front of all three files."""
    for path in files[1:]:
        with atomic_write(path) as part:
            part.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def write_with_semicolons(files: ThreeFiles) -> None:
    """All three files; the lists of markings are then in quotes."""
    for path in files[1:]:
        TextTable.read(path).write(path, separator=";")


def write_decimal_commas(files: ThreeFiles) -> None:
    """In quotes, as a spreadsheet exports them."""
    table = TextTable.read(files.tracks)
    rows = [[cell.replace(".", ",") for cell in row] for row in table.rows]
    TextTable(table.names, rows).write(files.tracks)


def reverse_columns(files: ThreeFiles) -> None:
    """In all three files."""
    for path in files[1:]:
        table = TextTable.read(path)
        table.in_order(table.names[::-1]).write(path)


def add_columns(files: ThreeFiles) -> None:
    """In all three files."""
    for path in files[1:]:
        TextTable.read(path).with_column("weather", "sunny").write(path)


def descend(markings: str) -> str:
    """Markings in the opposite order."""
    return ";".join(markings.split(";")[::-1])


def empty(files: ThreeFiles) -> None:
    """Keep the file, without a single byte."""
    with atomic_write(files.tracks) as part:
        part.touch()


FAULTS: Mapping[str, Fault] = {
    "missing-tracks-file": Fault(
        "there is no tracks file", "error", lambda files: files.tracks.unlink()
    ),
    "missing-vehicles-file": Fault(
        "there is no tracksMeta file", "error", lambda files: files.vehicles.unlink()
    ),
    "missing-recording-file": Fault(
        "there is no recordingMeta file", "error", lambda files: files.recording.unlink()
    ),
    "other-recording-id": Fault(
        "recordingMeta has another id than its name", "error", set_recording("id", "77")
    ),
    "empty-file": Fault("the tracks file has no bytes", "error", empty),
    "no-rows": Fault(
        "the tracks file has a header only",
        "error",
        partial(edit_tracks, lambda table: TextTable(table.names, [])),
    ),
    "byte-order-mark": Fault("all files begin with one", "accepted", mark_byte_order),
    "semicolon-separator": Fault("cells are separated by ;", "error", write_with_semicolons),
    "decimal-comma": Fault("numbers are written 1,5", "error", write_decimal_commas),
    "missing-column": Fault(
        "tracks have no xVelocity",
        "error",
        partial(edit_tracks, lambda table: table.without_column("xVelocity")),
    ),
    "unknown-column": Fault(
        "the column xVelocity has another name",
        "error",
        partial(edit_tracks, lambda table: table.renamed("xVelocity", "speed")),
    ),
    "missing-gap-column": Fault(
        "tracks have no dhw, which no reader needs",
        "accepted",
        partial(edit_tracks, lambda table: table.without_column("dhw")),
    ),
    "extra-column": Fault("all files have one more column", "accepted", add_columns),
    "column-order": Fault("all files have their columns reversed", "accepted", reverse_columns),
    "frame-rate": Fault("frameRate is 10", "accepted", set_recording("frameRate", "10")),
    "no-lane-markings": Fault(
        "upperLaneMarkings is empty", "error", set_recording("upperLaneMarkings", "")
    ),
    "one-lane-marking": Fault(
        "lowerLaneMarkings has one value", "error", set_recording("lowerLaneMarkings", "20.50")
    ),
    "descending-markings": Fault(
        "lowerLaneMarkings descend",
        "error",
        partial(edit_recording, lambda table: table.change("lowerLaneMarkings", descend)),
    ),
    "no-speed-limit": Fault("speedLimit is -1", "accepted", set_recording("speedLimit", "-1.00")),
    "driving-direction": Fault(
        "one vehicle has direction 3; needs 100 vehicles",
        "warning",
        partial(unknown_directions, every=None),
    ),
    "driving-directions": Fault(
        "every tenth vehicle has direction 3", "error", partial(unknown_directions, every=10)
    ),
    "wrong-way": Fault(
        "one vehicle has the other direction; needs 100 vehicles",
        "warning",
        partial(turn_around, every=None),
    ),
    "wrong-ways": Fault(
        "every tenth vehicle has the other direction", "error", partial(turn_around, every=10)
    ),
    "meta-without-track": Fault("a described vehicle has no rows", "warning", drop_rows),
    "track-without-meta": Fault("a vehicle is not described", "warning", drop_description),
    "frame-count": Fault("numFrames is one too few", "warning", fewer_frames_described),
    "missing-frames": Fault("a track has a hole of 3 frames", "warning", cut_frames),
    "zero-frames": Fault("a vehicle has numFrames 0 and no rows", "warning", no_frames),
    "single-frame": Fault("a vehicle has one frame", "warning", cut_to_one_frame),
    "duplicate-rows": Fault("3 rows come twice, the second time 50 m away", "warning", repeat_rows),
    "zero-size": Fault("a vehicle has no width", "warning", partial(resize, size="0.00")),
    "negative-size": Fault(
        "a vehicle's width is negative", "warning", partial(resize, size="-4.50")
    ),
    "nan-size": Fault("a vehicle's width is nan", "warning", partial(resize, size="nan")),
    "jittering-size": Fault("sizes change by a centimetre", "accepted", jitter),
    "swapped-size": Fault("a vehicle is wider than long", "warning", swap_sizes),
    "absent-leader": Fault(
        "precedingId names nobody",
        "accepted",
        partial(edit_tracks, lambda table: table.change("precedingId", "99999")),
    ),
    "zero-gap": Fault(
        "dhw is 0 although there is a leader",
        "accepted",
        partial(edit_tracks, lambda table: table.change("dhw", "0.00")),
    ),
    "wild-ttc": Fault(
        "ttc is negative or huge",
        "accepted",
        partial(edit_tracks, each_time_to_collision),
    ),
}
"""Every kind of damage, by name."""
