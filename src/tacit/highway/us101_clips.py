"""Clips of the NGSIM recording of US-101, 10 Hz: `us101_states.csv.gz` and `us101_clips.csv`.

Places along and across the road are given, with `d` = 0 on the centre of the leftmost lane. The
files do not say what a vehicle is, so long ones are taken for trucks.
"""

from pathlib import Path

import numpy as np

from tacit.highway.csv_columns import Columns, Layout, blocks, joined, read_columns
from tacit.highway.recording import Carriageway, Notices, Reading, RecordingError
from tacit.highway.track_pieces import (
    Motion,
    extent,
    in_order,
    kinds_by_length,
    refuse_frames,
    tracks_of,
    typical_sizes,
)

CLIPS = Layout(whole=("steps", "lanes"), real=("dt", "lane_width_m"), text=("clip",))
WHOLE, REAL = ("id", "step"), ("v", "s", "d", "heading")


def us101_clip_names(clips: Path) -> tuple[str, ...]:
    """The names of all clips, in the order of the file."""
    return tuple(str(name) for name in read_columns(clips, CLIPS)["clip"])


def read_us101_clip(states: str | Path, clips: str | Path, name: str) -> Carriageway:
    """One clip; says in one warning what was repaired."""
    return us101_reading(Path(states), Path(clips), name).issued()[0]


def us101_reading(states: Path, clips: Path, name: str) -> Reading:
    """One clip, and what was dropped or repaired."""
    about = read_columns(clips, CLIPS)
    about = about.take(about["clip"] == name)
    if len(about) != 1:
        raise RecordingError(
            f"{clips}: column 'clip': {name!r} is there {len(about)} times, not once"
        )
    lanes, width, dt = (about[column][0] for column in ("lanes", "lane_width_m", "dt"))
    for column in ("lanes", "lane_width_m", "dt", "steps"):
        if not about[column][0] > 0:
            raise RecordingError(
                f"{about.place(0, column)}: is {about[column][0]}; it must be positive"
            )
    notices = Notices(name, {})
    rows = in_order(clip_rows(states, name), "id", "step", notices)
    refuse_frames(rows, "step", 0)
    sizes = typical_sizes(rows["id"], rows["length"], rows["width"], notices)
    motion = Motion(
        vehicle=rows["id"],
        frame=rows["step"],
        s=rows["s"],
        d=rows["d"],
        vs=rows["v"] * np.cos(rows["heading"]),
        vd=rows["v"] * np.sin(rows["heading"]),
        length=sizes.length,
        width=sizes.width,
        kind=kinds_by_length(sizes.length),
    ).take(sizes.possible)
    tracks = tracks_of(motion, notices)
    if not tracks:
        raise RecordingError(f"{states}: no vehicle of clip {name!r} is left; {notices.counts}")
    start, end = extent(motion)
    carriageway = Carriageway(
        name=name,
        direction=1,
        dt=float(dt),
        frames=max(int(about["steps"][0]), int(motion.frame.max()) + 1),
        boundaries=(0.5 - np.arange(lanes + 1)) * width,
        start=start,
        end=end,
        tracks=tracks,
    )
    return Reading((carriageway,), notices)


def clip_rows(states: Path, name: str) -> Columns:
    """The rows of one clip."""
    layout = Layout(
        whole=WHOLE, real=REAL, gappy=("length", "width"), text=("clip",), only=name.lower()
    )
    parts = [part.take(part["clip"] == name) for part in blocks(states, layout)]
    rows = joined(states, parts)
    if rows is None:
        raise RecordingError(f"{states}: column 'clip': no row belongs to clip {name!r}")
    return rows
