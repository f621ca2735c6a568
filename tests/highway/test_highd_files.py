"""highD: geometry, and every defect that its files are known to have."""

import gzip
import warnings
from itertools import pairwise

import numpy as np
import pytest
from recording_faults import FAULTS
from written_recordings import (
    HIGHWAY_DATA,
    drop,
    highd_tables,
    read_highd,
    rows_of,
    write_three,
)

from tacit.highway.recording import (
    CAR,
    TRUCK,
    RecordingError,
    RecordingWarning,
)


@pytest.fixture
def tables():
    return highd_tables()


@pytest.fixture
def read(tmp_path):
    def reader(tables, geometry="centre", message=None):
        folder = write_three(tmp_path, tables)
        if message is None:
            return read_highd(folder, "03", geometry)
        with pytest.warns(RecordingWarning, match=message) as caught:
            ways = read_highd(folder, "03", geometry)
        assert len(caught) == 1
        assert "recording 03" in str(caught[0].message)
        return ways

    return reader


def refusal(tmp_path, tables, *words):
    with pytest.raises(RecordingError) as caught:
        read_highd(write_three(tmp_path, tables), "03")
    for word in words:
        assert word in str(caught.value)


def vehicles_of(ways):
    return sorted(track.vehicle for way in ways for track in way)


def test_a_good_recording_is_read_without_a_warning(tables, read):
    one, two = read(tables)
    assert (one.name, one.direction, two.direction) == ("03", 1, 2)
    assert (one.dt, one.frames) == (0.04, 11)
    assert len(one) == len(two) == 4
    assert [track.first for track in two] == [0, 0, 1, 1]
    assert [track.vehicle for track in two] == [2, 4, 6, 8]
    assert [track.kind for track in two] == [CAR, CAR, CAR, TRUCK]
    track = two.tracks[0]
    assert (track.length, track.width, track.first, track.last) == (4.5, 1.8, 0, 9)
    for array in (track.s, track.d, track.vs, track.vd):
        assert array.dtype == np.float32
    np.testing.assert_allclose(track.s, 30 + 1.28 * np.arange(10), atol=1e-4)
    np.testing.assert_allclose(track.d, -22.4, atol=1e-5)
    np.testing.assert_allclose(track.vs, 32)
    np.testing.assert_allclose(track.vd, -0.1)
    np.testing.assert_allclose(two.boundaries, [-20.5, -24.25, -28.0])


def test_both_directions_look_alike(tables, read):
    one, two = read(tables)
    np.testing.assert_allclose(one.boundaries, two.boundaries + 36)
    for left, right in zip(one, two, strict=True):
        assert left.vehicle == right.vehicle - 1
        np.testing.assert_allclose(left.s, right.s - 420, atol=1e-4)
        np.testing.assert_allclose(left.d, right.d + 36, atol=1e-4)
        np.testing.assert_allclose(left.vs, right.vs)
        np.testing.assert_allclose(left.vd, right.vd)


def test_the_road_reaches_as_far_as_boxes_are_seen(tables, read):
    one, two = read(tables)
    farthest = max(row["x"] + row["width"] for row in tables["tracks"])
    assert (two.start, two.end) == (0, farthest)
    assert (one.start, one.end) == (-farthest, 0)
    tables["tracks"][0]["x"] = -3.0
    one, two = read(tables)
    assert (two.start, one.end) == (-3, 3)


def test_legacy_geometry_takes_the_corner_for_the_centre(tables, read):
    true_one, true_two = read(tables)
    one, two = read(tables, "legacy")
    np.testing.assert_allclose(two.boundaries, [-18.5, -24.25, -30.0])
    np.testing.assert_allclose(one.boundaries, [17.5, 11.75, 6.0])
    assert (two.start, two.end, one.start, one.end) == (-40, 452, -460, 32)
    for track, right in zip(two, true_two, strict=True):
        np.testing.assert_allclose(track.s, right.s - track.length / 2, atol=1e-4)
        np.testing.assert_allclose(track.d, right.d + track.width / 2, atol=1e-4)
    for track, right in zip(one, true_one, strict=True):
        np.testing.assert_allclose(track.s, right.s + track.length / 2, atol=1e-4)
        np.testing.assert_allclose(track.d, right.d - track.width / 2, atol=1e-4)


def test_a_direction_without_traffic_is_left_out_and_needs_no_markings(tables, read):
    tables["tracksMeta"] = [row for row in tables["tracksMeta"] if row["drivingDirection"] == 2]
    drop(tables, [row for row in tables["tracks"] if row["id"] % 2])
    tables["recordingMeta"][0]["upperLaneMarkings"] = ""
    assert [way.direction for way in read(tables)] == [2]


