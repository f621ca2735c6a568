"""`tacit infer` by acting: settings from the command line, continuing, and words for errors."""

import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.command_line.console import console, summary
from tacit.command_line.inputs import method_with, read_fields
from tacit.errors import ArgumentError
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.encoder.method import CAICRL
from tacit.inference.method import METHODS
from tacit.inference.reach.method import Reach

TRAIN = ("steps=256", "worlds=4", "rollout=16", "minibatch=32", "epochs=1", "hidden=8")
LEARN = ("minibatch=16", "passes=2", "rows=32", "rounds=3", "hidden=8", "learning_rate=1e-2")
TASK = ("--set", "horizon=12")


pytestmark = pytest.mark.usefixtures("hasty_imitation")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "experts.npz"
    tacit.Trajectories(
        observations=random.normal(0, 0.01, (10, 13, 4)).astype(np.float32),
        actions=random.uniform(-1, 1, (10, 12, 1)).astype(np.float32),
        rewards=np.ones((10, 12), np.float32),
        lengths=np.full(10, 12),
    ).to_npz(path)
    return path


@pytest.fixture(scope="module")
def run(experts, tmp_path_factory):
    """The command, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("infer") / "run"
    command = ["infer", "BiasedPendulum", "--experts", str(experts), "--method", "bc2l"]
    command += ["--out", str(folder), *TASK, "--learn", *LEARN, "--train", *TRAIN]
    main(command)
    return command, folder


def words(text):
    """What was printed, with single spaces and without the lines of tables."""
    return re.sub(r"[\s│┃]+", " ", text)


def test_the_command_saves_what_the_library_infers(run, experts):
    _, folder = run
    saved = tacit.load(folder)
    assert saved.settings["method"] == "bc2l"
    assert saved.settings["settings"]["learning_rate"] == 1e-2
    assert saved.settings["settings"]["hidden"] == [8]
    assert saved.settings["ppo"]["rollout"] == 16
    assert saved.task.horizon == 12
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["steps"] for line in lines] == [64, 128, 192, 256]


def test_the_demonstrations_that_were_learned_from_are_not_held_out(run, experts, capsys):
    _, folder = run
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", str(folder), "--experts", str(experts)])
    assert stopped.value.code == 2
    assert "not held out" in capsys.readouterr().err


def test_options_of_another_task_need_its_name(run, capsys):
    _, folder = run
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(folder), "--set", "noise_std=0.5"])
    assert stopped.value.code == 2
    assert "with --task" in capsys.readouterr().err


def test_the_same_command_again_says_so_and_shows_the_result(run, capsys, monkeypatch):
    monkeypatch.setattr(console, "width", 300)
    command, folder = run
    before = (folder / "metrics.jsonl").read_bytes()
    main(command)
    text = words(capsys.readouterr().out)
    assert f"note: {folder}: the run in this folder is complete" in text
    assert "bc2l on BiasedPendulum, 10 demonstrations" in text
    for name in ("violation of the true rule", "reward per episode", "feasible reward"):
        assert name in text
    assert "steps 256" in text
    assert f"saved in {folder}" in text
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_run_is_not_continued_with_other_settings(run, capsys):
    command, _ = run
    with pytest.raises(SystemExit) as stop:
        main([*command, "--seed", "4"])
    assert stop.value.code == 2
    assert "seed: 0 there, 4 here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--method", "icrll"], "did you mean icrl"),
        (["--learn", "minibach=3"], "--learn: there is no setting 'minibach'"),
        (["--learn", "minibach=3"], "did you mean minibatch"),
        (["--learn", "minibatch=few"], "--learn: minibatch cannot be 'few'"),
        (["--learn", "minibatch"], "--learn takes key=value"),
        (["--learn", "encoder=fancy"], "'transformer', not 'fancy'"),
        (["--learn", "encoder=3"], "encoder must be 'bidaf'"),
        (["--learn", "passes=0"], "passes"),
        (["--learn", "hidden=8"], "no setting 'hidden' of method 'ca-icrl'"),
        (["--learn", "objective=contrast", "votes=abstain"], "does not go with votes"),
        (["--method", "VICRL"], "did you mean vicrl"),
        (
            ["--method", "vicrl", "--learn", "prior=0.5"],
            "prior cannot be '0.5'; it takes float,float",
        ),
        (["--method", "reach", "--learn", "about=x"], "about cannot be 'x'"),
        (["--method", "counts"], "'reach' is of the same family and learns by acting"),
        (["--train", "epoch=3"], "--train: there is no setting 'epoch'"),
        (["--method", "icrl", "--learn", "width=3"], "--learn: there is no setting 'width'"),
        (["--method", "icrl", "--learn", "reading=soft"], "no setting 'reading' of method 'icrl'"),
        (["--confidence", "1"], "between 0 and 1"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(experts, capsys, arguments, named):
    asked = [*TASK, *([] if "--method" in arguments else ["--method", "ca-icrl"]), *arguments]
    with pytest.raises(SystemExit) as stop:
        main(["infer", "BiasedPendulum", "--experts", str(experts), *asked])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert named in error
    assert "Traceback" not in error


def test_demonstrations_of_another_task_are_an_error(experts, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["infer", "BlockedSwimmer", "--experts", str(experts), "--method", "icrl"])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "are these demonstrations of another task?" in error


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        (
            ("--learn", "passes=3"),
            "no setting 'passes' of method 'counts'; there are reading, votes",
        ),
        (("--train", "epochs=3"), "--train has no meaning for 'counts'"),
        (("--threads", "2"), "threads has no meaning for 'counts'"),
    ],
)
def test_what_is_computed_without_acting_takes_no_settings_of_it(tmp_path, capsys, flag, named):
    path = tmp_path / "walks.npz"
    tacit.Trajectories.from_arrays([[5, 5, 5]], [[1, 1]], [[0.0, 0.0]]).to_npz(path)
    small = ("--set", "length=11", "limit=-2", "horizon=10")
    with pytest.raises(SystemExit) as stop:
        main(["infer", "Chain", "--experts", str(path), *small, *flag])
    assert stop.value.code == 2
    assert named in capsys.readouterr().err


def read(kind, *settings):
    return read_fields(kind, settings, f"of method {kind.name!r}", "--learn")


def test_settings_of_a_method_are_read_by_the_kind_of_their_field():
    assert read(ICRL, "hidden=32,16", "regulariser=0.1") == {
        "hidden": (32, 16),
        "regulariser": 0.1,
    }
    assert read(ICRL, "hidden=32") == {"hidden": (32,)}
    assert read(VICRL, "prior=0.5,0.5") == {"prior": (0.5, 0.5)}
    assert read(Reach, "ratios=22/6", "about=3", "start=clone") == {
        "ratios": ("22/6",),
        "about": (3,),
        "start": "clone",
    }
    assert read(Reach, "about=none") == {"about": None}
    assert read(CAICRL, "votes=none") == {"votes": None}
    chosen = read(CAICRL, "granularity=trajectory", "objective=quantile")
    assert chosen == {"granularity": "trajectory", "objective": "quantile"}
    with pytest.raises(ArgumentError, match="objective is one of"):
        read(CAICRL, "objective=best")


def test_settings_come_on_top_of_the_preset_of_the_task():
    task = tacit.make("BiasedPendulum")
    assert method_with("vicrl", task, ()) == VICRL.preset(task)
    changed = method_with("vicrl", task, ("passes=3",))
    assert changed == VICRL.preset(task, passes=3)
    assert changed.learning_rate == VICRL.preset(task).learning_rate != VICRL().learning_rate


def test_a_setting_that_a_users_method_cannot_take_is_one_line(monkeypatch):
    # What the class enters there on its definition is taken out again at the end.
    monkeypatch.setitem(METHODS, "careless", None)
    monkeypatch.delitem(METHODS, "careless")

    @dataclass(frozen=True, kw_only=True)
    class Careless(ICRL):
        """A method whose annotation promises more than it can do."""

        weights: Any = 1.0
        name: ClassVar[str] = "careless"

        def __post_init__(self):
            super().__post_init__()
            assert self.weights + 1.0

    task = tacit.make("BiasedPendulum")
    assert method_with(Careless.name, task, ("weights=2",)).weights == 2
    with pytest.raises(ArgumentError, match="method 'careless' cannot take this"):
        method_with(Careless.name, task, ("weights=many",))


def test_progress_tells_of_the_learned_cost_and_the_loss():
    facts = {"cost": 0.25, "multiplier": 2.0, "constraint_loss": 1.5}
    assert summary(facts) == "cost 0.250  multiplier 2.00  constraint loss 1.500"
