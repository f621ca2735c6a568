"""The comparison of methods: its tables, a folder that survives being killed, early errors."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.errors import ArgumentError, StorageError, TacitError
from tacit.experiments import methods as experiment
from tacit.experiments.methods import run_methods
from tacit.experiments.methods_cell import NAMES, Comparison, Record
from tacit.experiments.methods_table import (
    caption,
    command_for,
    method_table,
    seed_table,
    summaries,
)

SMALL = {"worlds": 4, "rollout": 16, "minibatch": 32, "epochs": 1, "hidden": (8,)}
LEARNED = ("none", "bc2l")


pytestmark = pytest.mark.usefixtures("hasty_imitation")


def write_experts(path, number=6, observed=4):
    random = np.random.default_rng(0)
    tacit.Trajectories(
        observations=random.normal(0, 0.01, (number, 13, observed)).astype(np.float32),
        actions=random.uniform(-1, 1, (number, 12, 1)).astype(np.float32),
        rewards=np.ones((number, 12), np.float32),
        lengths=np.full(number, 12),
    ).save(path)
    return path


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    path = write_experts(tmp_path_factory.mktemp("data") / "experts-3.npz")
    return Comparison(
        "BiasedPendulum",
        {"horizon": 12},
        experts=str(path).replace("-3", "-{seed}"),
        number=4,
        steps=256,
        train=SMALL,
    )


@pytest.fixture(scope="module")
def finished(comparison, tmp_path_factory):
    """The folder of a whole run, its records and what was told."""
    out = tmp_path_factory.mktemp("methods") / "out"
    told, notices = [], []
    records = run_methods(
        out,
        comparison,
        methods=LEARNED,
        seeds=(3,),
        progress=lambda *progress: told.append(progress),
        notice=notices.append,
    )
    return SimpleNamespace(out=out, records=records, told=told, notices=notices)


def test_every_cell_is_learned_executed_and_recorded(finished):
    assert [(record.method, record.seed) for record in finished.records] == [
        ("none", 3),
        ("bc2l", 3),
    ]
    for record in finished.records:
        assert np.shape(record.execution) == (100, 4)
        assert 0 < len(record.training) <= 100
        assert record.steps == 256
        assert record.settings["ppo"]["steps"] == 256
        assert record.settings["seed"] == 3
        assert "jax" in record.versions
    assert finished.records[1].settings["demonstrations"] == 4
    saved = tacit.load(finished.out / "cells" / "bc2l-3")
    report = tacit.evaluate(saved, threads=1)
    _, feasible, violated, _ = np.mean(finished.records[1].execution, axis=0)
    assert report.violation.value == violated
    assert report.feasible_reward.value == pytest.approx(feasible)
    np.testing.assert_array_equal(saved.training, finished.records[1].training)


def test_progress_and_finished_cells_are_told(finished):
    assert finished.told[0][:2] == (0, 2)
    assert finished.told[-1][:2] == (2, 2)
    assert any("bc2l 3" in text for _, _, text in finished.told)
    assert [line.split(":")[0] for line in finished.notices] == ["none, seed 3", "bc2l, seed 3"]


def test_the_files_hold_settings_commands_versions_and_tables(finished, comparison):
    found = json.loads((finished.out / "methods.json").read_text())
    assert found["command"].startswith("tacit experiment run methods --out ")
    assert found["comparison"]["options"] == {"horizon": 12}
    assert "jax" in found["versions"]
    assert [line["method"] for line in found["summary"]] == ["none", "bc2l"]
    for cell, record in zip(found["cells"], finished.records, strict=True):
        assert cell["settings"] == record.settings
        assert f"--methods {record.method} --seeds 3" in cell["command"]
        assert cell["violation"] == np.mean(record.execution, axis=0)[2]
        assert (finished.out / cell["episodes"]).is_file()
    text = (finished.out / "methods.md").read_text()
    assert found["command"] in text
    assert "| none | 1 |" in text
    assert "| bc2l | 3 |" in text
    assert "over the pooled episodes of execution" in text
    assert "from 4 demonstrations" in text


def test_finished_cells_are_not_run_again(finished, comparison, monkeypatch):
    before = {path: path.read_bytes() for path in finished.out.rglob("*") if path.is_file()}
    monkeypatch.setattr(experiment, "run_cell", None)
    again = run_methods(finished.out, comparison, methods=LEARNED, seeds=(3,))
    assert again == finished.records
    assert before == {path: path.read_bytes() for path in finished.out.rglob("*") if path.is_file()}


def test_a_cell_killed_before_its_record_was_written_ends_the_same(finished, comparison):
    file = finished.out / "cells" / "none-3.json"
    metrics = finished.out / "cells" / "none-3" / "metrics.jsonl"
    record, lines = file.read_bytes(), metrics.read_bytes()
    file.unlink()
    run_methods(finished.out, comparison, methods=["none"], seeds=[3])
    assert file.read_bytes() == record
    assert metrics.read_bytes() == lines
    run_methods(finished.out, comparison, methods=LEARNED, seeds=[3])


def test_the_command_shown_is_read_back_as_the_same_comparison(finished, monkeypatch, capsys):
    monkeypatch.setattr(experiment, "run_cell", None)
    monkeypatch.setenv("COLUMNS", "200")
    before = (finished.out / "methods.md").read_bytes()
    main(shlex.split(json.loads((finished.out / "methods.json").read_text())["command"])[1:])
    printed = capsys.readouterr().out
    assert "Methods on BiasedPendulum" in printed
    assert "bc2l" in printed
    assert "methods.md" in printed
    assert (finished.out / "methods.md").read_bytes() == before


@pytest.mark.parametrize("change", [{"steps": 512}, {"confidence": 0.9}, {"options": {}}])
def test_the_folder_of_another_comparison_is_refused(finished, comparison, change):
    with pytest.raises(StorageError, match="other settings"):
        run_methods(finished.out, replace(comparison, **change), methods=LEARNED, seeds=[3])


@pytest.mark.parametrize(
    ("change", "asked", "named"),
    [
        ({}, {"methods": ["bc2"]}, "did you mean bc2l"),
        ({}, {"methods": ["none", "none"]}, "methods must be some that differ"),
        ({}, {"methods": []}, "methods must be some"),
        ({}, {"seeds": [-1]}, "seed must be"),
        ({}, {"seeds": [3, 4, 5]}, "experts-4.npz, .*experts-5.npz"),
        ({}, {"processes": 0}, "processes must be"),
        ({"number": 7}, {}, "has 6 demonstrations, fewer than the 7"),
        ({"experts": None}, {}, "there must be demonstrations"),
        ({"confidence": 1.0}, {}, "confidence"),
        ({"train": {"world": 3}}, {}, "did you mean worlds"),
        ({"train": {"minibatch": 77}}, {}, "minibatch 77 does not divide"),
        ({"task": "Chain", "options": {}}, {}, "tabular"),
        ({"task": "BlockedAnt", "options": {}, "train": {}}, {}, "another task"),
    ],
)
def test_errors_come_before_anything_runs(tmp_path, comparison, change, asked, named):
    chosen = {"methods": LEARNED, "seeds": [3], **asked}
    with pytest.raises(TacitError, match=named):
        run_methods(tmp_path / "out", replace(comparison, **change), **chosen)
    assert not (tmp_path / "out").exists()


def test_none_needs_no_demonstrations_and_others_are_not_mixed(finished, comparison, tmp_path):
    path = write_experts(tmp_path / "experts-3.npz", number=5)
    other = replace(comparison, experts=str(path))
    settings = json.loads((finished.out / "settings.json").read_text())
    settings["settings"]["experts"] = str(path)
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "cells").mkdir()
    for method in LEARNED:
        record = (finished.out / "cells" / f"{method}-3.json").read_bytes()
        (tmp_path / "cells" / f"{method}-3.json").write_bytes(record)
    run_methods(tmp_path, other, methods=["none"], seeds=[3])
    with pytest.raises(StorageError, match="other demonstrations"):
        run_methods(tmp_path, other, methods=LEARNED, seeds=[3])


def made_up(method, seed, violated, reward):
    rows = [
        [reward + place, 0.0 if place < violated else reward, place < violated, 5]
        for place in range(4)
    ]
    rows = [list(map(float, row)) for row in rows]
    return Record(method, seed, 8, 1.5, rows[:2], rows, {}, {})


def test_tests_against_reach_from_three_seeds_on():
    records = [made_up("reach", seed, 0, 10.0 + seed) for seed in (1, 2, 3)]
    records += [made_up("icrl", seed, seed, 2.0 + seed) for seed in (1, 2, 3)]
    records += [made_up("none", seed, 0, 12.0) for seed in (1, 2, 3)]
    first, second, third = summaries(records)
    assert first.p_violation is None
    assert 0 < second.p_violation < 0.05
    assert 0 < second.p_feasible_reward < 0.001
    assert third.p_violation is None
    assert third.p_feasible_reward == pytest.approx(1.0)
    assert second.violation.value == 0.5
    assert 0 <= second.violation.low < 0.5 < second.violation.high <= 1
    columns, rows = method_table(records)
    assert columns[-2:] == ["p feasible reward", "p violation"]
    assert rows[2][-1] == "–"
    assert "over 3 seeds" in caption(Comparison(), records)
    few = [record for record in records if record.seed < 3]
    assert "p violation" not in method_table(few)[0]
    assert len(seed_table(few)[1]) == 6
    blank = [replace(record, training=[]) for record in few]
    assert summaries(blank)[0].training_violation is None
    assert "–" in method_table(blank)[1][0]


def test_the_command_spells_settings_as_they_are_read(tmp_path):
    options = {"variant": "paper", "noise_shared": True, "horizon": None}
    comparison = Comparison("BlockedAnt", options, "some {seed}.hdf5", train={"hidden": [8, 9]})
    words = shlex.split(command_for(tmp_path, comparison, NAMES, (1, 2), processes=2))
    for word in ("noise_shared=true", "horizon=none", "some {seed}.hdf5", "hidden=8,9"):
        assert word in words


def worker(text):
    """A stand-in for the process of a cell: where its record goes is its first argument."""

    def command(cell, threads):
        return [sys.executable, "-c", text, str(cell.file), cell.method, str(cell.seed)]

    return command


def test_cells_run_in_processes_and_failures_do_not_stop_the_others(tmp_path, monkeypatch):
    text = (
        "import sys, json, pathlib\n"
        "file, method, seed = sys.argv[1:]\n"
        "if seed == '2': sys.exit('it diverged')\n"
        "rows = [[1., 1., 0., 5.]] * 3\n"
        "pathlib.Path(file).write_text(json.dumps(dict(method=method, seed=int(seed), steps=8,"
        "minutes=1., training=rows, execution=rows, settings={}, versions={})))"
    )
    monkeypatch.setattr(experiment, "worker_command", worker(text))
    told = []
    asked = {"methods": ["none"], "processes": 2, "notice": told.append}
    plain = Comparison("BiasedPendulum", {})
    with pytest.raises(TacitError, match=r"1 of 3 cells failed.*none, seed 2: it diverged"):
        run_methods(tmp_path, plain, seeds=(1, 2, 3), **asked)
    assert len(told) == 3
    assert not (tmp_path / "methods.json").exists()
    assert [path.name for path in (tmp_path / "cells").glob("*.log")] == ["none-2.log"]
    records = run_methods(tmp_path, plain, seeds=(1, 3), **asked)
    assert [record.seed for record in records] == [1, 3]


def test_stopping_stops_the_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "worker_command", worker("import time; time.sleep(600)"))
    started = []
    own = experiment.start
    monkeypatch.setattr(
        experiment, "start", lambda *given: started.append(own(*given)) or started[-1]
    )

    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "time", SimpleNamespace(sleep=stop))
    with pytest.raises(KeyboardInterrupt):
        run_methods(
            tmp_path, Comparison("BiasedPendulum", {}), methods=["none"], seeds=(1, 2), processes=2
        )
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    """A worker whose standard input is closed leaves, whatever it was doing."""
    text = (
        "from tacit.experiments.methods_cell import end_with_parent\n"
        "import time; end_with_parent(); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE)
    try:
        time.sleep(0.1)
        process.stdin.close()
        assert process.wait(60) == 130
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--methods", "magic", "--quick"], "methods are none, reach"),
        (["--train", "world=3"], "did you mean worlds"),
        (["--train", "steps=3"], "train cannot set 'steps'"),
        (["--task", "BlockedAntt"], "did you mean BlockedAnt"),
        (["--methods", "icrl"], "there must be demonstrations"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, capsys, options, named):
    with pytest.raises(SystemExit) as stop:
        main(["experiment", "run", "methods", "--out", str(tmp_path / "out"), *options])
    assert stop.value.code == 2
    assert named in " ".join(capsys.readouterr().err.split())


def test_wrong_names_are_argument_errors(comparison, tmp_path):
    with pytest.raises(ArgumentError):
        run_methods(tmp_path, comparison, methods=["magic"], seeds=[3])
