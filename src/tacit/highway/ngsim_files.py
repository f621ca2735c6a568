"""NGSIM US-101 and I-80: one carriageway in feet at 10 Hz, as text without header or portal CSV.

`Local_Y` and `Local_X` are the front centre of a vehicle, along the road and to the **right**. With
the length l of the vehicle, in metres: s = Local_Y - l / 2 and d = -Local_X. Speeds are derivatives
of the places after a mean over one second, because the recorded ones are rounded to 5 ft/s and
contradict the places. Ramps and auxiliary lanes are left out, as are the first and last minute,
where traffic is thin because only complete trajectories were recorded.

Vehicles and frames are numbered anew in every period of a site; the time at which frame 0 would
have been, `Global_Time` - 100 ms x `Frame_ID`, tells the periods apart.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.highway.csv_columns import Columns
from tacit.highway.ngsim_tables import I_80, MAIN_LANES, US_101, ngsim_periods
from tacit.highway.recording import (
    CAR,
    TRUCK,
    Carriageway,
    Notices,
    Reading,
    RecordingError,
    Track,
)
from tacit.highway.track_pieces import (
    Motion,
    extent,
    in_order,
    kinds_by_length,
    lane_boundaries,
    reentries,
    tracks_of,
    typical_sizes,
)

FOOT = 0.3048
DT = 0.1
LANE_WIDTH = 12 * FOOT
KINDS = np.array([0, CAR, CAR, TRUCK])
"""By class: 1 motorcycle, 2 car, 3 truck; 0 is unknown."""
LONGEST_STEP = 5.0
WORST_SPEED = 2.0
HALF_SECOND = 5
I_80_DAYS = (1_113_350_400_000, 1_113_523_200_000)
"""13 and 14 April 2005 in milliseconds since 1970; US-101 was recorded in June."""


def read_ngsim(
    path: str | Path, site: str | None = None, skip: float = 60.0, smooth: bool = False
) -> tuple[Carriageway, ...]:
    """One carriageway per period; says in one warning what was repaired.

    Args:
        path: a text file of one period, or the CSV file of the data portal.
        site: "us-101" or "i-80"; needed if the file holds several.
        skip: seconds left out at the beginning and at the end of each period.
        smooth: whether places, too, become means over one second.
    """
    return ngsim_reading(Path(path), site, skip, smooth).issued()


def ngsim_reading(
    path: Path, site: str | None = None, skip: float = 60.0, smooth: bool = False
) -> Reading:
    """One carriageway per period, and what was dropped or repaired."""
    name = path.name.split(".")[0] if site is None else site
    notices = Notices(name, {})
    rows, period = ngsim_periods(path, site)
    found, number = [], int(period.max()) + 1
    for i in range(number):
        label = name if number == 1 else f"{name}-{i + 1}"
        mine = rows.take(period == i)
        carriageway = carriageway_of(label, mine, site, skip, smooth, notices)
        if carriageway is None:
            notices.add("periods dropped, no track is left", 1)
        else:
            found.append(carriageway)
    if not found:
        raise RecordingError(f"{path}: no vehicle is left; {notices.counts}")
    return Reading(tuple(found), notices)


def carriageway_of(
    name: str, rows: Columns, site: str | None, skip: float, smooth: bool, notices: Notices
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
    speeds = [recomputed(track, smooth) for track in tracks]
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
    """First and last frame without the thin minutes, unless nothing else is there."""
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
    unknown = len(np.unique(rows["vehicle_id"][~known & sizes.possible]))
    notices.add("vehicles of an unknown class, now car or truck by their length", unknown)
    motion = Motion(
        vehicle=rows["vehicle_id"],
        frame=rows["frame_id"],
        s=rows["local_y"].astype(np.float64) * FOOT - sizes.length / 2,
        d=-rows["local_x"].astype(np.float64) * FOOT,
        vs=speed,
        vd=np.zeros_like(speed),
        length=sizes.length,
        width=sizes.width,
        kind=np.where(known, kind, kinds_by_length(sizes.length)),
    )
    return motion, sizes.possible


def overlaps(motion: Motion, lane: Int[np.ndarray, " rows"]) -> int:
    """How many pairs of vehicles are inside each other at some time."""
    order = np.lexsort((motion.s, lane, motion.frame))
    behind, ahead = order[:-1], order[1:]
    gap = motion.s[ahead] - motion.s[behind] - (motion.length[ahead] + motion.length[behind]) / 2
    same = (motion.frame[ahead] == motion.frame[behind]) & (lane[ahead] == lane[behind])
    inside = same & (gap < 0)
    pairs = np.stack([motion.vehicle[ahead[inside]], motion.vehicle[behind[inside]]])
    return np.unique(np.sort(pairs, axis=0), axis=1).shape[1]


def recomputed(track: Track, smooth: bool) -> Track:
    """The track with speeds from its places, and smooth places if asked for."""
    s, d = (mean_over_a_second(places.astype(np.float64)) for places in (track.s, track.d))
    vs, vd = ((np.gradient(places) / DT).astype(np.float32) for places in (s, d))
    if smooth:
        track = track._replace(s=s.astype(np.float32), d=d.astype(np.float32))
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
