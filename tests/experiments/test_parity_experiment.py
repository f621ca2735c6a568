"""Sampling against the exact computation: what is compared, written and gone on with."""

import json

import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.environments.lab_tasks import chain
from tacit.errors import ArgumentError, StorageError
from tacit.experiments import parity
from tacit.experiments.parity import ParitySettings, reward_scale, run_parity, summed_up, worth

SETTINGS = ParitySettings((0.7, 0.9), (4,), (1, 2), iterations=2)


@pytest.fixture(scope="module")
def task():
    return chain(length=9, limit=-2, horizon=10, reward_scale=3)


@pytest.fixture(scope="module")
def out(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parity")
    run_parity(folder, SETTINGS, together=2, tasks=[task])
    return folder


def test_a_policy_is_judged_as_evaluate_does(task):
    walks = tacit.collect(tacit.train_expert(task), 4, seed=1)
    result = tacit.infer(task, walks, confidence=0.7)
    report = tacit.evaluate(result)
    violation, reward = worth(task, result.policy)
    assert violation == pytest.approx(float(report.violation.value), abs=1e-9)
    assert reward == pytest.approx(float(report.reward.value), abs=1e-9)


def test_rewards_lie_between_those_of_random_actions_and_of_the_best(task):
    low, high = reward_scale(task)
    shape = (task.horizon, task.number_of_states, task.number_of_actions)
    assert worth(task, np.full(shape, 1 / 3))[1] == pytest.approx(low)
    to_the_left = np.eye(3)[np.zeros(shape[:2], int)]
    assert worth(task, to_the_left)[1] == pytest.approx(high)


@pytest.mark.slow
def test_every_run_is_kept_and_compared(task, out):
    runs = sorted(file.name for file in (out / "runs").rglob("*.json"))
    assert runs == [f"4-{seed}-{level}.json" for seed in (1, 2) for level in (0.7, 0.9)]
    rows = json.loads((out / "parity.json").read_text())
    assert [(row["number"], row["confidence"]) for row in rows] == [(4, 0.7), (4, 0.9)]
    walks = tacit.collect(tacit.train_expert(task), 4, seed=2)
    exact = tacit.infer(task, walks, confidence=0.9)
    record = json.loads(next((out / "runs").rglob("4-2-0.9.json")).read_text())
    assert record["exact"] == pytest.approx(worth(task, exact.policy))
    met = record["policies"]
    assert sum(policy["weight"] for policy in met) == pytest.approx(1)
    spent = sum(policy["weight"] * policy["cost"] for policy in met)
    assert spent == pytest.approx(record["learned_cost"])
    assert "of 2 cells agree" in (out / "parity.md").read_text()


@pytest.mark.slow
def test_a_finished_experiment_computes_nothing_again(task, out, monkeypatch):
    monkeypatch.setattr(parity, "played", None)
    told = []
    rows = run_parity(out, SETTINGS, tasks=[task], progress=lambda *words: told.append(words))
    assert len(rows) == 2
    assert told[-1] == (4, 4, "done")
    with pytest.raises(StorageError, match="other settings"):
        run_parity(out, ParitySettings((0.7,), (4,), (1, 2), iterations=2), tasks=[task])


def test_means_and_differences(task):
    low, high = reward_scale(task)
    half = (low + high) / 2
    records = [
        {"exact": [0.0, low], "sampled": [0.02, half]},
        {"exact": [0.1, high], "sampled": [0.1, high]},
    ]
    (row,) = summed_up(task, ParitySettings((0.7,), (4,), (1, 2)), records)
    assert row.violation[:2] == pytest.approx((0.05, 0.06))
    assert row.violation[2].value == pytest.approx(0.01)
    assert row.reward[:2] == pytest.approx((0.5, 0.75))
    assert row.reward[2].value == pytest.approx(0.25)
    assert row.off == 0.5
    assert not row.agrees


@pytest.mark.slow
def test_the_command_runs(tmp_path, capsys):
    main(["experiment", "run", "parity", "--quick", "--out", str(tmp_path)])
    assert "parity.md" in capsys.readouterr().out
    assert "of 2 cells agree" in (tmp_path / "parity.md").read_text()


def test_there_must_be_a_run_at_a_time(tmp_path):
    with pytest.raises(ArgumentError, match="together"):
        run_parity(tmp_path, SETTINGS, together=0)
    with pytest.raises(ArgumentError, match="2 seeds"):
        run_parity(tmp_path, ParitySettings(seeds=(1,)))
