"""`tacit data`: every format into every other, and what it says about a file."""

import re

import pytest

from tacit import Trajectories
from tacit.command_line import main

NAMES = ("experts.hdf5", "experts.h5", "experts.npz", "experts.csv", "experts-v0")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def data():
    return Trajectories.from_arrays(
        observations=[[0, 1, 2], [0, 1, 1, 2]],
        actions=[[1, 1], [1, 0, 1]],
        rewards=[[0.0, 1.0], [0.0, 0.25, 1.0]],
        costs=[[0.0, 0.0], [0.0, 1.0, 0.0]],
        provenance={"operator": "Ada", "seed": 3},
    )


def write(data, path):
    ending = {".npz": data.to_npz, ".csv": data.to_csv}
    ending.get(path.suffix, data.save)(path)
    return path


def read(path):
    ending = {".npz": Trajectories.from_npz, ".csv": Trajectories.from_csv}
    return ending.get(path.suffix, Trajectories.load)(path)


def shown(capsys, path):
    main(["data", "show", str(path)])
    return re.sub(r"[\s│]+", " ", capsys.readouterr().out)


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_every_format_is_converted_into_every_other(data, tmp_path, capsys, source, target):
    (tmp_path / "in").mkdir()
    start, goal = write(data, tmp_path / "in" / source), tmp_path / "out" / target
    main(["data", "convert", str(start), "--out", str(goal)])
    assert read(goal) == data
    assert goal.is_dir() is ("." not in target)
    assert "written:" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_show_tells_sizes_rewards_and_violation_in_every_format(data, tmp_path, capsys, name):
    text = shown(capsys, write(data, tmp_path / name))
    assert name in text
    assert "episodes 2" in text
    assert "steps 5" in text
    assert "length of an episode 2 to 3" in text
    assert "observation 1 x int64" in text
    assert "reward per episode 1.1" in text
    assert "violation 50.0 %" in text


def test_show_tells_where_the_data_come_from(data, tmp_path, capsys):
    text = shown(capsys, write(data, tmp_path / "experts.hdf5"))
    assert "provenance: operator Ada" in text
    assert "provenance: seed 3" in text


def test_show_tells_nothing_of_violation_when_costs_are_unknown(tmp_path, capsys):
    bare = Trajectories.from_arrays([[0, 1]], [[0]], [[2.0]])
    text = shown(capsys, write(bare, tmp_path / "bare.npz"))
    assert "episodes 1" in text
    assert "violation" not in text


@pytest.mark.parametrize("text", ["[/] closing", "the [red] line", "rows [a, b]"])
def test_show_prints_text_from_files_as_it_is(tmp_path, capsys, text):
    data = Trajectories.from_arrays([[0, 1]], [[0]], [[2.0]], provenance={"note": text})
    assert f"provenance: note {text}" in shown(capsys, write(data, tmp_path / "noted.hdf5"))
