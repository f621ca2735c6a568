"""NGSIM: its layouts, feet, periods, clips, and every defect its files are known to have."""

import numpy as np
import pytest
from written_recordings import (
    FOOT,
    HIGHWAY_DATA,
    clip_tables,
    ngsim_rows,
    portal_rows,
    write_clips,
    write_table,
)

from tacit.errors import ArgumentError
from tacit.highway.ngsim_files import (
    mean_over_a_second,
    ngsim_reading,
    us101_clip_names,
    us101_reading,
)
from tacit.highway.recording import CAR, TRUCK, RecordingError, RecordingWarning
from tacit.highway.recording_folder import find_recordings

SECOND_PERIOD = 1_118_847_869_000
I_80_START = 1_113_433_135_000


def write_text(folder, rows):
    return write_table(folder / "trajectories.txt", rows, header=False, separator="  ")


def write_portal(folder, rows):
    return write_table(folder / "portal.csv", rows)


def read_ngsim(path, site=None, **options):
    return ngsim_reading(path, site, **options).announce()


def noticed(path, message, **options):
    """Read, and expect one warning that says `message`."""
    with pytest.warns(RecordingWarning, match=message) as caught:
        ways = read_ngsim(path, **{"skip": 0.0, **options})
    assert len(caught) == 1
    return ways


def test_text_without_header_is_read_in_metres(tmp_path):
    (way,) = read_ngsim(write_text(tmp_path, ngsim_rows()), skip=0.0)
    assert (way.name, way.direction, way.dt, way.frames) == ("trajectories", 1, 0.1, 40)
    assert [track.vehicle for track in way] == [1, 2, 3, 4, 5, 6]
    track = way.tracks[0]
    assert (track.kind, track.first, len(track.s), track.s.dtype) == (CAR, 0, 40, np.float32)
    assert track.length == pytest.approx(14.5 * FOOT)
    assert track.width == pytest.approx(4.9 * FOOT)
    centre = (160 + 4.1 * np.arange(40) - 14.5 / 2) * FOOT
    np.testing.assert_allclose(track.s, centre, atol=1e-3)
    np.testing.assert_allclose(track.d, -18 * FOOT, atol=1e-5)
    np.testing.assert_allclose(track.vs, 41 * FOOT, atol=0.01)
    np.testing.assert_allclose(track.vd, 0, atol=1e-5)
    np.testing.assert_allclose(way.boundaries, [0, -12 * FOOT, -24 * FOOT, -36 * FOOT], atol=1e-5)
    assert way.start == pytest.approx((160 - 14.5) * FOOT, abs=1e-3)


def test_the_portal_gives_the_same_as_the_text(tmp_path):
    (text,) = read_ngsim(write_text(tmp_path, ngsim_rows()), skip=0.0)
    path = write_portal(tmp_path, portal_rows(ngsim_rows(), "us-101"))
    (portal,) = read_ngsim(path, "us-101", skip=0.0)
    assert portal.name == "us-101"
    for one, other in zip(text, portal, strict=True):
        np.testing.assert_array_equal(one.s, other.s)
        np.testing.assert_array_equal(one.vs, other.vs)


