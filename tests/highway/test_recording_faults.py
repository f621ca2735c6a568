"""Every fault damages what it says, and nothing else."""

import re
import shutil
import warnings
from functools import cache

import pytest
from recording_faults import FAULTS
from text_table import TextTable
from written_recordings import read_highd

from tacit.errors import StorageError
from tacit.highway.highd_writer import write_highd
from tacit.highway.recording import RecordingError
from tacit.highway.synthetic_traffic import Traffic

FILES = ("recordingMeta", "tracksMeta", "tracks")
ALL = set(FILES)
EDITED = {
    "missing-tracks-file": {"tracks"},
    "missing-vehicles-file": {"tracksMeta"},
    "missing-recording-file": {"recordingMeta"},
    "other-recording-id": {"recordingMeta"},
    "byte-order-mark": ALL,
    "semicolon-separator": ALL,
    "extra-column": ALL,
    "column-order": ALL,
    "frame-rate": {"recordingMeta"},
    "no-lane-markings": {"recordingMeta"},
    "one-lane-marking": {"recordingMeta"},
    "descending-markings": {"recordingMeta"},
    "no-speed-limit": {"recordingMeta"},
    "driving-direction": {"tracksMeta"},
    "driving-directions": {"tracksMeta"},
    "wrong-way": {"tracksMeta"},
    "wrong-ways": {"tracksMeta"},
    "track-without-meta": {"tracksMeta"},
    "frame-count": {"tracksMeta"},
    "zero-frames": {"tracks", "tracksMeta"},
    "single-frame": {"tracks", "tracksMeta"},
    "zero-size": {"tracks", "tracksMeta"},
    "negative-size": {"tracks", "tracksMeta"},
    "nan-size": {"tracks", "tracksMeta"},
    "swapped-size": {"tracks", "tracksMeta"},
}
"""Which files a fault edits; the others edit the tracks only."""
CELLS = {
    "other-recording-id": ("recordingMeta", "id", {"77"}),
    "frame-rate": ("recordingMeta", "frameRate", {"10"}),
    "no-lane-markings": ("recordingMeta", "upperLaneMarkings", {""}),
    "one-lane-marking": ("recordingMeta", "lowerLaneMarkings", {"20.50"}),
    "descending-markings": (
        "recordingMeta",
        "lowerLaneMarkings",
        {"58.00;54.25;50.50;46.75;43.00;39.25;35.50"},
    ),
    "no-speed-limit": ("recordingMeta", "speedLimit", {"-1.00"}),
    "driving-direction": ("tracksMeta", "drivingDirection", {"1", "2", "3"}),
    "driving-directions": ("tracksMeta", "drivingDirection", {"1", "2", "3"}),
    "absent-leader": ("tracks", "precedingId", {"99999"}),
    "zero-gap": ("tracks", "dhw", {"0.00"}),
    "wild-ttc": ("tracks", "ttc", {"-3.20", "123456789.00"}),
    "extra-column": ("tracks", "weather", {"sunny"}),
}
SIZES = {"zero-size": "0.00", "negative-size": "-4.50", "nan-size": "nan"}
REMOVED_ROWS = {"missing-frames": 3, "duplicate-rows": -3}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    traffic = Traffic(seed=2, duration=4.0, lanes=6, flow=2500.0, trucks=0.1)
    assert len(write_highd(folder, 1, traffic).side) > 100
    return folder


@pytest.fixture(scope="module")
def damaged(whole, tmp_path_factory):
    """A function from a fault's name to a copy of the recording that has it."""

    @cache
    def damage(name):
        folder = tmp_path_factory.mktemp("damaged") / name
        shutil.copytree(whole, folder)
        FAULTS[name].inject(folder)
        return folder

    return damage


def table(folder, name):
    return TextTable.read(folder / f"01_{name}.csv")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_edits_its_files_and_no_others(whole, damaged, name):
    folder = damaged(name)
    edited = {
        part
        for part in FILES
        if not (folder / f"01_{part}.csv").exists()
        or (folder / f"01_{part}.csv").read_bytes() != (whole / f"01_{part}.csv").read_bytes()
    }
    assert edited == EDITED.get(name, {"tracks"})
    assert all(re.fullmatch(r"01_\w+\.csv", path.name) for path in folder.iterdir())
    assert FAULTS[name].what


