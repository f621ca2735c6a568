"""exiD: a bent road becomes straight, ramps are left out, and known defects are repaired."""

import numpy as np
import pytest
from written_recordings import drop, exid_tables, rows_of, write_three

from tacit.highway.exid_files import exid_reading
from tacit.highway.highd_files import three_files
from tacit.highway.recording import CAR, TRUCK, RecordingError, RecordingWarning


def read(folder, tables):
    return exid_reading(three_files(write_three(folder, tables, "07"), "07")).announce()


def noticed(folder, tables, message):
    with pytest.warns(RecordingWarning, match=message) as caught:
        ways = read(folder, tables)
    assert len(caught) == 1
    return ways


@pytest.mark.parametrize("radius", [2000.0, -2000.0, 1e9])
def test_both_directions_become_straight_roads_with_three_lanes(tmp_path, radius):
    one, two = read(tmp_path, exid_tables(radius=radius))
    for way, parity in ((one, 1), (two, 0)):
        assert (way.name, way.direction, way.dt, way.frames) == ("07", 2 - parity, 0.04, 83)
        assert [track.vehicle for track in way] == list(range(parity, 22, 2))
        np.testing.assert_allclose(np.diff(way.boundaries), -3.5, atol=0.1)
        assert len(way.boundaries) == 4
        for track in way:
            assert (track.length, track.width) == (4.6, 1.8)
            assert track.kind == (TRUCK if (track.vehicle // 2) % 3 == 2 else CAR)
            lane = np.searchsorted(-way.boundaries, -track.d) - 1
            assert set(lane.tolist()) == {(track.vehicle // 2) % 3}
            assert np.ptp(track.d) < 0.3
            np.testing.assert_allclose(track.vs, 30, atol=0.1)
            np.testing.assert_allclose(track.vd, 0, atol=0.3)
            np.testing.assert_allclose(np.diff(track.s) / way.dt, 30, atol=0.5)


def test_sizes_come_from_the_tracks_and_lists_count_by_their_first_entry(tmp_path):
    tables = exid_tables()
    assert tables["tracksMeta"][0]["length"] == 99
    assert any(row["laneWidth"] == "3.5;3.9" for row in tables["tracks"])
    one, _ = read(tmp_path, tables)
    assert one.tracks[0].length == 4.6
    for row in tables["tracks"]:
        row["laneWidth"] = ""
    assert len(read(tmp_path, tables)) == 2


def test_headings_are_degrees_and_may_count_from_minus_180(tmp_path):
    tables = exid_tables()
    expected = read(tmp_path, tables)
    for row in tables["tracks"]:
        row["heading"] = (row["heading"] + 180) % 360 - 180
    for way, same in zip(expected, read(tmp_path, tables), strict=True):
        np.testing.assert_allclose(way.boundaries, same.boundaries, atol=1e-6)


def test_people_and_bicycles_are_dropped(tmp_path):
    tables = exid_tables()
    tables["tracksMeta"][3]["class"] = "pedestrian"
    tables["tracksMeta"][4]["class"] = "van"
    ways = noticed(tmp_path, tables, "neither car, van, truck, bus nor motorcycle: 1$")
    vehicles = [track.vehicle for way in ways for track in way]
    assert 3 not in vehicles
    assert 4 in vehicles


def test_defects_are_repaired_as_in_highd(tmp_path):
    tables = exid_tables()
    drop(tables, [rows_of(tables, 2, "trackId")[30]])
    tables["tracks"].append(rows_of(tables, 4, "trackId")[3])
    tables["tracks"] += [{**row, "trackId": 88} for row in rows_of(tables, 1, "trackId")]
    for row in rows_of(tables, 6, "trackId"):
        row["length"] = 0
    message = (
        "already: 1; vehicles dropped, they have rows but no description: 1; vehicles with another "
        "number of frames than described: 1; vehicles dropped, their size is impossible: 1; cuts "
        "of a track at missing frames: 1$"
    )
    _, two = noticed(tmp_path, tables, message)
    pieces = [(track.first, len(track.s)) for track in two if track.vehicle == 2]
    assert pieces == [(2, 30), (33, 29)]


@pytest.mark.parametrize("part", ["recordingMeta", "tracksMeta", "tracks"])
def test_files_of_another_recording_are_refused(tmp_path, part):
    tables = exid_tables()
    tables[part][0]["recordingId"] = 8
    with pytest.raises(RecordingError, match=rf"07_{part}\.csv: row 2, column 'recordingId': is 8"):
        read(tmp_path, tables)


def test_missing_columns_are_named(tmp_path):
    tables = exid_tables()
    for row in tables["tracks"]:
        del row["heading"]
    with pytest.raises(RecordingError, match=r"07_tracks\.csv: row 1, column 'heading'"):
        read(tmp_path, tables)


def test_nothing_left_is_an_error(tmp_path):
    tables = exid_tables()
    for row in tables["tracksMeta"]:
        row["class"] = "bicycle"
    with pytest.raises(RecordingError, match=r"07_tracks\.csv: no vehicle is left"):
        read(tmp_path, tables)
