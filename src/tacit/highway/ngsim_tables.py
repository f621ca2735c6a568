"""The two layouts in which NGSIM recordings come, read one site at a time."""

from pathlib import Path

import numpy as np
from jaxtyping import Int

from tacit.errors import ArgumentError
from tacit.highway.csv_columns import Columns, Layout, blocks, joined, text_of
from tacit.highway.recording import RecordingError
from tacit.highway.track_pieces import refuse_frames

US_101, I_80 = "us-101", "i-80"
MAIN_LANES = {US_101: 5, I_80: 6}
"""Sites on motorways, and how many lanes go straight on; further ones are ramps."""
TEXT_HEADER = (
    *("vehicle_id", "frame_id", "total_frames", "global_time", "local_x", "local_y"),
    *("global_x", "global_y", "v_length", "v_width", "v_class", "v_vel", "v_acc", "lane_id"),
    *("preceding", "following", "space_headway", "time_headway"),
)
WHOLE = ("vehicle_id", "frame_id", "global_time", "v_class", "lane_id")
REAL = ("local_x", "local_y", "v_vel")
SIZES = ("v_length", "v_width")
SMALL = {
    "vehicle_id": np.int64,
    "frame_id": np.int32,
    **dict.fromkeys((*REAL, *SIZES), np.float32),
}
LONGEST_PAUSE = 60_000
"""Two periods begin further apart than this, in milliseconds; within one, clocks may slip."""
SCAN_BYTES = 2**24


def ngsim_periods(path: Path, site: str | None) -> tuple[Columns, Int[np.ndarray, " rows"]]:
    """The rows of a site, and the period of each, counted from 0 in the order of time.

    A column `start` says when, in milliseconds since 1970, frame 0 would have been.
    """
    layout = ngsim_layout(path, site)
    parts = []
    for part in blocks(path, layout):
        if "location" in layout.text:
            part = part.take(np.char.lower(part["location"]) == site)
        refuse_frames(part, "frame_id", 0)
        parts.append(small(part))
    rows = joined(path, parts)
    if rows is None:
        what = "is empty" if site is None else f"column 'Location': no row belongs to {site!r}"
        raise RecordingError(f"{path}: {what}")
    starts = np.unique(rows["start"])
    firsts = starts[np.concatenate([[True], np.diff(starts) > LONGEST_PAUSE])]
    period = np.searchsorted(firsts, rows["start"], side="right") - 1
    return rows, period.astype(np.int32)


def small(part: Columns) -> Columns:
    """Half the memory, because a site has millions of rows."""
    values = {name: part[name].astype(dtype) for name, dtype in SMALL.items()}
    for name in ("v_class", "lane_id"):
        values[name] = part[name].clip(-1, 99).astype(np.int8)
    values["start"] = part["global_time"] - 100 * part["frame_id"]
    return Columns(part.path, part.row.astype(np.int32), values)


def ngsim_layout(path: Path, site: str | None) -> Layout:
    """How the file is written: with a header or not, by commas or white space, mixed sites."""
    line = first_line(path)
    separator = "," if "," in line else None
    if not any(letter.isalpha() for letter in line.replace("e", "").replace("E", "")):
        refuse_site(path, site)
        return Layout(
            whole=WHOLE,
            real=REAL,
            gappy=SIZES,
            header=TEXT_HEADER,
            separator=separator,
            thousands=separator is not None,
        )
    mixed = "location" in line.lower()
    if not mixed:
        refuse_site(path, site)
    elif site not in MAIN_LANES:
        raise ArgumentError(
            f"site: is {site!r}, but {path} holds several; choose one of {', '.join(MAIN_LANES)}"
        )
    return Layout(
        whole=WHOLE,
        real=REAL,
        gappy=SIZES,
        text=("location",) if mixed else (),
        any_case=True,
        thousands=True,
        only=site,
    )


def refuse_site(path: Path, site: str | None) -> None:
    """A file without the column `Location` holds one site only."""
    if site is not None:
        raise ArgumentError(f"site: is {site!r}, but {path} does not say where it was recorded")


def first_line(path: Path) -> str:
    """The first line, to see how a file is written."""
    with text_of(path) as file:
        line = file.readline(100_000)
    if not line.strip():
        raise RecordingError(f"{path}: is empty; copy or unpack the file again")
    return line


def is_ngsim(line: str) -> bool:
    """Whether a file that begins with this line is an NGSIM recording."""
    names = line.lower().replace('"', "").replace(",", " ").split()
    if {"vehicle_id", "frame_id", "local_x", "local_y"} <= set(names):
        return True
    try:
        return len([float(cell) for cell in names]) == len(TEXT_HEADER)
    except ValueError:
        return False


def sites_in(path: Path) -> tuple[str | None, ...]:
    """The motorways in a file: (None,) if it has no column `Location`.

    A file of the data portal is searched for their names, up to the end if one is missing.
    """
    if "location" not in first_line(path).lower():
        return (None,)
    found: set[str] = set()
    with text_of(path) as file:
        tail = ""
        while len(found) < len(MAIN_LANES) and (text := file.read(SCAN_BYTES)):
            found |= {site for site in MAIN_LANES if site in (tail + text).lower()}
            tail = text[-16:]
    return tuple(site for site in MAIN_LANES if site in found)
