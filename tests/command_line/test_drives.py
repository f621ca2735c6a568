"""`tacit data` for driving: made-up and recorded drives as files, tables and plain errors."""

import re

import numpy as np
import pytest
from PIL import Image

from tacit import Trajectories
from tacit.command_line import drives, main
from tacit.highway.highd_writer import write_highd
from tacit.highway.synthetic_traffic import Traffic

pytestmark = pytest.mark.usefixtures("hasty_imitation")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(capsys, *arguments):
    main(["data", *map(str, arguments)])
    return re.sub(r"[\s│]+", " ", capsys.readouterr().out)


def test_recorded_drivers_become_a_file_of_demonstrations(tmp_path, capsys, recorded_traffic):
    out = tmp_path / "new" / "drivers.npz"
    text = run(
        capsys,
        *("import-highway", "--recordings", recorded_traffic, "--out", out),
        *("--egos", "one", "--constraint", "both", "--gap", 60),
    )
    demonstrations = Trajectories.from_npz(out)
    assert len(demonstrations) == 4
    assert demonstrations.observations.shape[2] == 74
    assert np.abs(demonstrations.actions).max() <= 1
    assert demonstrations.costs.any()
    assert "drivers 4 " in text
    assert f"steps {demonstrations.steps} " in text
    distance = re.search(r"largest distance from the recorded path (\d+\.\d) cm", text)
    assert 0 < float(distance[1]) <= 5
    assert "violation" in text
    assert "episodes 4 " in run(capsys, "show", out)


def test_a_recorded_drive_becomes_a_moving_picture(tmp_path, capsys, monkeypatch, recorded_traffic):
    monkeypatch.setattr(drives, "FRAMES_PER_SECOND", 4)
    out = tmp_path / "drive.gif"
    choice = ("--scenario", 2, "--out", out, "--set", "split=all")
    text = run(capsys, "show", recorded_traffic, *choice)
    for said in ("scenario 2", "recording 02, direction 1, window 1", "scenarios in all 4"):
        assert said in text
    assert f"written: {out}" in text
    with Image.open(out) as picture:
        assert (picture.format, picture.size) == ("GIF", (1200, 240))
        seconds = float(re.search(r"time limit (\d+\.\d) s", text)[1])
        # As fast as it was driven, up to the goal, which comes a second or so before the limit.
        assert picture.info["duration"] == 240
        assert seconds - 2 < 0.24 * picture.n_frames < seconds
    assert [path.name for path in tmp_path.iterdir()] == ["drive.gif"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("show", "DRIVES", "--scenario", "0"), "--scenario and --out belong together"),
        (("show", "DRIVES", "--out", "x.gif"), "--scenario and --out belong together"),
        (("show", "DRIVES", "--scenario", "0", "--out", "x.mp4"), "choose the ending .gif"),
        (
            ("show", "DRIVES", "--scenario", "0", "--out", "x.gif", "--set", "recordings=other"),
            "leave --set recordings away",
        ),
        (
            ("show", "DRIVES", "--scenario", "0", "--out", "x.gif", "--set", "scenario=1"),
            "has no option 'scenario'",
        ),
        (("show", "DRIVES", "--scenario", "4", "--out", "x.gif"), "from 0 to 1, not 4"),
        (("show", "nowhere", "--scenario", "0", "--out", "x.gif"), "nowhere: is not a folder"),
        (("import-highway", "--recordings", "nowhere", "--out", "x.npz"), "is not a folder"),
        (("import-highway", "--recordings", "DRIVES", "--out", "x.txt"), "the ending must be"),
        (
            ("import-highway", "--recordings", "DRIVES", "--out", "x.npz", "--gap", "0"),
            "gap must be above 0",
        ),
    ],
)
def test_an_error_is_one_line(tmp_path, monkeypatch, capsys, recorded_traffic, arguments, named):
    monkeypatch.chdir(tmp_path)
    given = [str(recorded_traffic) if word == "DRIVES" else word for word in arguments]
    with pytest.raises(SystemExit) as caught:
        main(["data", *given])
    assert caught.value.code
    text = capsys.readouterr().err
    assert named in re.sub(r"\s+", " ", text)
    assert "Traceback" not in text
    assert not list(tmp_path.glob("x.*"))


def test_recordings_are_those_of_the_library(tmp_path, capsys):
    options = ("--duration", 4, "--lanes", 3, "--flow", 900, "--trucks", 0.2, "--seed", 5)
    text = run(
        capsys, "synthesize-highway", "--out", tmp_path / "made", "--recordings", 2, *options
    )
    for number in (1, 2):
        traffic = Traffic(seed=4 + number, duration=4.0, lanes=3, flow=900.0, trucks=0.2)
        seen = write_highd(tmp_path / "library", number, traffic)
        assert f" {number:02d} {len(seen.side)} {seen.truck.sum()} " in text
    for path in (tmp_path / "library").iterdir():
        assert path.read_bytes() == (tmp_path / "made" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--out", "new", "--lanes", "0"), "lanes must be"),
        (("--out", "new", "--flow", "-3"), "flow must lie between"),
        (("--out", "new", "--recordings", "0"), "recordings must be"),
        (("--out", "new", "--duration", "0"), "duration must lie between"),
        (("--out", "new", "--seed", "-1"), "seed must be"),
        (("--out", "taken"), "taken: is a file"),
        (("--out", "used"), "used: has recordings already"),
    ],
)
def test_an_error_of_made_up_traffic_is_one_line(tmp_path, monkeypatch, capsys, arguments, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "03_recordingMeta.csv").touch()
    with pytest.raises(SystemExit) as left:
        main(["data", "synthesize-highway", *arguments])
    assert left.value.code == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err.count("\n") == 1
    assert named in caught.err
    assert not (tmp_path / "new").exists()


def test_the_help_names_every_option(capsys):
    with pytest.raises(SystemExit):
        main(["data", "synthesize-highway", "--help"])
    text = capsys.readouterr().out
    for name in ("out", "recordings", "duration", "lanes", "flow", "trucks", "seed"):
        assert f"--{name}" in text
