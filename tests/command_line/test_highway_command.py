"""`tacit data synthesize-highway`: files, a table, and plain errors."""

import re

import pytest

from tacit.command_line import main
from tacit.highway.highd_writer import write_highd
from tacit.highway.synthetic_traffic import Traffic


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(capsys, *arguments):
    main(["data", "synthesize-highway", *map(str, arguments)])
    return re.sub(r"[\s│]+", " ", capsys.readouterr().out)


def test_recordings_are_those_of_the_library(tmp_path, capsys):
    options = ("--duration", 4, "--lanes", 3, "--flow", 900, "--trucks", 0.2, "--seed", 5)
    text = run(capsys, "--out", tmp_path / "made", "--recordings", 2, *options)
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
def test_an_error_is_one_line(tmp_path, monkeypatch, capsys, arguments, named):
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