def test_compressed_files_and_any_order_of_rows_and_columns_give_the_same(tables, read, tmp_path):
    expected = read(tables)
    tables["tracks"] = [dict(reversed(row.items())) for row in reversed(tables["tracks"])]
    write_three(tmp_path, tables)
    plain = tmp_path / "03_tracks.csv"
    (tmp_path / "03_tracks.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    for way, same in zip(expected, read_highd(tmp_path, "03"), strict=True):
        assert [track.vehicle for track in way] == [track.vehicle for track in same]
        for one, other in zip(way, same, strict=True):
            np.testing.assert_array_equal(one.s, other.s)


@pytest.mark.parametrize("part", ["recordingMeta", "tracksMeta", "tracks"])
def test_a_missing_or_empty_file_or_column_is_named(tables, tmp_path, part):
    write_three(tmp_path, tables)
    path = tmp_path / f"03_{part}.csv"
    text = path.read_text()
    path.write_text(text.replace("id,", "name,", 1))
    with pytest.raises(RecordingError, match=rf"03_{part}\.csv: row 1, column 'id': is missing"):
        read_highd(tmp_path, "03")
    path.write_text("")
    with pytest.raises(RecordingError, match=rf"03_{part}\.csv: is empty"):
        read_highd(tmp_path, "03")
    path.unlink()
    with pytest.raises(RecordingError, match=rf"03_{part}\.csv: is missing"):
        read_highd(tmp_path, "03")


def test_files_of_another_recording_are_refused(tmp_path):
    refusal(tmp_path, highd_tables(number=4), "03_recordingMeta.csv", "column 'id'", "is 4")


def test_dt_is_taken_from_the_file(tables, read):
    tables["recordingMeta"][0]["frameRate"] = 30
    assert read(tables)[0].dt == 1 / 30


@pytest.mark.parametrize("rate", [0, -25])
def test_a_rate_that_is_not_positive_is_refused(tables, tmp_path, rate):
    tables["recordingMeta"][0]["frameRate"] = rate
    refusal(tmp_path, tables, "03_recordingMeta.csv", "row 2, column 'frameRate'")


@pytest.mark.parametrize("value", ["", "20.5", "20.5;20.5;28", "28;24.25;20.5", "a;b", "20.5;nan"])
@pytest.mark.parametrize("column", ["upperLaneMarkings", "lowerLaneMarkings"])
def test_lane_markings_that_make_no_lane_are_refused(tables, tmp_path, value, column):
    tables["recordingMeta"][0][column] = value
    refusal(tmp_path, tables, "03_recordingMeta.csv", f"row 2, column '{column}'", repr(value))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("drivingDirection", 3, "drivingDirection is neither 1 nor 2: 1"),
        ("drivingDirection", "", "drivingDirection is neither 1 nor 2: 1"),
        ("drivingDirection", 1, "drivingDirection contradicts xVelocity: 1"),
    ],
)
def test_few_vehicles_without_a_direction_are_dropped(read, column, value, message):
    tables = highd_tables(vehicles=102, frames=3)
    tables["tracksMeta"][1][column] = value
    assert vehicles_of(read(tables, message=message)) == [1, *range(3, 103)]


def test_many_vehicles_without_a_direction_are_an_error(tmp_path):
    tables = highd_tables(vehicles=102, frames=3)
    for row in tables["tracksMeta"][3:7:2]:
        row["drivingDirection"] = 1
    refusal(tmp_path, tables, "03_tracksMeta.csv", "row 5, column 'drivingDirection'", "2 of 102")


def test_a_standing_vehicle_contradicts_no_direction(tables, read):
    for row in rows_of(tables, 2):
        row["xVelocity"] = 0.0
    assert 2 in vehicles_of(read(tables))


def test_descriptions_without_rows_and_rows_without_description(tables, read):
    tables["tracksMeta"].append({**tables["tracksMeta"][0], "id": 77})
    tables["tracks"] += [{**row, "id": 88} for row in rows_of(tables, 1)]
    message = "no description: 1; vehicles described that have no rows: 1$"
    assert vehicles_of(read(tables, message=message)) == list(range(1, 9))


def test_a_vehicle_described_twice_is_as_first_described(tables, read):
    tables["tracksMeta"].append({**tables["tracksMeta"][0], "class": "Truck"})
    ways = read(tables, message="described twice, the first counts: 1$")
    assert ways[0].tracks[0].kind == CAR


def test_another_number_of_frames_is_noticed(tables, read):
    tables["tracksMeta"][4]["numFrames"] = 11
    message = "another number of frames than described: 1$"
    assert vehicles_of(read(tables, message=message)) == list(range(1, 9))


def test_missing_frames_cut_a_track_and_single_frames_are_dropped(tables, read):
    drop(tables, [rows_of(tables, 2)[4], rows_of(tables, 4)[1]])
    _, two = read(tables, message="missing frames: 2; tracks dropped, only one frame: 1$")
    pieces = [(t.vehicle, t.first, len(t.s)) for t in two if t.vehicle in (2, 4)]
    assert pieces == [(2, 0, 4), (4, 2, 8), (2, 5, 5)]