def test_thousands_separators_and_any_case_are_read(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        row["Local_Y"] += 1000
    path = write_portal(tmp_path, portal_rows(rows, "US-101"))
    (expected,) = read_ngsim(path, "us-101", skip=0.0)
    for row in rows:
        row["Local_Y"] = f"{row['Local_Y']:,.3f}"
    path = write_portal(tmp_path, portal_rows(rows, "us-101"))
    text = path.read_text()
    assert '"1,160.000"' in text
    path.write_text(text.replace("Vehicle_ID", "VEHICLE_id").replace("v_length", "v_Length"))
    (way,) = read_ngsim(path, "us-101", skip=0.0)
    for one, other in zip(expected, way, strict=True):
        np.testing.assert_array_equal(one.s, other.s)


def test_sites_and_periods_that_reuse_numbers_are_kept_apart(tmp_path):
    rows = portal_rows(ngsim_rows(vehicles=2, start=SECOND_PERIOD), "us-101")
    rows += portal_rows(ngsim_rows(vehicles=4, start=I_80_START), "i-80")
    rows += portal_rows(ngsim_rows(vehicles=5), "lankershim")
    rows += portal_rows(ngsim_rows(vehicles=3), "us-101")
    path = write_portal(tmp_path, rows)
    one, two = read_ngsim(path, "us-101", skip=0.0)
    assert (one.name, len(one), two.name, len(two)) == ("us-101-1", 3, "us-101-2", 2)
    (other,) = read_ngsim(path, "i-80", skip=0.0)
    assert (other.name, len(other)) == ("i-80", 4)


@pytest.mark.parametrize("site", [None, "lankershim"])
def test_a_motorway_must_be_chosen_from_a_mixed_file(tmp_path, site):
    path = write_portal(tmp_path, portal_rows(ngsim_rows(), "us-101"))
    with pytest.raises(ArgumentError, match="us-101, i-80"):
        read_ngsim(path, site)
    with pytest.raises(ArgumentError, match="does not say where"):
        read_ngsim(write_text(tmp_path, ngsim_rows()), "us-101")
    with pytest.raises(RecordingError, match=r"portal\.csv: column 'Location': no row"):
        read_ngsim(path, "i-80")


def test_columns_that_are_missing_or_unreadable_are_named(tmp_path):
    rows = portal_rows(ngsim_rows(), "us-101")
    path = write_portal(tmp_path, [{k: v for k, v in r.items() if k != "Lane_ID"} for r in rows])
    with pytest.raises(RecordingError, match=r"portal\.csv: row 1, column 'lane_id': is missing"):
        read_ngsim(path, "us-101")
    rows = ngsim_rows()
    rows[4]["Local_X"] = "1,5"
    with pytest.raises(RecordingError, match=r"txt: row 5, column 'local_x': is '1,5'.*comma"):
        read_ngsim(write_text(tmp_path, rows))
    rows = [{k: v for k, v in row.items() if k != "v_Acc"} for row in ngsim_rows()]
    with pytest.raises(RecordingError, match="row 1, column 'time_headway': the row has 17 cells"):
        read_ngsim(write_text(tmp_path, rows))
    (tmp_path / "trajectories.txt").write_text("")
    with pytest.raises(RecordingError, match=r"trajectories\.txt: is empty"):
        read_ngsim(tmp_path / "trajectories.txt")


def test_rows_that_are_there_twice_or_in_any_order_do_no_harm(tmp_path):
    rows = ngsim_rows()
    (expected,) = read_ngsim(write_text(tmp_path, rows), skip=0.0)
    path = write_text(tmp_path, [*reversed(rows), *rows[:7]])
    (way,) = noticed(path, "vehicle and frame are there already: 7$")
    for one, other in zip(expected, way, strict=True):
        np.testing.assert_array_equal(one.s, other.s)


def test_time_jumps_and_position_jumps_cut_a_track(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        row["Local_Y"] += 20 if (row["Vehicle_ID"], row["Frame_ID"] >= 30) == (1, True) else 0
    rows = [r for r in rows if (r["Vehicle_ID"], r["Frame_ID"]) != (2, 20)]
    message = "missing frames: 1; cuts of a track at jumps of its position: 1$"
    (way,) = noticed(write_text(tmp_path, rows), message)
    pieces = [(t.vehicle, t.first, len(t.s)) for t in way if t.vehicle < 3]
    assert pieces == [(1, 0, 20), (2, 0, 10), (2, 11, 29), (1, 20, 20)]


def test_overlapping_vehicles_are_flagged_and_kept(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        if row["Vehicle_ID"] == 4:
            row["Local_Y"] -= 175
    (way,) = noticed(write_text(tmp_path, rows), "overlap in their lane: 1$")
    assert len(way) == 6


def test_speeds_come_from_the_places_not_from_the_file(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        if row["Vehicle_ID"] == 3:
            row["v_Vel"] = 70.0
    (way,) = noticed(write_text(tmp_path, rows), "contradicts their places: 1$")
    np.testing.assert_allclose(way.tracks[2].vs, 43 * FOOT, atol=0.01)


def test_places_stay_as_they_were_recorded(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        row["Local_X"] += (-1) ** row["Frame_ID"]
    (way,) = read_ngsim(write_text(tmp_path, rows), skip=0.0)
    assert np.ptp(way.tracks[0].d) == pytest.approx(2 * FOOT, abs=1e-5)
    assert np.abs(way.tracks[0].vd[5:-5]).max() < 1.5


def test_the_mean_over_a_second_leaves_straight_lines_alone():
    line = 3 + 0.7 * np.arange(30)
    for length in (1, 2, 3, 12, 30):
        np.testing.assert_allclose(mean_over_a_second(line[:length]), line[:length], rtol=1e-12)


def test_the_first_and_last_minute_are_left_out(tmp_path):
    rows = [row for row in ngsim_rows(vehicles=3, frames=1300) if row["Local_Y"] < 1e9]
    (way,) = read_ngsim(write_text(tmp_path, rows))
    assert way.frames == 100
    assert {(track.first, len(track.s)) for track in way} == {(0, 100)}
    centre = (160 + 4.1 * 600 - 14.5 / 2) * FOOT
    assert way.tracks[0].s[0] == pytest.approx(centre, abs=1e-3)


def test_a_period_too_short_for_that_is_kept_whole(tmp_path):
    (way,) = noticed(write_text(tmp_path, ngsim_rows()), "too short to leave out", skip=60.0)
    assert way.frames == 40


@pytest.mark.parametrize(("start", "lanes"), [(1_118_846_979_000, 2), (I_80_START, 3)])
def test_ramps_are_left_out_without_a_warning(tmp_path, start, lanes):
    rows = ngsim_rows(start=start)
    for row in rows:
        # From lanes 1, 2, 3 to 4, 5, 6; lane 6 goes straight on at I-80 only.
        row["Lane_ID"] += 3
        if row["Vehicle_ID"] == 1 and 25 <= row["Frame_ID"] < 35:
            row["Lane_ID"] = 7
    (way,) = read_ngsim(write_text(tmp_path, rows), skip=0.0)
    assert len(way.boundaries) - 1 == lanes
    assert [(t.first, len(t.s)) for t in way if t.vehicle == 1] == [(0, 15), (25, 15)]
    assert len(way) == (7 if lanes == 3 else 5)


def test_lanes_without_traffic_are_filled_in(tmp_path):
    rows = [row for row in ngsim_rows() if row["Lane_ID"] != 2]
    (way,) = read_ngsim(write_text(tmp_path, rows), skip=0.0)
    np.testing.assert_allclose(way.boundaries, [0, -12 * FOOT, -24 * FOOT, -36 * FOOT], atol=1e-5)
    rows = [row for row in rows if row["Lane_ID"] == 3]
    (way,) = read_ngsim(write_text(tmp_path, rows), skip=0.0)
    np.testing.assert_allclose(way.boundaries, [-24 * FOOT, -36 * FOOT], atol=1e-5)


def test_lanes_in_the_wrong_order_are_refused(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        row["Lane_ID"] = 4 - row["Lane_ID"]
    with pytest.raises(RecordingError, match=r"trajectories\.txt: column 'Lane_ID'"):
        read_ngsim(write_text(tmp_path, rows), skip=0.0)


def test_kinds_follow_the_class_and_impossible_sizes_are_dropped(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        row["v_Class"] = {1: 1, 2: 3, 3: 0}.get(row["Vehicle_ID"], 2)
        row["v_Length"] = {3: 40.0, 4: 0.0}.get(row["Vehicle_ID"], 14.5)
    message = "size is impossible: 1; vehicles of an unknown class.*: 1$"
    (way,) = noticed(write_text(tmp_path, rows), message)
    kinds = {track.vehicle: track.kind for track in way}
    assert kinds == {1: CAR, 2: TRUCK, 3: TRUCK, 5: CAR, 6: CAR}


def test_nothing_left_is_an_error(tmp_path):
    rows = ngsim_rows()
    for row in rows:
        row["Lane_ID"] = 8
    with pytest.raises(RecordingError, match=r"trajectories\.txt: no vehicle is left"):
        read_ngsim(write_text(tmp_path, rows), skip=0.0)


def read_us101_clip(states, clips, name):
    (way,) = us101_reading(states, clips, name).announce()
    return way


def test_a_clip_is_one_carriageway(tmp_path):
    states, clips = write_clips(tmp_path, *clip_tables())
    assert us101_clip_names(clips) == ("A", "B")
    way = read_us101_clip(states, clips, "B")
    assert (way.name, way.direction, way.dt, way.frames, len(way)) == ("B", 1, 0.1, 5, 2)
    np.testing.assert_allclose(way.boundaries, [1.8, -1.8, -5.4])
    assert (way.start, way.end) == (10 - 2.25, 24 + 4.5)
    assert [track.kind for track in way] == [1, 4]
    np.testing.assert_allclose(way.tracks[0].vs, 10 * np.cos(0.1), rtol=1e-6)
    np.testing.assert_allclose(way.tracks[0].vd, 10 * np.sin(0.1), rtol=1e-6)


def test_unknown_clips_and_bad_numbers_are_named(tmp_path):
    states, clips = clip_tables()
    paths = write_clips(tmp_path, states, clips)
    with pytest.raises(RecordingError, match=r"us101_clips\.csv: column 'clip': 'C' is there 0"):
        read_us101_clip(*paths, "C")
    clips[1]["lanes"] = 0
    with pytest.raises(RecordingError, match=r"us101_clips\.csv: row 3, column 'lanes'"):
        read_us101_clip(*write_clips(tmp_path, states, clips), "B")
    clips[1]["lanes"] = 2
    with pytest.raises(RecordingError, match=r"us101_states\.csv: column 'clip': no row"):
        read_us101_clip(*write_clips(tmp_path, states[:10], clips), "B")
    states[13]["s"] = "far"
    with pytest.raises(RecordingError, match=r"us101_states\.csv: row 15, column 's': is 'far'"):
        read_us101_clip(*write_clips(tmp_path, states, clips), "B")


@pytest.mark.skipif(HIGHWAY_DATA is None, reason="shared data are not here")
def test_the_real_clips_have_the_counts_of_their_readme():
    sources = find_recordings(HIGHWAY_DATA)
    assert {source.data_set for source in sources} == {"US-101 clips"}
    ways = [way for source in sources for way in source.read(cache=False)]
    tracks = [track for way in ways for track in way]
    speed = np.concatenate([np.hypot(track.vs, track.vd) for track in tracks])
    assert (len(ways), len(tracks), len(speed)) == (25, 904, 58_166)
    assert speed.mean() == pytest.approx(12.9, abs=0.05)
    assert {way.dt for way in ways} == {0.1}
    assert {len(way.boundaries) - 1 for way in ways} == {5, 6, 7}
    for way in ways:
        d = np.concatenate([track.d for track in way])
        assert ((d < way.boundaries[0]) & (d > way.boundaries[-1])).mean() > 0.98
        assert all(track.first >= 0 and track.last < way.frames for track in way)