@pytest.mark.parametrize("name", FAULTS)
def test_a_reader_does_what_is_expected(damaged, name):
    folder = damaged(name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if FAULTS[name].expected == "error":
            with pytest.raises(RecordingError, match="01_"):
                read_highd(folder, "01")
            return
        ways = read_highd(folder, "01")
    assert len(ways) == 2
    assert len(caught) == (FAULTS[name].expected == "warning")


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_set(damaged, name):
    part, column, values = CELLS[name]
    assert set(table(damaged(name), part).cells(column)) == values


@pytest.mark.parametrize("name", SIZES)
def test_one_vehicle_has_an_impossible_size_everywhere(whole, damaged, name):
    folder = damaged(name)
    for part in ("tracks", "tracksMeta"):
        now = table(folder, part)
        wrong = now.where("width", SIZES[name])
        assert len({now.cells("id")[row] for row in wrong}) == 1
        vehicle = now.cells("id")[wrong[0]]
        assert wrong == now.where("id", vehicle)
        assert SIZES[name] not in table(whole, part).cells("width")


def test_a_swapped_vehicle_is_wider_than_long(damaged):
    folder = damaged("swapped-size")
    for part in ("tracks", "tracksMeta"):
        now = table(folder, part)
        sizes = zip(now.cells("id"), now.cells("width"), now.cells("height"), strict=True)
        assert len({name for name, width, height in sizes if float(width) < float(height)}) == 1


def test_jittering_boxes_differ_by_a_centimetre(whole, damaged):
    pairs = zip(
        table(whole, "tracks").cells("width"),
        table(damaged("jittering-size"), "tracks").cells("width"),
        strict=True,
    )
    assert {round(float(now) - float(before), 2) for before, now in pairs} == {0.0, 0.01}


@pytest.mark.parametrize("name", REMOVED_ROWS)
def test_rows_of_one_vehicle_are_missing_or_twice(whole, damaged, name):
    before, now = table(whole, "tracks"), table(damaged(name), "tracks")
    assert len(before.rows) - len(now.rows) == REMOVED_ROWS[name]
    frames = [(row[1], row[0]) for row in now.rows]
    again = len(frames) - len(set(frames))
    assert again == max(0, -REMOVED_ROWS[name])
    if name == "duplicate-rows":
        first = next(row for row in before.rows if (row[1], row[0]) == frames[-1])
        assert float(now.rows[-1][2]) - float(first[2]) == pytest.approx(50)


def test_a_vehicle_without_rows_keeps_its_description(damaged):
    folder = damaged("meta-without-track")
    names = set(table(folder, "tracksMeta").cells("id"))
    assert len(names - set(table(folder, "tracks").cells("id"))) == 1


def test_a_vehicle_without_description_keeps_its_rows(damaged):
    folder = damaged("track-without-meta")
    names = set(table(folder, "tracks").cells("id"))
    assert len(names - set(table(folder, "tracksMeta").cells("id"))) == 1


@pytest.mark.parametrize(("name", "number"), [("zero-frames", 0), ("single-frame", 1)])
def test_a_vehicle_has_hardly_any_frames(damaged, name, number):
    folder = damaged(name)
    vehicles = table(folder, "tracksMeta")
    (row,) = vehicles.where("numFrames", str(number))
    assert len(table(folder, "tracks").where("id", vehicles.cells("id")[row])) == number


@pytest.mark.parametrize(("name", "share"), [("wrong-way", 0.0), ("wrong-ways", 0.1)])
def test_directions_are_turned_around(whole, damaged, name, share):
    before = table(whole, "tracksMeta").cells("drivingDirection")
    now = table(damaged(name), "tracksMeta").cells("drivingDirection")
    turned = sum(one != other for one, other in zip(before, now, strict=True))
    assert turned == max(1, -(-len(before) * share // 1))


def test_decimal_commas_are_in_quotes(damaged):
    line = (damaged("decimal-comma") / "01_tracks.csv").read_text().splitlines()[1]
    assert re.search(r'"\d+,\d\d"', line)
    assert "." not in line


def test_a_mark_comes_first_and_the_rest_stays(damaged, whole):
    folder = damaged("byte-order-mark")
    for part in FILES:
        text = (whole / f"01_{part}.csv").read_bytes()
        assert (folder / f"01_{part}.csv").read_bytes() == b"\xef\xbb\xbf" + text


@pytest.mark.parametrize(
    ("name", "lost", "new"),
    [
        ("missing-column", {"xVelocity"}, set()),
        ("unknown-column", {"xVelocity"}, {"speed"}),
        ("missing-gap-column", {"dhw"}, set()),
        ("extra-column", set(), {"weather"}),
        ("column-order", set(), set()),
    ],
)
def test_columns_come_and_go(whole, damaged, name, lost, new):
    before, now = table(whole, "tracks"), table(damaged(name), "tracks")
    assert set(before.names) - set(now.names) == lost
    assert set(now.names) - set(before.names) == new
    assert now.cells("x") == before.cells("x")


def test_a_folder_without_recordings_is_named(tmp_path):
    with pytest.raises(StorageError, match="nothing to damage"):
        FAULTS["empty-file"].inject(tmp_path)
