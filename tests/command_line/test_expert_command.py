"""`tacit expert` on simulated tasks: training, continuing, policies of the user's own."""

import json
import re

import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.command_line.console import summary, watched
from tacit.command_line.inputs import parse_value, ppo_with
from tacit.control.presets import expert_preset
from tacit.control.settings import PPO
from tacit.errors import ArgumentError

SHORT = ("steps=512", "worlds=4", "rollout=64", "minibatch=64", "epochs=1", "hidden=8")
TASK = ("--set", "horizon=40", "noise_std=0.05")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A file of demonstrations with the run beside it, and what the command printed."""
    out = tmp_path_factory.mktemp("expert") / "experts.hdf5"
    main(["expert", "BlockedSwimmer", "--out", str(out), "--number", "5", *TASK, "--train", *SHORT])
    return out


def test_the_command_writes_what_the_library_collects(trained):
    written = tacit.Trajectories.load(trained)
    task = tacit.make("BlockedSwimmer", horizon=40, noise_std=0.05)
    settings = ppo_with(expert_preset(task), SHORT)
    expert = tacit.train_expert(task, seed=1, settings=settings)
    assert written == tacit.collect(expert, 5, seed=1)
    assert written.provenance["options"]["noise_std"] == 0.05
    assert written.provenance["expert"]["ppo"]["hidden"] == [8]


def test_the_run_is_kept_beside_the_output(trained):
    folder = trained.with_name("experts.hdf5.run")
    names = {"settings.json", "metrics.jsonl", "checkpoint.safetensors", "actor.safetensors"}
    assert names <= {path.name for path in folder.iterdir()}
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["steps"] for line in lines] == [256, 512]
    assert {"multiplier", "kl", "seconds"} <= lines[-1].keys()


def test_the_same_command_again_trains_nothing_and_writes_the_same(trained, capsys):
    before = tacit.Trajectories.load(trained)
    metrics = (trained.with_name("experts.hdf5.run") / "metrics.jsonl").read_bytes()
    command = ["expert", "BlockedSwimmer", "--out", str(trained), "--number", "5", *TASK]
    main([*command, "--train", *SHORT])
    text = re.sub(r"[\s│┃]+", " ", capsys.readouterr().out)
    assert "512 steps" in text
    assert "the run in this folder is complete" in text
    assert tacit.Trajectories.load(trained) == before
    assert (trained.with_name("experts.hdf5.run") / "metrics.jsonl").read_bytes() == metrics


def test_other_settings_on_the_same_folder_are_an_error_that_names_them(trained, capsys):
    command = ["expert", "BlockedSwimmer", "--out", str(trained), "--number", "5", *TASK]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--train", *SHORT, "learning_rate=1e-5"])
    assert stop.value.code == 2
    assert "learning_rate" in capsys.readouterr().err


def test_a_policy_of_the_users_own_is_rolled_out(tmp_path, monkeypatch, capsys):
    program = "import numpy as np\ndef still(seen):\n    return np.zeros((len(seen), 2))\n"
    (tmp_path / "my_swimmer.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "own.npz"
    own = ["--policy", "my_swimmer:still"]
    main(["expert", "BlockedSwimmer", "--out", str(out), "--number", "3", *TASK, *own])
    written = tacit.Trajectories.from_npz(out)
    assert len(written) == 3
    assert (written.actions == 0).all()
    assert "training" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--train", "learning_rat=1"], "did you mean learning_rate"),
        (["--train", "minibatch=7"], "minibatch 7 does not divide"),
        (["--train", "epochs=two"], "epochs cannot be 'two'"),
        (["--train", "multiplier.kind=fancy"], "one of lagrange, pid, penalty"),
        (["--train", "multiplier.budget=-1"], "budget of cost must be at least 0"),
        (["--train", "steps"], "takes key=value"),
        (["--policy", "nowhere"], "module:name"),
        (["--policy", "no_such_module_here:x"], "No module named"),
        (["--policy", "math:pi"], "must be a function"),
        (["--policy", "nomodule:x"], "--policy nomodule:x: No module named"),
        (["--set", "noise_std=-1"], "noise_std"),
        (["--threads", "0"], "threads"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(tmp_path, capsys, arguments, words):
    with pytest.raises(SystemExit) as stop:
        main(["expert", "BlockedSwimmer", "--out", str(tmp_path / "a.hdf5"), *arguments])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "folder.hdf5").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "result.safetensors").write_text("")
    for name, words in (
        ("folder.hdf5", "is a folder"),
        ("file/a.hdf5", "cannot be written"),
        ("a.txt", "the ending must be"),
        ("run", "not a data set"),
    ):
        with pytest.raises(SystemExit):
            main(["expert", "BlockedSwimmer", "--out", str(tmp_path / name), *TASK])
        error = capsys.readouterr().err
        assert words in error
        assert "training" not in error


def test_exact_experts_take_no_training_settings(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["expert", "Chain", "--out", str(tmp_path / "a.hdf5"), "--train", "steps=5"])
    assert "computed exactly" in capsys.readouterr().err


def test_settings_are_read_by_the_kind_of_their_field():
    settings = ppo_with(
        PPO(),
        (
            "hidden=32,16",
            "target_kl=none",
            "normalise_costs=false",
            "multiplier.budget=0.1,0.2",
            "multiplier.largest=20",
            "multiplier.kind=pid",
        ),
    )
    assert settings.hidden == (32, 16)
    assert settings.target_kl is None
    assert settings.normalise_costs is False
    assert settings.multiplier.budget == (0.1, 0.2)
    assert (settings.multiplier.largest, settings.multiplier.kind) == (20, "pid")
    assert settings.learning_rate == PPO().learning_rate
    with pytest.raises(ArgumentError, match="normalise_costs cannot be 'maybe'"):
        ppo_with(PPO(), ("normalise_costs=maybe",))


def test_values_are_read_as_people_write_them():
    assert [parse_value(text) for text in ("True", "none", "3", "1e-4", "rooms")] == [
        True,
        None,
        3,
        1e-4,
        "rooms",
    ]


def test_a_log_gets_lines_with_speed_reward_violation_and_multiplier(capsys):
    settings = PPO(steps=16384)
    with watched("training", settings) as watch:
        for update in (1, 2):
            facts = {"steps": 8192 * update, "seconds": 2.0 * update, "multiplier": 1.5}
            watch({**facts, "reward": 12.0, "violation": 0.25})
    start, line = capsys.readouterr().err.splitlines()
    assert start == "training: starting; the first update compiles"
    for words in ("100%", "4,096 steps/s", "reward 12.0", "violation 25 %", "multiplier 1.50"):
        assert words in line


def test_several_multipliers_are_shown_side_by_side():
    assert summary({"multiplier speed": 1.0, "multiplier heat": np.pi}) == "multiplier 1.00/3.14"
