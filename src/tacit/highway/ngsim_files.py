"""NGSIM US-101 and I-80 at 10 Hz: text without header, the CSV file of the data portal, and clips.

**Text and portal** are in feet. `Local_Y` and `Local_X` are the front centre of a vehicle, along
the road and to the **right**. With the length l of the vehicle, in metres: s = Local_Y - l / 2 and
d = -Local_X. Speeds are derivatives of the places after a mean over one second, because the
recorded ones are rounded to 5 ft/s and contradict the places. The reader leaves out ramps and
auxiliary lanes, and the first and last minute, where traffic is thin because only complete
trajectories were recorded.

A site numbers its vehicles and frames anew in every period. The time at which frame 0 would have
been, `Global_Time` - 100 ms x `Frame_ID`, tells the periods apart.

**Clips** of US-101 (`us101_states.csv`, `us101_clips.csv`) are in metres and give places along and
across the road, with `d` = 0 on the centre of the leftmost lane. They do not say what a vehicle is,
so long ones are taken for trucks.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.errors import ArgumentError
from tacit.highway.csv_columns import (
    Columns,
    Layout,
    blocks,
    first_line,
    joined,
    read_columns,
    text_of,
)
from tacit.highway.recording import CAR, TRUCK, Carriageway, Notices, Reading, RecordingError, Track
from tacit.highway.tracks import (
    Motion,
    extent,
    in_order,
    kinds_by_length,
    lane_boundaries,
    reentries,
    refuse_frames,
    refuse_not_positive,
    tracks_of,
    typical_sizes,
    without_unknown,
)

FOOT = 0.3048
DT = 0.1
LANE_WIDTH = 12 * FOOT
KINDS = np.array([0, CAR, CAR, TRUCK])
"""By class: 1 motorcycle, 2 car, 3 truck; 0 is unknown."""
LONGEST_STEP = 5.0
"""Metres per frame: a longer step is a jump of the position."""
WORST_SPEED = 2.0
"""m/s by which recorded speeds may usually differ from those of the places."""
HALF_SECOND = 5
"""In frames."""
I_80_DAYS = (1_113_350_400_000, 1_113_523_200_000)
"""13 and 14 April 2005 in milliseconds since 1970; US-101 was recorded in June."""
US_101, I_80 = "us-101", "i-80"
MAIN_LANES = {US_101: 5, I_80: 6}
"""Sites on motorways, and how many lanes go straight on; further ones are ramps."""
TEXT_HEADER = (
    *("vehicle_id", "frame_id", "total_frames", "global_time", "local_x", "local_y"),
    *("global_x", "global_y", "v_length", "v_width", "v_class", "v_vel", "v_acc", "lane_id"),
    *("preceding", "following", "space_headway", "time_headway"),
)
SHARED = Layout(
    whole=("vehicle_id", "frame_id", "global_time", "v_class", "lane_id"),
    real=("local_x", "local_y", "v_vel"),
    gappy=("v_length", "v_width"),
)
SMALL = {
    "vehicle_id": np.int64,
    "frame_id": np.int32,
    **dict.fromkeys(SHARED.real + SHARED.gappy, np.float32),
}
LONGEST_PAUSE = 60_000
"""Two periods begin further apart than this, in milliseconds; within one, clocks may slip."""
SCAN_BYTES = 2**24
CLIPS = Layout(whole=("steps", "lanes"), real=("dt", "lane_width_m"), text=("clip",))


def ngsim_reading(path: Path, site: str | None = None, skip: float = 60.0) -> Reading:
    """One carriageway per period, and what was dropped or repaired.

    Arguments:
        path: a text file of one period, or the CSV file of the data portal.
        site: "us-101" or "i-80"; needed if the file holds several.
        skip: seconds left out at the beginning and at the end of each period.
    """
    name = path.name.split(".")[0] if site is None else site
    notices = Notices(name, {})
    rows, period = ngsim_periods(path, site)
    found, number = [], int(period.max()) + 1
    for i in range(number):
        label = name if number == 1 else f"{name}-{i + 1}"
        mine = rows.take(period == i)
        carriageway = carriageway_of(label, mine, site, skip, notices)
        if carriageway is None:
            notices.add("periods dropped, no track is left", 1)
        else:
            found.append(carriageway)
    if not found:
        raise RecordingError(f"{path}: no vehicle is left; {notices.counts}")
    return Reading(tuple(found), notices)


def carriageway_of(
    name: str, rows: Columns, site: str | None, skip: float, notices: Notices
) -> Carriageway | None:
    """The traffic of one period, or None if nothing is left."""
    rows = in_order(rows, "vehicle_id", "frame_id", notices)
    if site is None:
        site = I_80 if I_80_DAYS[0] <= rows["start"][0] < I_80_DAYS[1] else US_101
    first, last = kept_frames(rows["frame_id"], skip, notices)
    motion, possible = motion_of(rows, notices)
    kept = possible & (rows["frame_id"] >= first) & (rows["frame_id"] <= last)
    kept &= (rows["lane_id"] >= 1) & (rows["lane_id"] <= MAIN_LANES[site])
    if not kept.any():
        return None
    motion, lane = motion.take(kept), rows["lane_id"][kept]
    motion = motion._replace(frame=motion.frame - first)
    notices.add("pairs of vehicles that overlap in their lane", overlaps(motion, lane))
    tracks = tracks_of(motion, notices, LONGEST_STEP, reentries(kept))
    if not tracks:
        return None
    speeds = [recomputed(track) for track in tracks]
    wrong = sum(contradicts(*pair) for pair in zip(tracks, speeds, strict=True))
    notices.add("tracks whose recorded speed contradicts their places", wrong)
    start, end = extent(motion)
    return Carriageway(
        name=name,
        direction=1,
        dt=DT,
        frames=last - first + 1,
        boundaries=boundaries_of(motion.d, lane, rows),
        start=start,
        end=end,
        tracks=tuple(speeds),
    )


def kept_frames(frame: Int[np.ndarray, " rows"], skip: float, notices: Notices) -> tuple[int, int]:
    """First and last frame without the thin minutes; all of a period that is too short."""
    first, last = int(frame.min()), int(frame.max())
    left_out = round(skip / DT)
    if last - first < 2 * left_out:
        notices.add("periods too short to leave out beginning and end", 1)
        return first, last
    return first + left_out, last - left_out


def motion_of(rows: Columns, notices: Notices) -> tuple[Motion, Bool[np.ndarray, " rows"]]:
    """All rows in metres, and which of them have a possible size; `vs` is the recorded speed."""
    feet = [rows[name].astype(np.float64) for name in ("v_length", "v_width", "v_vel")]
    length, width, speed = (array * FOOT for array in feet)
    sizes = typical_sizes(rows["vehicle_id"], length, width, notices)
    known = (rows["v_class"] >= 1) & (rows["v_class"] <= 3)
    kind = KINDS[np.where(known, rows["v_class"], 0)]
    motion = Motion(
        vehicle=rows["vehicle_id"],
        frame=rows["frame_id"],
        s=rows["local_y"].astype(np.float64) * FOOT - sizes.length / 2,
        d=-rows["local_x"].astype(np.float64) * FOOT,
        vs=speed,
        vd=np.zeros_like(speed),
        length=sizes.length,
        width=sizes.width,
        kind=without_unknown(kind, rows["vehicle_id"], sizes, notices),
    )
    return motion, sizes.possible


def overlaps(motion: Motion, lane: Int[np.ndarray, " rows"]) -> int:
    """How many pairs of vehicles overlap at some time."""
    order = np.lexsort((motion.s, lane, motion.frame))
    behind, ahead = order[:-1], order[1:]
    gap = motion.s[ahead] - motion.s[behind] - (motion.length[ahead] + motion.length[behind]) / 2
    same = (motion.frame[ahead] == motion.frame[behind]) & (lane[ahead] == lane[behind])
    inside = same & (gap < 0)
    pairs = np.stack([motion.vehicle[ahead[inside]], motion.vehicle[behind[inside]]])
    return np.unique(np.sort(pairs, axis=0), axis=1).shape[1]


def recomputed(track: Track) -> Track:
    """The track with speeds computed from its places."""
    s, d = (mean_over_a_second(places.astype(np.float64)) for places in (track.s, track.d))
    vs, vd = ((np.gradient(places) / DT).astype(np.float32) for places in (s, d))
    return track._replace(vs=vs, vd=vd)


def mean_over_a_second(values: Float[np.ndarray, " frames"]) -> Float[np.ndarray, " frames"]:
    """A centred mean; its window shrinks towards both ends, so that straight lines stay so."""
    at = np.arange(len(values))
    half = np.minimum(HALF_SECOND, np.minimum(at, len(values) - 1 - at))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[at + half + 1] - sums[at - half]) / (2 * half + 1)


def contradicts(recorded: Track, places: Track) -> bool:
    """Whether the recorded speed is usually far from the one that the places show."""
    return bool(np.median(np.abs(recorded.vs - places.vs)) > WORST_SPEED)


def boundaries_of(
    d: Float[np.ndarray, " rows"], lane: Int[np.ndarray, " rows"], rows: Columns
) -> Float[np.ndarray, " markings"]:
    """Markings half way between the medians of the lanes; empty lanes are interpolated."""
    used = np.unique(lane)
    medians = np.array([np.median(d[lane == number]) for number in used])
    if not (np.diff(medians) < 0).all():
        raise RecordingError(
            f"{rows.path}: column 'Lane_ID': lanes {used.tolist()} lie at {medians.round(1)} m; "
            "they must follow each other from left to right"
        )
    every = np.arange(used[0], used[-1] + 1)
    return lane_boundaries(np.interp(every, used, medians), LANE_WIDTH)


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
    """The columns in smaller types, because a site has millions of rows."""
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
        quoted = separator is not None
        return replace(SHARED, header=TEXT_HEADER, separator=separator, thousands=quoted)
    mixed = "location" in line.lower()
    if not mixed:
        refuse_site(path, site)
    elif site not in MAIN_LANES:
        raise ArgumentError(
            f"site: is {site!r}, but {path} holds several; choose one of {', '.join(MAIN_LANES)}"
        )
    text = ("location",) if mixed else ()
    return replace(SHARED, text=text, any_case=True, thousands=True, only=site)


def refuse_site(path: Path, site: str | None) -> None:
    """Raise an error if a site is asked for: a file without the column `Location` names none."""
    if site is not None:
        raise ArgumentError(f"site: is {site!r}, but {path} does not say where it was recorded")


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

    A file of the data portal is read until all names are found, or to its end.
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


def us101_clip_names(clips: Path) -> tuple[str, ...]:
    """The names of all clips, in the order of the file."""
    return tuple(str(name) for name in read_columns(clips, CLIPS)["clip"])


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
        refuse_not_positive(about, column)
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
        whole=("id", "step"),
        real=("v", "s", "d", "heading"),
        gappy=("length", "width"),
        text=("clip",),
        only=name.lower(),
    )
    parts = [part.take(part["clip"] == name) for part in blocks(states, layout)]
    rows = joined(states, parts)
    if rows is None:
        raise RecordingError(f"{states}: column 'clip': no row belongs to clip {name!r}")
    return rows