def test_vehicles_with_one_frame_are_dropped(tables, read):
    drop(tables, rows_of(tables, 6)[1:])
    assert 6 not in vehicles_of(read(tables, message="only one frame: 1$"))


def test_of_two_rows_for_one_frame_the_first_counts(tables, read):
    expected = read(tables)[1].tracks[0]
    tables["tracks"].append({**rows_of(tables, 2)[3], "x": 300.0})
    track = read(tables, message="vehicle and frame are there already: 1$")[1].tracks[0]
    np.testing.assert_array_equal(track.s, expected.s)


def test_frames_count_from_one(tables, tmp_path):
    tables["tracks"][3]["frame"] = 0
    refusal(tmp_path, tables, "03_tracks.csv", "row 5, column 'frame': is 0")
    tables["tracks"][3]["frame"] = 10**12
    refusal(tmp_path, tables, "03_tracks.csv", "row 5, column 'frame': is 1000000000000")


def test_jittering_and_missing_sizes_become_the_median(tables, read):
    rows = rows_of(tables, 2)
    for row, size in zip(rows, (4.49, 4.51, 0.0, -1.0, "", "nan"), strict=False):
        row["width"] = size
    rows[7]["height"] = 5.0
    track = read(tables)[1].tracks[0]
    assert (track.length, track.width) == (4.5, 1.8)
    np.testing.assert_allclose(track.s[2:], (30 + 1.28 * np.arange(10))[2:], atol=1e-4)


@pytest.mark.parametrize(
    ("length", "width"),
    [
        *[(0, 1.8), (-4.5, 1.8), ("nan", 1.8), ("", "")],
        *[(0.9, 0.6), (31, 2.5), (4.5, 0.4), (5, 4.1), (1.8, 3.9)],
    ],
)
def test_vehicles_of_impossible_size_are_dropped(tables, read, length, width):
    for row in rows_of(tables, 2):
        row |= {"width": length, "height": width}
    assert 2 not in vehicles_of(read(tables, message="their size is impossible: 1$"))


def test_an_unknown_class_is_told_by_the_length(tables, read):
    tables["tracksMeta"][1]["class"] = "Bus"
    tables["tracksMeta"][7]["class"] = ""
    _, two = read(tables, message="unknown class, now car or truck by their length: 2$")
    assert [track.kind for track in two] == [CAR, CAR, CAR, TRUCK]


def test_columns_about_neighbours_are_not_needed(tables, read):
    expected = read(tables)
    for row in tables["tracks"]:
        for name in ("dhw", "ttc", "precedingId", "laneId"):
            del row[name]
    assert vehicles_of(read(tables)) == vehicles_of(expected)


def test_all_repairs_are_said_in_one_warning(tables, read):
    tables["tracksMeta"][4]["numFrames"] = 11
    tables["tracks"].append(rows_of(tables, 2)[3])
    read(tables, message="already: 1; vehicles with another number of frames than described: 1$")


def test_a_recording_from_which_nothing_is_left_is_an_error(tables, tmp_path):
    for row in tables["tracks"]:
        row["width"] = 0
    refusal(tmp_path, tables, "03_tracks.csv: no vehicle is left", "size is impossible")


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_met_as_it_should_be(tmp_path, name):
    fault = FAULTS[name]
    folder = write_three(tmp_path, highd_tables(vehicles=120, frames=30))
    fault.inject(folder)
    if fault.expected == "error":
        with pytest.raises(RecordingError, match=r"03_(tracks|tracksMeta|recordingMeta)\.csv"):
            read_highd(folder, "03")
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ways = read_highd(folder, "03")
    assert [each.category for each in caught] == [RecordingWarning] * (fault.expected == "warning")
    assert len(set(vehicles_of(ways))) >= (120 if fault.expected == "accepted" else 119)


@pytest.mark.skipif(HIGHWAY_DATA is None, reason="shared data are not here")
def test_the_parity_recording_has_its_vehicles_and_sensible_gaps():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ways = read_highd(HIGHWAY_DATA / "parity", "99")
    assert [len(way) for way in ways] == [58, 58]
    assert vehicles_of(ways) == list(range(1, 117))
    for way in ways:
        assert (way.dt, way.frames, len(way.boundaries)) == (0.04, 2000, 3)
        gaps = []
        for frame in range(0, way.frames, 100):
            seen = [
                (np.searchsorted(-way.boundaries, -t.d[at]), t.s[at], t.length)
                for t in way
                if 0 <= (at := frame - t.first) < len(t.s)
            ]
            for lane in (1, 2):
                places = sorted((s, length) for mine, s, length in seen if mine == lane)
                gaps += [b[0] - a[0] - (a[1] + b[1]) / 2 for a, b in pairwise(places)]
            assert all(1 <= lane <= 2 for lane, _, _ in seen)
        assert len(gaps) > 50
        assert min(gaps) > 0
        moved = np.concatenate([np.diff(track.s) / way.dt - track.vs[1:] for track in way])
        assert np.abs(moved).max() < 1
