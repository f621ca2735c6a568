"""The files of a made-up recording say what highD's files say, and agree with themselves."""

import csv
import re

import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.highway.highd_writer import NEIGHBOUR_COLUMNS, write_highd
from tacit.highway.synthetic_traffic import Traffic

TRACKS = (
    "frame,id,x,y,width,height,xVelocity,yVelocity,xAcceleration,yAcceleration,"
    "frontSightDistance,backSightDistance,dhw,thw,ttc,precedingXVelocity,precedingId,followingId,"
    "leftPrecedingId,leftAlongsideId,leftFollowingId,rightPrecedingId,rightAlongsideId,"
    "rightFollowingId,laneId"
)
VEHICLES = (
    "id,width,height,initialFrame,finalFrame,numFrames,class,drivingDirection,traveledDistance,"
    "minXVelocity,maxXVelocity,meanXVelocity,minDHW,minTHW,minTTC,numLaneChanges"
)
RECORDING = (
    "id,frameRate,locationId,speedLimit,month,weekDay,startTime,duration,totalDrivenDistance,"
    "totalDrivenTime,numVehicles,numCars,numTrucks,upperLaneMarkings,lowerLaneMarkings"
)
WHOLE = {"frame", "laneId", "initialFrame", "finalFrame", "numFrames", "numLaneChanges"}
TRAFFIC = Traffic(seed=3, duration=40.0, lanes=3, flow=1200.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("recordings")
    write_highd(path, 7, TRAFFIC)
    return path


def cells(path):
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    return names, rows


@pytest.fixture(scope="module")
def tracks(folder):
    names, rows = cells(folder / "07_tracks.csv")
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


@pytest.fixture(scope="module")
def vehicles(folder):
    names, rows = cells(folder / "07_tracksMeta.csv")
    columns = dict(zip(names, np.array(rows).T, strict=True))
    return {name: c if name == "class" else c.astype(float) for name, c in columns.items()}


@pytest.fixture(scope="module")
def recording(folder):
    names, rows = cells(folder / "07_recordingMeta.csv")
    return dict(zip(names, rows[0], strict=True))


@pytest.fixture(scope="module")
def direction(tracks, vehicles):
    return vehicles["drivingDirection"][tracks["id"].astype(int) - 1]


def test_the_columns_are_those_of_highd(folder):
    for name, header in (
        ("tracks", TRACKS),
        ("tracksMeta", VEHICLES),
        ("recordingMeta", RECORDING),
    ):
        assert (folder / f"07_{name}.csv").read_text().splitlines()[0] == header
    assert sorted(path.name for path in folder.iterdir()) == [
        "07_recordingMeta.csv",
        "07_tracks.csv",
        "07_tracksMeta.csv",
    ]


def test_fractions_have_two_decimals_and_no_zero_is_negative(folder):
    for name in ("07_tracks.csv", "07_tracksMeta.csv"):
        names, rows = cells(folder / name)
        for column, *texts in zip(names, *rows, strict=True):
            whole = column in WHOLE or column.endswith(("id", "Id"))
            if column in ("class", "drivingDirection"):
                continue
            pattern = re.compile(r"\d+" if whole else r"-?\d+\.\d\d")
            assert all(pattern.fullmatch(text) for text in texts), column
            assert "-0.00" not in texts


def test_the_same_settings_give_the_same_bytes(folder, tmp_path):
    write_highd(tmp_path, 7, TRAFFIC)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_rows_are_sorted_and_ids_ascend_by_first_frame(tracks, vehicles):
    assert np.array_equal(np.lexsort((tracks["frame"], tracks["id"])), np.arange(len(tracks["id"])))
    assert tracks["frame"].min() == 1
    assert np.array_equal(vehicles["id"], np.arange(1, len(vehicles["id"]) + 1))
    assert (np.diff(vehicles["initialFrame"]) >= 0).all()


def test_signs_are_those_of_the_picture(tracks, direction):
    assert set(direction) == {1, 2}
    assert (tracks["xVelocity"][direction == 1] < 0).all()
    assert (tracks["xVelocity"][direction == 2] > 0).all()
    same = np.diff(tracks["id"]) == 0
    for place, speed in (("x", "xVelocity"), ("y", "yVelocity")):
        moved, mean = np.diff(tracks[place]), tracks[speed] / 25
        assert np.allclose(moved[same], ((mean[1:] + mean[:-1]) / 2)[same], atol=0.012)
    for speed, rate in (("xVelocity", "xAcceleration"), ("yVelocity", "yAcceleration")):
        assert np.allclose(np.diff(tracks[speed])[same], tracks[rate][:-1][same] / 25, atol=0.011)
    led = tracks["precedingId"] > 0
    assert (tracks["precedingXVelocity"][led & (direction == 1)] < 0).all()
    assert (tracks["precedingXVelocity"][led & (direction == 2)] > 0).all()


def test_lanes_are_numbered_downwards_across_both_carriageways(tracks, direction, recording):
    upper, lower = (
        [float(y) for y in recording[name].split(";")]
        for name in ("upperLaneMarkings", "lowerLaneMarkings")
    )
    assert upper == sorted(upper)
    assert len(upper) == len(lower) == 4
    assert lower[0] > upper[-1]
    middle = tracks["y"] + tracks["height"] / 2
    for lane, top, bottom in zip(range(2, 5), upper, upper[1:], strict=False):
        inside = tracks["laneId"] == lane
        assert (direction[inside] == 1).all()
        assert ((middle[inside] > top - 1e-9) & (middle[inside] < bottom + 1e-9)).all()
    for lane, top, bottom in zip(range(6, 9), lower, lower[1:], strict=False):
        inside = tracks["laneId"] == lane
        assert (direction[inside] == 2).all()
        assert ((middle[inside] > top - 1e-9) & (middle[inside] < bottom + 1e-9)).all()
    assert set(tracks["laneId"]) == {2, 3, 4, 6, 7, 8}


def searched(tracks, direction, i, others):
    """The eight neighbours of row i among the rows of its frame, by looking at each."""
    sign = 1 if direction[i] == 2 else -1

    def ends(j):
        box = (sign * tracks["x"][j], sign * (tracks["x"][j] + tracks["width"][j]))
        return round(100 * min(box)), round(100 * max(box))

    rear, front = ends(i)
    found = {}
    for side, step in (("", 0), ("left", 1), ("right", -1)):
        lane = tracks["laneId"][i] - sign * step
        there = [j for j in others if j != i and tracks["laneId"][j] == lane]
        ahead = [(ends(j)[0], tracks["id"][j]) for j in there if ends(j)[0] >= front]
        behind = [(-ends(j)[1], tracks["id"][j]) for j in there if ends(j)[1] <= rear]
        beside = [
            (abs(sum(ends(j)) - rear - front), tracks["id"][j])
            for j in there
            if ends(j)[0] < front and ends(j)[1] > rear
        ]
        places = {"Preceding": ahead, "Alongside": beside, "Following": behind}
        for name, candidates in places.items():
            column = f"{side}{name}Id"
            column = column[0].lower() + column[1:]
            if column in tracks:
                found[column] = min(candidates, default=(0, 0))[1]
    return found


def test_neighbours_are_those_that_a_search_finds(tracks, direction):
    seen = dict.fromkeys(NEIGHBOUR_COLUMNS, 0)
    for frame in range(1, 1000, 35):
        here = np.flatnonzero(tracks["frame"] == frame)
        for i in here:
            found = searched(tracks, direction, i, here)
            assert len(found) == 8
            assert found == {name: tracks[name][i] for name in found}
            for name, other in found.items():
                seen[name] += other > 0
    assert min(seen.values()) > 5


def test_gaps_are_those_of_the_boxes(tracks, direction):
    row = {key: i for i, key in enumerate(zip(tracks["id"], tracks["frame"], strict=True))}
    led = np.flatnonzero(tracks["precedingId"] > 0)
    ahead = np.array([row[tracks["precedingId"][i], tracks["frame"][i]] for i in led])
    right, left = tracks["x"] + tracks["width"], tracks["x"]
    gap = np.where(direction[led] == 2, left[ahead] - right[led], left[led] - right[ahead])
    assert np.allclose(tracks["dhw"][led], gap, atol=0.0051)
    speed = np.abs(tracks["xVelocity"])
    assert np.allclose(tracks["thw"][led], gap / speed[led], atol=0.0051)
    assert np.array_equal(tracks["precedingXVelocity"][led], tracks["xVelocity"][ahead])
    closing = speed[led] - speed[ahead]
    sure = closing > 0.005
    assert np.allclose(tracks["ttc"][led][sure], (gap[sure] / closing[sure]), atol=0.0051)
    assert (tracks["ttc"][led][~sure] == 0).all()
    assert (tracks["dhw"][led] > 0).all()


def test_without_a_leader_there_are_zeros(tracks):
    alone = tracks["precedingId"] == 0
    assert alone.any()
    for name in ("dhw", "thw", "ttc", "precedingXVelocity"):
        assert (tracks[name][alone] == 0).all()


def test_sight_reaches_to_the_ends_of_the_section(tracks, direction):
    middle = tracks["x"] + tracks["width"] / 2
    ahead = np.where(direction == 2, 420 - middle, middle).clip(0, 420)
    assert np.allclose(tracks["frontSightDistance"], ahead, atol=0.0051)
    assert np.allclose(tracks["backSightDistance"], 420 - ahead, atol=0.0051)


def test_the_description_of_a_vehicle_sums_up_its_rows(tracks, vehicles):
    for i in range(len(vehicles["id"])):
        mine = tracks["id"] == i + 1
        speed = np.abs(tracks["xVelocity"][mine])
        assert vehicles["numFrames"][i] == mine.sum() >= 2
        assert vehicles["initialFrame"][i] == tracks["frame"][mine][0]
        assert vehicles["finalFrame"][i] == tracks["frame"][mine][-1]
        assert set(tracks["width"][mine]) == {vehicles["width"][i]}
        assert set(tracks["height"][mine]) == {vehicles["height"][i]}
        assert (vehicles["class"][i] == "Truck") == (vehicles["width"][i] > 7)
        travelled = abs(tracks["x"][mine][-1] - tracks["x"][mine][0])
        assert vehicles["traveledDistance"][i] == pytest.approx(travelled, abs=0.0051)
        assert vehicles["minXVelocity"][i] == speed.min()
        assert vehicles["maxXVelocity"][i] == speed.max()
        assert vehicles["meanXVelocity"][i] == pytest.approx(speed.mean(), abs=0.0051)
        changes = np.sum(np.diff(tracks["laneId"][mine]) != 0)
        assert vehicles["numLaneChanges"][i] == changes
        for name, least in (("dhw", "minDHW"), ("thw", "minTHW"), ("ttc", "minTTC")):
            values = tracks[name][mine & (tracks["precedingId"] > 0)]
            values = values[values > 0]
            assert vehicles[least][i] == (values.min() if len(values) else -1)
    assert (vehicles["minDHW"] == -1).any()


def test_the_recording_is_summed_up(vehicles, recording):
    trucks = np.sum(vehicles["class"] == "Truck")
    assert int(recording["id"]) == 7
    assert recording["frameRate"] == "25"
    assert recording["duration"] == "4.000000e+01"
    assert int(recording["numVehicles"]) == len(vehicles["id"])
    assert int(recording["numTrucks"]) == trucks
    assert int(recording["numCars"]) == len(vehicles["id"]) - trucks
    driven = vehicles["numFrames"].sum() / 25
    assert float(recording["totalDrivenTime"]) == pytest.approx(driven, abs=0.0051)
    distance = vehicles["traveledDistance"].sum()
    assert float(recording["totalDrivenDistance"]) == pytest.approx(distance, abs=0.02)
    assert re.fullmatch(r"\d\d\.\d{4}", recording["month"])


def test_a_recording_without_anyone_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="nobody drove by"):
        write_highd(tmp_path, 1, Traffic(duration=1.0, flow=0.1))
    with pytest.raises(ArgumentError, match="number"):
        write_highd(tmp_path, 0, Traffic(duration=1.0))
    assert list(tmp_path.iterdir()) == []
