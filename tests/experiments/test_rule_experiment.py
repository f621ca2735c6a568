"""A rule or an imitation: judged from the finished runs of a comparison."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit.command_line import main
from tacit.errors import ArgumentError, StorageError, TaskError
from tacit.evaluation.recovery import SeenSteps
from tacit.experiments import rule
from tacit.experiments.methods import run_methods
from tacit.experiments.methods_cell import Comparison
from tacit.experiments.rule import POSTURES, Row, postures, run_rule, summed_table

pytestmark = pytest.mark.usefixtures("hasty_imitation")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A comparison on a short point task whose rule random walks break."""
    folder = tmp_path_factory.mktemp("runs")
    options = {"horizon": 20, "limit": -0.3}
    task = tacit.make("BlockedPoint", **options)
    expert = tacit.Expert(task, lambda seen: np.stack([0.5 - seen[:, 0], -seen[:, 1]], 1))
    tacit.collect(expert, 6, seed=1).save(folder / "experts.hdf5")
    comparison = Comparison(
        task="BlockedPoint",
        options=options,
        experts=str(folder / "experts.hdf5"),
        number=5,
        steps=1600,
        train={"worlds": 8, "rollout": 20, "minibatch": 80, "epochs": 1, "hidden": (8,)},
    )
    run_methods(folder / "all", comparison, methods=("none", "reach", "bc2l"), seeds=(1,))
    return folder / "all"


def test_every_finished_run_is_judged_and_drawn(runs, tmp_path, capsys, monkeypatch):
    def calibration_error(result, task, **settings):
        if result.settings["method"] == "bc2l":
            raise TaskError("too few of a kind")
        return 0.25

    monkeypatch.setattr(rule, "calibration_error", calibration_error)
    main(["experiment", "run", "rule", "--out", str(tmp_path), "--runs", str(runs)])
    assert "bc2l" in capsys.readouterr().out
    rows = json.loads((tmp_path / "rule.json").read_text())["rows"]
    assert [(row["method"], row["seed"]) for row in rows] == [("reach", 1), ("bc2l", 1)]
    for row in rows:
        assert len(row["recovery"]) == 3
        assert all(0 <= area <= 1 for area in row["recovery"])
    assert [row["calibration"] for row in rows] == [0.25, None]
    assert rows[1]["reason"] == "too few of a kind"
    assert (tmp_path / "postures.png").read_bytes().startswith(b"\x89PNG")
    assert "| bc2l | 1 | " in (tmp_path / "rule.md").read_text()
    # What was judged is not judged again, unless it is another run.
    monkeypatch.setattr(rule, "calibration_error", lambda *given, **settings: 0.5)
    again = run_rule(tmp_path, runs)
    assert [row.calibration for row in again] == [0.25, None]
    kept = tmp_path / "rows" / "bc2l-1.json"
    kept.write_text(kept.read_text().replace('"sha256": "', '"sha256": "0'))
    assert [row.calibration for row in run_rule(tmp_path, runs)] == [0.25, 0.5]


def test_calibration_can_be_left_out_and_measured_later(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(rule, "calibration_error", lambda *given, **settings: 0.5)
    wanted = {"methods": ("bc2l",)}
    (row,) = run_rule(tmp_path, runs, calibration=False, **wanted)
    assert (row.method, row.calibration) == ("bc2l", None)
    monkeypatch.setattr(rule, "recovered", None)  # not asked again
    (later,) = run_rule(tmp_path, runs, **wanted)
    assert later == dataclasses.replace(row, calibration=0.5, reason="")
    # What is known is kept, also where it is not asked for.
    assert run_rule(tmp_path, runs, calibration=False, **wanted) == [later]


def test_seeds_are_summed_up_with_intervals_and_tests():
    rows = [Row("reach", seed, [0.98 + 0.005 * seed] * 3, 0.1) for seed in (1, 2, 3)]
    rows += [Row("vicrl", seed, [0.5, 0.7, 0.6 + 0.03 * seed], 0.5) for seed in (1, 2, 3)]
    rows += [Row("icl", 1, [0.9] * 3, None, "too few of a kind")]
    _, (first, second, third) = summed_table(rows)
    areas = np.array([0.985, 0.990, 0.995])
    half = stats.t.ppf(0.975, 2) * areas.std(ddof=1) / np.sqrt(3)
    assert first[:4] == ["reach", "3", f"0.990 [{0.99 - half:.3f}, 1.000]", "–"]
    p = stats.ttest_ind(areas, 0.6 + 0.01 * np.array([1, 2, 3])).pvalue
    assert second[3] == f"{p:.0e}"
    assert second[4:] == ["0.500 [0.500, 0.500]", "–"]
    assert third == ["icl", "1", "0.900", "–", "–", "–"]


def test_what_is_missing_is_named(runs, tmp_path):
    with pytest.raises(StorageError, match="experiment run methods"):
        run_rule(tmp_path / "out", tmp_path)
    alone = tmp_path / "alone"
    (alone / "cells").mkdir(parents=True)
    (alone / "settings.json").write_bytes((runs / "settings.json").read_bytes())
    with pytest.raises(ArgumentError, match=r"none of reach, .* has finished"):
        run_rule(tmp_path / "out", alone)
    with pytest.raises(ArgumentError, match=r"'vicr'.*vicrl"):
        run_rule(tmp_path / "out", runs, methods=("vicr",))


RANDOM = np.random.default_rng(0)
NUMBER = 500
STEPS = SeenSteps(
    observations=RANDOM.normal(size=(NUMBER, 3)).astype(np.float32),
    actions=RANDOM.normal(size=(NUMBER, 1)).astype(np.float32),
    broken=np.arange(NUMBER) < 120,
)
# Whoever breaks the rule has another posture.
STEPS.observations[:, 1] = np.where(STEPS.broken, -5, 5)
VALUES = np.linspace(-2, 2, 9)


def constraint(feasibility):
    return SimpleNamespace(feasibility=lambda seen, done: feasibility(seen).astype(np.float32))


def test_a_rule_about_the_quantity_gives_one_curve_for_all_postures():
    curves = postures(constraint(lambda seen: seen[..., 0] >= 0.5), STEPS, 0, VALUES)
    assert curves.allowed.shape == (9, POSTURES)
    assert curves.forbidden.shape == (9, 120)
    wanted = (VALUES >= 0.5)[:, None]
    assert (curves.allowed == wanted).all()
    assert (curves.forbidden == wanted).all()


def test_an_imitation_gives_two_curves_that_are_level():
    curves = postures(constraint(lambda seen: seen[..., 1] > 0), STEPS, 0, VALUES)
    assert (curves.allowed == 1).all()
    assert (curves.forbidden == 0).all()


def test_the_steps_are_left_as_they_were_and_the_quantity_must_exist():
    before = STEPS.observations.copy()
    postures(constraint(lambda seen: seen[..., 2]), STEPS, 2, VALUES)
    np.testing.assert_array_equal(STEPS.observations, before)
    for quantity in (-1, 3):
        with pytest.raises(ArgumentError, match="one of the 3 observed numbers"):
            postures(constraint(lambda seen: seen[..., 2]), STEPS, quantity, VALUES)
