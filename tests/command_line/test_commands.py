"""The commands from end to end, through files."""

import importlib
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from tacit.command_line import COMMANDS, find_command, main, no_interrupt_lost
from tacit.experiments.coverage import COLUMNS, CoverageSettings

CHAIN = ("--set", "length=11", "limit=-2", "horizon=10", "reward_scale=10")
SCRIPT = Path(sys.executable).parent / "tacit"


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def task():
    return tacit.make("Chain", length=11, limit=-2, horizon=10, reward_scale=10)


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "experts.hdf5"
    main(["expert", "Chain", "--out", str(path), "--number", "12", "--seed", "3", *CHAIN])
    return path


@pytest.fixture(scope="module")
def run(experts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "result"
    options = ["--experts", str(experts), "--confidence", "0.7", "--seed", "5"]
    main(["infer", "Chain", *options, "--out", str(folder), *CHAIN])
    return folder


def printed(capsys, *arguments):
    """What the command prints, with single spaces and without the lines of tables."""
    main([str(argument) for argument in arguments])
    return re.sub(r"[\s│┃]+", " ", capsys.readouterr().out)


def test_expert_writes_the_demonstrations_that_the_library_collects(experts, task):
    written = tacit.Trajectories.load(experts)
    assert written == tacit.collect(tacit.train_expert(task), 12, seed=3)
    assert not written.violated.any()


def test_expert_says_what_it_wrote(tmp_path, capsys, task):
    path = tmp_path / "folder-v0"
    text = printed(capsys, "expert", "chain", "--out", path, "--number", 4, *CHAIN)
    written = tacit.Trajectories.load(path)
    assert len(written) == 4
    assert "feasible episodes written 4" in text
    assert f"episodes discarded {written.provenance['discarded']}" in text
    assert f"reward per episode {tacit.train_expert(task).reward:.2f}" in text


def test_infer_saves_what_the_library_infers(run, experts, task):
    saved = tacit.load(run)
    expected = tacit.infer(task, tacit.Trajectories.load(experts), confidence=0.7, seed=5)
    np.testing.assert_array_equal(saved.policy.table, expected.policy.table)
    np.testing.assert_array_equal(saved.constraint.model.alpha, expected.constraint.model.alpha)
    assert saved.constraint.confidence == 0.7
    assert saved.settings["seed"] == 5


def test_infer_passes_the_settings_of_the_method_on(experts, capsys, tmp_path):
    text = printed(
        capsys, "infer", "Chain", "--experts", experts, "--out", tmp_path / "run", *CHAIN,
        "--learn", "reading=hard", "votes=visits-fallible",
    )  # fmt: skip
    assert "confidence 0.8" in text
    settings = tacit.load(tmp_path / "run").settings
    assert settings["settings"] == {"reading": "hard", "votes": "visits-fallible"}


def test_infer_needs_no_folder_and_says_which_method_ran(experts, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = printed(capsys, "infer", "Chain", "--experts", experts, *CHAIN)
    assert "method counts (the default here)" in text
    assert re.search(r"rule 1 state \d+ is forbidden", text)
    assert "saved in" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("hasty_imitation")
def test_a_table_is_a_simulator_for_methods_that_act(experts, capsys, tmp_path):
    few = ["steps=320", "worlds=8", "minibatch=40", "epochs=1", "hidden=8"]
    text = printed(
        capsys, "infer", "Chain", "--experts", experts, "--method", "bc2l", "--out",
        tmp_path / "run", *CHAIN, "--learn", "hidden=8", "passes=2", "--train", *few,
    )  # fmt: skip
    assert "steps 320" in text
    assert "method bc2l" in text
    assert "the default here" not in text
    assert tacit.load(tmp_path / "run").method == "bc2l"
    assert "execution" in printed(
        capsys, "evaluate", tmp_path / "run", "--episodes", 4, "--no-calibration"
    )


def test_a_folder_with_another_result_is_refused_and_left_alone(run, experts, capsys):
    before = (run / "result.safetensors").read_bytes()
    asked = ["infer", "Chain", "--experts", str(experts), "--out", str(run), *CHAIN]
    for other in (["--confidence", "0.5", "--seed", "5"], ["--confidence", "0.7", "--seed", "6"]):
        with pytest.raises(SystemExit) as stopped:
            main([*asked, *other])
        assert stopped.value.code == 2
        assert "holds a run with other settings" in capsys.readouterr().err
    main([*asked, "--confidence", "0.7", "--seed", "5"])
    assert (run / "result.safetensors").read_bytes() == before


def test_a_request_that_makes_no_sense_claims_no_folder(experts, tmp_path):
    asked = ["infer", "Chain", "--experts", str(experts), "--out", str(tmp_path / "run"), *CHAIN]
    with pytest.raises(SystemExit):
        main([*asked, "--confidence", "1.5"])
    main([*asked, "--confidence", "0.5"])
    assert tacit.load(tmp_path / "run").constraint.confidence == 0.5


def test_evaluate_takes_no_options_of_a_task_that_is_not_named(run, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(run), "--set", "limit=-1"])
    assert stopped.value.code == 2
    assert "leave --task and --set away" in capsys.readouterr().err


@pytest.fixture
def interruptible():
    """Interrupts are ignored in what a shell started in its background."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_is_lost_is_sent_once_more(monkeypatch):
    told = []
    before = told.append
    monkeypatch.setattr(sys, "unraisablehook", before)
    other = SimpleNamespace(exc_value=ValueError("another"))
    with no_interrupt_lost():
        sys.unraisablehook(other)
        assert told == [other]
        with pytest.raises(KeyboardInterrupt):
            sys.unraisablehook(SimpleNamespace(exc_value=KeyboardInterrupt()))
    assert told == [other]
    assert sys.unraisablehook is before


def test_evaluate_prints_the_exact_numbers(run, capsys):
    text = printed(capsys, "evaluate", run)
    report = tacit.evaluate(tacit.load(run))
    assert f"violation of the true rule {100 * report.violation.value:.1f} % " in text
    assert "promise: at most 30.0 %" in text
    assert f"reward per episode {report.reward}" in text


def test_evaluate_rolls_out_episodes_when_asked(run, capsys):
    text = printed(capsys, "evaluate", run, "--episodes", 50, "--seed", 2)
    report = tacit.evaluate(tacit.load(run), episodes=50, seed=2)
    assert f"reward per episode {report.reward}" in text
    assert report.reward.high > report.reward.low


@pytest.mark.parametrize("reward", [-1000, 10_000])
def test_sufficient_answers_as_the_library_does(experts, task, capsys, reward):
    data = tacit.Trajectories.load(experts)
    answer = tacit.sufficient(task, data, reward=reward, confidence=0.6)
    text = printed(
        capsys, "sufficient", "Chain", "--experts", experts, "--reward", reward,
        "--confidence", 0.6, *CHAIN,
    )  # fmt: skip
    assert f"answer {answer.reason}" in text
    assert answer.enough is (reward < 0)
    assert f"recommended number {'none' if reward > 0 else answer.recommended_number}" in text
    level = answer.largest_confidence
    assert f"largest confidence that would do {'none' if level is None else f'{level:g}'}" in text
    for size in answer.curve.sizes:
        assert f" {size} " in text


def test_a_task_of_ones_own_goes_the_same_way(tmp_path, task, capsys):
    path = tmp_path / "corridor.npz"
    np.savez(
        path, transitions=task.transitions, rewards=task.rewards, costs=task.costs,
        initial=task.initial, horizon=task.horizon, budget=task.budget,
    )  # fmt: skip
    text = printed(capsys, "expert", path, "--out", tmp_path / "own.h5", "--number", 5)
    assert "Expert on corridor" in text
    text = printed(
        capsys, "infer", path, "--experts", tmp_path / "own.h5", "--out", tmp_path / "run"
    )
    assert "corridor, 5 demonstrations" in text
    assert tacit.load(tmp_path / "run").task.name == "corridor"


@pytest.mark.parametrize(
    "ending",
    [
        ".hdf5",
        "",
        pytest.param(
            ".npz",
        ),
        pytest.param(
            ".csv",
        ),
    ],
)
def test_what_expert_writes_can_be_shown(tmp_path, capsys, ending):
    path = tmp_path / f"experts{ending}"
    main(["expert", "Chain", "--out", str(path), "--number", "2", *CHAIN])
    capsys.readouterr()
    assert "episodes 2" in printed(capsys, "data", "show", path)


@pytest.fixture
def asked(monkeypatch):
    """The settings of the coverage runs that were started; none is really run."""
    found = []
    row = dict.fromkeys(COLUMNS, 0.5)
    row.update(task="a chain", objective="counts", votes="visits", reading="graded", experts=5)

    def run_coverage(out, settings, *, progress):
        progress(1, 2, "half-way")
        found.append((out, settings))
        return [row, {**row, "task": "not shown", "reading": "hard"}]

    module = importlib.import_module("tacit.experiments.coverage")
    monkeypatch.setattr(module, "run_coverage", run_coverage)
    return found


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ([], CoverageSettings()),
        (["--quick"], CoverageSettings.quick()),
        (["--datasets", "7", "--seed", "4"], CoverageSettings(datasets=7, seed=4)),
        (["--quick", "--datasets", "3"], CoverageSettings(datasets=3, candidates=10)),
    ],
)
def test_experiment_takes_its_settings_from_the_options(asked, capsys, options, settings):
    text = printed(capsys, "experiment", "run", "coverage", "--out", "some/where", *options)
    assert asked == [(Path("some/where"), settings)]
    assert "a chain" in text
    assert "not shown" not in text
    assert "some/where/coverage.csv (2 rows)" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_every_argument_with_its_documentation(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    caught = capsys.readouterr()
    text = re.sub(r"[\s│]+", " ", caught.out)
    assert caught.err == ""
    documentation = find_command(command).__doc__
    summary = " ".join(documentation.split("\n\n")[0].split())
    assert summary in text
    arguments = re.findall(r"^        (\w+): (.+)$", documentation, re.MULTILINE)
    assert arguments
    for name, meaning in arguments:
        assert meaning in text
        positional = name in ("action", "file", "folder", "name", "run", "task")
        option = "--set" if name == "settings" else f"--{name}"
        assert positional or re.search(rf"{option}\b", text)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "usage: tacit COMMAND [options]" in text
    for command, (_, line) in COMMANDS.items():
        assert f" {command} " in text
        assert line in text


@pytest.mark.parametrize("arguments", [["--help"], *([command, "--help"] for command in COMMANDS)])
def test_help_imports_neither_jax_nor_what_is_slow(arguments):
    script = (
        "import sys\nfrom tacit.command_line import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as left:\n    assert left.code == 0\n"
        "slow = {'jax', 'optax', 'equinox', 'scipy', 'mujoco', 'matplotlib'} & set(sys.modules)\n"
        "print(slow or 'none of them', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == "none of them\n"


@pytest.mark.parametrize(
    ("arguments", "code"), [(("data", "--help"), 0), (("expert", "Nowhere", "--out", "x"), 2)]
)
def test_the_installed_command_ends_with_the_right_code(tmp_path, arguments, code):
    done = subprocess.run(
        [SCRIPT, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if code:
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("error: there is no task 'Nowhere'")
    else:
        assert "convert" in done.stdout
