"""Reach over numbers and confidences: cells are kept, rows are honest about their seeds."""

import json

import numpy as np
import pytest

import tacit
from tacit.errors import ArgumentError
from tacit.experiments import confidence
from tacit.experiments.confidence import confidence_table, run_confidence, summed
from tacit.experiments.methods_cell import Comparison, Record

COMPARISON = Comparison(task="BlockedPoint", options={}, experts="unused.hdf5", steps=1000)


def record(seed, violated, reward=10.0):
    """100 executed episodes, of which some violate."""
    rows = np.zeros((100, 4))
    rows[:, 0] = reward
    rows[:violated, 2] = 1
    rows[:, 1] = reward * (1 - rows[:, 2])
    return Record("reach", seed, 1000, 0.1, rows.tolist(), rows.tolist(), {}, {})


def test_the_interval_of_a_row_is_the_wider_of_seeds_and_episodes():
    row = summed(5, 0.7, [record(1, 0), record(2, 0), record(3, 30)])
    assert row.violation.value == pytest.approx(0.1)
    assert row.violation.low <= 0.001
    assert row.violation.high >= 0.29
    assert row.worst == pytest.approx(0.3)
    assert row.reward.value == pytest.approx(9.0)
    calm = summed(5, 0.7, [record(seed, 0) for seed in (1, 2, 3)])
    assert calm.violation.low == 0
    assert 0.005 < calm.violation.high < 0.03


def test_a_promise_is_kept_only_if_the_whole_interval_keeps_it():
    assert summed(5, 0.7, [record(seed, 20) for seed in range(10)]).kept
    assert not summed(5, 0.7, [record(seed, 30) for seed in range(10)]).kept
    table = confidence_table([summed(5, 0.7, [record(seed, 40) for seed in range(3)])])
    assert "broken" in table[1][0][3]


def test_all_numbers_and_levels_are_run_and_written(tmp_path, monkeypatch):
    asked = []

    def run(out, comparison, *, methods, seeds, processes, threads):
        asked.append((out.name, comparison.number, comparison.confidence, methods, tuple(seeds)))
        return [record(seed, 1) for seed in seeds]

    monkeypatch.setattr(confidence, "run_methods", run)
    rows = run_confidence(
        tmp_path, COMPARISON, numbers=(5, 20), confidences=(0.5, 0.9), seeds=(1, 2)
    )
    assert asked == [
        (f"{size}-{level}", size, level, ("reach",), (1, 2))
        for size in (5, 20)
        for level in (0.5, 0.9)
    ]
    stored = json.loads((tmp_path / "confidence.json").read_text())
    assert [row["number"] for row in stored["rows"]] == [row.number for row in rows]
    assert (tmp_path / "confidence.md").read_text().count("\n| ") == 6
    assert (tmp_path / "confidence.png").read_bytes().startswith(b"\x89PNG")


def test_levels_that_repeat_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="confidences"):
        run_confidence(tmp_path, COMPARISON, numbers=(5,), confidences=(0.5, 0.5), seeds=(1,))
    assert tacit.make("BlockedPoint").name == COMPARISON.task
