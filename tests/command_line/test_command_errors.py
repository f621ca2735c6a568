"""Whatever goes wrong is one line on stderr, never a traceback, and exit code 2."""

import importlib

import numpy as np
import pytest

from tacit import Trajectories
from tacit.command_line import main
from tacit.command_line.inputs import find_task, parse_setting
from tacit.errors import TaskError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with good and bad files in it."""
    monkeypatch.chdir(tmp_path)
    steps = {"observations": [[5, 4, 5]], "actions": [[0, 2]], "rewards": [[0.0, 0.1]]}
    Trajectories.from_arrays(**steps).save("good.hdf5")
    Trajectories.from_arrays(**{**steps, "observations": [[5, 4, 99]]}).save("elsewhere.hdf5")
    (tmp_path / "text.hdf5").write_text("not HDF5")
    (tmp_path / "text.npz").write_text("not a zip")
    (tmp_path / "text.csv").write_text("one,two\n1,2\n")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "result.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{broken}")
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "half.npz", transitions=np.ones((1, 1, 1)))
    (tmp_path / "taken").write_text("a file")
    return tmp_path


SMALL = ("--set", "length=11", "limit=-2", "horizon=10")
INFER = ("infer", "Chain", "--experts", "good.hdf5")
ENOUGH = ("sufficient", "Chain", "--experts", "good.hdf5")
EXPERT = ("expert", "Chain", "--out", "new.hdf5")


def failure(capsys, *arguments):
    """The line on stderr."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    caught = capsys.readouterr()
    assert "Traceback" not in caught.err + caught.out
    assert caught.out == ""
    lines = caught.err.splitlines()
    assert len(lines) == 1, caught.err
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("expert", "Chian", "--out", "new.hdf5"), "did you mean Chain"),
        ((*EXPERT, "--set", "lenght=11"), "did you mean length"),
        ((*EXPERT, "--set", "length"), "--set takes key=value"),
        ((*EXPERT, "--set", "=3"), "--set takes key=value"),
        ((*EXPERT, "--set", "length=long"), "'length' of Chain must be int"),
        ((*EXPERT, "--set", "length=10"), "length must be odd"),
        (("expert", "GridWorld", "--out", "new.hdf5", "--set", "layout=mars"), "layout 'mars'"),
        (("expert", "missing.npz", "--out", "new.hdf5"), "missing.npz: there is no such file"),
        (("expert", "text.npz", "--out", "new.hdf5"), "text.npz: not an .npz file"),
        (("expert", "half.npz", "--out", "new.hdf5"), "half.npz: rewards is missing"),
        (("expert", "half.npz", "--out", "new.hdf5", "--set", "a=1"), "no options to set"),
        (("infer", "Chain", "--experts", "missing.hdf5"), "missing.hdf5"),
        (("infer", "Chain", "--experts", "text.hdf5"), "text.hdf5"),
        (("infer", "Chain", "--experts", "text.npz"), "text.npz"),
        (("infer", "Chain", "--experts", "text.csv"), "text.csv"),
        (("infer", "Chain", "--experts", "elsewhere.hdf5", *SMALL), "observations: episode 0"),
        ((*INFER, "--confidence", "1.5", *SMALL), "confidence must lie strictly between 0 and 1"),
        ((*INFER, "--confidence", "nan", *SMALL), "confidence"),
        ((*INFER, "--method", "magic", *SMALL), "method must be one of"),
        ((*INFER, "--method", "Counts", *SMALL), "did you mean counts"),
        ((*INFER, "--method", "likelihood", "--learn", "votes=visits", *SMALL), "votes"),
        (("infre", "Chain"), "there is no command 'infre'; there are demo, expert, infer"),
        (("infre", "Chain"), "did you mean infer?"),
        (("Tradeof",), "did you mean tradeoff?"),
        (("rules", "missing"), "missing/result.safetensors: there is no such file"),
        (("rules", "text.csv"), "text.csv"),
        (("methods", "ca_icrl"), "did you mean ca-icrl?"),
        (("infer", "--help-method", "--method", "reech"), "did you mean reach?"),
        ((*ENOUGH, "--reward", "nan", *SMALL), "reward must be a finite number"),
        ((*ENOUGH, "--reward", "1", "--confidence", "0", *SMALL), "confidence"),
        (("evaluate", "missing"), "missing/result.safetensors: there is no such file"),
        (("evaluate", "empty"), "empty/result.safetensors"),
        (("evaluate", "damaged"), "damaged/result.safetensors: damaged"),
        (("data", "show", "missing.csv"), "missing.csv"),
        (("data", "show", "empty"), "empty"),
        (("data", "convert", "good.hdf5", "--out", "x.xyz"), "the ending must be"),
        (("data", "convert", "good.hdf5", "--out", "taken/new.hdf5"), "taken/new.hdf5"),
        (("experiment", "run", "coverage", "--out", "x", "--datasets", "1"), "at least 2"),
    ],
)
def test_an_error_is_one_line_that_names_what_is_wrong(folder, capsys, arguments, named):
    assert named in failure(capsys, *arguments)
    assert not (folder / "new.hdf5").exists()


@pytest.mark.parametrize("option", [("--number", "0"), ("--seed", "-1")])
def test_an_error_while_a_bar_is_shown_is_one_line_too(folder, capsys, option):
    failure(capsys, *EXPERT, *option, *SMALL)


@pytest.mark.parametrize("name", ["runs [/old].hdf5", "runs [old].hdf5"])
def test_names_in_square_brackets_are_printed_as_they_are(folder, capsys, name):
    assert name in failure(capsys, "data", "show", name)


@pytest.mark.parametrize(
    "arguments",
    [
        ("expert", "Chain"),
        (*INFER, "--votes", "visits"),
        (*INFER, "--confidence", "high"),
        (*ENOUGH, "--reward", "1", "--colour", "red"),
        ("data", "burn", "good.hdf5"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_command_that_cannot_be_read_says_so_without_a_traceback(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    caught = capsys.readouterr()
    assert caught.err.strip()
    assert "Traceback" not in caught.err


def test_an_interrupted_command_says_how_to_go_on(monkeypatch, capsys, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        importlib.import_module("tacit.experiments.coverage"), "run_coverage", interrupt
    )
    with pytest.raises(SystemExit) as left:
        main(["experiment", "run", "coverage", "--out", str(tmp_path)])
    assert left.value.code == 130
    assert "run the same command again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("length=11", ("length", 11)),
        ("limit=-2", ("limit", -2)),
        ("slip=0.5", ("slip", 0.5)),
        ("budget=1e-2", ("budget", 0.01)),
        ("layout=rooms", ("layout", "rooms")),
        ("layout=a=b", ("layout", "a=b")),
        ("layout=", ("layout", "")),
    ],
)
def test_settings_become_numbers_where_they_are(setting, expected):
    key, value = parse_setting(setting)
    assert (key, value) == expected
    assert type(value) is type(expected[1])


def test_a_task_is_found_by_name_in_any_case_with_its_options():
    task = find_task("gridworld", ("layout=rooms", "slip=0"))
    assert task.name == "grid rooms x1"
    with pytest.raises(TaskError):
        find_task("gridworld", ("rooms",))
