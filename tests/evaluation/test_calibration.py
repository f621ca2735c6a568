"""Expected calibration error by hand, and what must hold for any data."""

import dataclasses
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.control.play import play
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_world import simulator_of
from tacit.errors import ArgumentError, TaskError
from tacit.evaluation import simulated_calibration
from tacit.evaluation.calibration import (
    calibration_error,
    calibration_table,
    expected_calibration_error,
    labelled_episodes,
)
from tacit.evaluation.simulated_calibration import aggregated, evenly, random_actions

shares = st.integers(0, 100).map(lambda percent: percent / 100)
data = st.lists(st.tuples(shares, st.booleans()), min_size=1, max_size=60)
subjects = st.sampled_from(["prediction", "feasible"])
often = settings(max_examples=100, deadline=None)


def test_the_papers_recipe_by_hand():
    # confidences .9 .8 .7 .95 .55 .9; right: yes, yes, no, yes, no, no
    probabilities = [0.9, 0.2, 0.7, 0.05, 0.55, 0.1]
    labels = [1, 0, 0, 0, 0, 1]
    # (.4, .6]: .55 wrong; (.6, .8]: .8 right, .7 wrong; (.8, 1]: .9 right, .95 right, .9 wrong
    wanted = (abs(0 - 0.55) + 2 * abs(1 / 2 - 1.5 / 2) + 3 * abs(2 / 3 - 2.75 / 3)) / 6
    assert expected_calibration_error(probabilities, labels) == pytest.approx(wanted)
    table = calibration_table(probabilities, labels)
    assert table.counts.tolist() == [0, 0, 1, 2, 3]
    np.testing.assert_allclose(table.accuracy, [np.nan, np.nan, 0, 1 / 2, 2 / 3])
    np.testing.assert_allclose(table.confidence, [np.nan, np.nan, 0.55, 0.75, 2.75 / 3])
    np.testing.assert_allclose(table.edges, [0, 0.2, 0.4, 0.6, 0.8, 1])


def test_the_probability_of_feasible_by_hand():
    probabilities = [0.9, 0.2, 0.7, 0.05, 0.55, 0.1]
    labels = [1, 0, 0, 0, 0, 1]
    # (0, .2]: .2 no, .05 no, .1 yes; (.4, .6]: .55 no; (.6, .8]: .7 no; (.8, 1]: .9 yes
    wanted = (3 * abs(1 / 3 - 0.35 / 3) + 0.55 + 0.7 + 0.1) / 6
    found = expected_calibration_error(probabilities, labels, subject="feasible")
    assert found == pytest.approx(wanted)
    table = calibration_table(probabilities, labels, subject="feasible")
    assert table.counts.tolist() == [3, 0, 1, 1, 1]


def test_a_half_is_labelled_infeasible_and_ends_belong_to_the_lower_bin():
    assert expected_calibration_error([0.5], [0]) == pytest.approx(0.5)
    assert calibration_table([0.5], [0]).accuracy[2] == 1
    stated = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    table = calibration_table(stated, [0] * 6, subject="feasible")
    assert table.counts.tolist() == [2, 1, 1, 1, 1]


def test_opposite_errors_cancel_only_when_the_prediction_is_judged():
    # Of 10 stated at .9 all are feasible, of 10 stated at .1 two are: both are stated too low.
    probabilities = np.repeat([0.9, 0.1], 10)
    labels = np.r_[np.ones(10), np.ones(2), np.zeros(8)]
    assert expected_calibration_error(probabilities, labels) == pytest.approx(0)
    both = expected_calibration_error(probabilities, labels, subject="feasible")
    assert both == pytest.approx(0.1)


@often
@given(data, st.integers(1, 20), subjects)
def test_the_error_lies_between_zero_and_one(pairs, bins, subject):
    stated, labels = zip(*pairs, strict=True)
    error = expected_calibration_error(stated, labels, bins, subject=subject)
    assert 0 <= error <= 1
    table = calibration_table(stated, labels, bins, subject=subject)
    assert table.counts.sum() == len(pairs)
    used = table.counts > 0
    assert np.isnan(table.accuracy[~used]).all()
    assert np.all(table.confidence[used] > table.edges[:-1][used] - 1e-9)
    assert np.all(table.confidence[used] <= table.edges[1:][used] + 1e-9)


@often
@given(st.lists(st.integers(0, 20), min_size=1), subjects)
def test_perfect_calibration_has_no_error(groups, subject):
    """Of every group stated at k/20 exactly k in 20 are feasible."""
    stated = np.repeat(np.array(groups) / 20, 20)
    labels = np.concatenate([np.arange(20) < share for share in groups])
    assert expected_calibration_error(stated, labels, subject=subject) == pytest.approx(0)


@often
@given(data, st.randoms(use_true_random=False))
def test_the_order_does_not_matter_nor_which_label_is_called_feasible(pairs, random):
    stated, labels = (np.array(column) for column in zip(*pairs, strict=True))
    error = expected_calibration_error(stated, labels)
    mixed = random.sample(range(len(pairs)), len(pairs))
    assert expected_calibration_error(stated[mixed], labels[mixed]) == pytest.approx(error)
    sure = stated != 0.5
    if sure.any():
        assert expected_calibration_error(1 - stated[sure], ~labels[sure], 4) == pytest.approx(
            expected_calibration_error(stated[sure], labels[sure], 4)
        )


def test_certain_and_right_is_zero_certain_and_wrong_is_one():
    assert expected_calibration_error([0.0, 1.0], [0, 1]) == 0
    assert expected_calibration_error([0.0, 1.0], [True, False]) == 1
    assert expected_calibration_error([0.0, 1.0], [1, 0], subject="feasible") == 1


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        ([], [], "empty"),
        ([0.5], [0, 1], "shape"),
        ([[0.5]], [[1]], "shape"),
        ([0.1, np.nan], [0, 1], r"probabilities is nan at \[1\]"),
        ([0.1, 1.5], [0, 1], r"probabilities\[1\] = 1.5"),
        ([0.1, 0.5], [0, 2], r"labels\[1\] = 2"),
    ],
)
def test_bad_data_are_named(probabilities, labels, message):
    with pytest.raises(ArgumentError, match=message):
        expected_calibration_error(probabilities, labels)


@pytest.mark.parametrize("bins", [0, -1, 2.5, True])
def test_bins_are_counted_in_whole_numbers(bins):
    with pytest.raises(ArgumentError, match="bins"):
        expected_calibration_error([0.5], [1], bins)


def test_an_unknown_subject_is_refused():
    with pytest.raises(ArgumentError, match="subject"):
        expected_calibration_error([0.5], [1], subject="label")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def result():
    task = chain(length=21, limit=-3, horizon=8, reward_scale=3)
    return tacit.infer(task, tacit.collect(tacit.train_expert(task), 20, seed=0), confidence=0.7)


def test_half_of_the_episodes_obey_the_true_rule_and_are_labelled_so(result):
    states, actions, feasible = labelled_episodes(result, 30, np.random.default_rng(0))
    assert states.shape == actions.shape == (60, 8)
    truth = ~(result.task.costs[states, actions] > 0).any(axis=1)
    np.testing.assert_array_equal(feasible, truth)
    assert feasible.sum() == 30


def test_a_constraint_that_is_the_truth_has_no_error_and_its_opposite_the_largest(result):
    allowed = result.task.allowed

    def belief(right):
        model = dataclasses.replace(
            result.constraint.model,
            alpha=np.where(right, 1e4, 1.0),
            beta=np.where(right, 1.0, 1e4),
            reading="hard",
        )
        constraint = dataclasses.replace(result.constraint, model=model)
        return dataclasses.replace(result, constraint=constraint)

    assert calibration_error(belief(allowed), number=30) == 0
    assert calibration_error(belief(np.zeros_like(allowed)), number=30) == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_error(result):
    assert calibration_error(result, number=30, seed=3) == calibration_error(
        result, number=30, seed=3
    )


def test_a_task_without_infeasible_trajectories_is_an_error(result):
    task = dataclasses.replace(result.task, costs=np.zeros_like(result.task.costs))
    with pytest.raises(TaskError, match="only 0 of 30 infeasible"):
        calibration_error(dataclasses.replace(result, task=task), number=30)


CHAIN = chain(length=11, limit=-2, horizon=8, reward_scale=3)
SIMULATED = simulator_of(CHAIN)


class Rule:
    """The true rule, with a stated feasibility for what it allows and for what it forbids."""

    confidence = 0.8
    over_time = False

    def __init__(self, allowed=1.0, forbidden=0.0):
        self.allowed, self.forbidden = allowed, forbidden

    def feasibility(self, observations, actions, confidence=None):
        places = observations[..., :-1].argmax(axis=-1)
        right = CHAIN.costs[places, actions[..., 0].astype(int)] <= 0
        return np.where(right, self.allowed, self.forbidden)


def last_action(observations):
    return np.full(len(observations), CHAIN.number_of_actions - 1)


def first_action(observations):
    return np.zeros(len(observations), int)


def simulated_result(constraint, task=SIMULATED, policy=last_action):
    return SimpleNamespace(constraint=constraint, policy=policy, training=None, task=task)


def test_the_true_rule_has_no_error_and_its_opposite_a_large_one_on_simulated_tasks():
    for aggregate in ("product", "mean", "worst"):
        right = simulated_result(Rule())
        assert calibration_error(right, number=60, aggregate=aggregate) == 0
    assert calibration_error(simulated_result(Rule(0.0, 1.0)), number=60) > 0.4


def test_a_product_of_soft_beliefs_vanishes_and_the_others_do_not():
    soft = simulated_result(Rule(0.8, 0.1))
    product, mean, worst = (
        calibration_error(soft, number=60, aggregate=aggregate)
        for aggregate in ("product", "mean", "worst")
    )
    assert product > 0.3
    assert worst == pytest.approx(0.15, abs=0.01)
    assert mean < product


def test_aggregates_by_hand_ignore_what_comes_after_the_end():
    steps = np.array([[0.5, 0.5, 0.0], [0.9, 0.4, 0.9], [1.0, 0.0, 1.0]])
    lengths = np.array([2, 3, 3])
    np.testing.assert_allclose(aggregated(steps, lengths, "product"), [0.25, 0.324, 0])
    np.testing.assert_allclose(aggregated(steps, lengths, "mean"), [0.5, 0.324 ** (1 / 3), 0])
    np.testing.assert_allclose(aggregated(steps, lengths, "worst"), [0.5, 0.4, 0])
    long = aggregated(np.full((1, 9000), 0.9), np.array([9000]), "mean")
    np.testing.assert_allclose(long, 0.9)


def test_seeds_decide_and_threads_do_not():
    pendulum = tacit.make("BiasedPendulum", horizon=25)

    class Soft:
        confidence = 0.5
        over_time = False

        def feasibility(self, observations, actions, confidence=None):
            return 1 / (1 + np.exp(-200 * (observations[..., 0] + 0.015)))

    result = simulated_result(Soft(), pendulum, lambda observations: observations[:, :1] * 3)
    found = [
        calibration_error(result, number=50, seed=seed, threads=threads)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    ]
    assert found[0] == found[1] != found[2]


def test_behaviours_bring_what_the_policy_never_shows(monkeypatch):
    monkeypatch.setattr(simulated_calibration, "RANDOM_SHARES", ())
    monkeypatch.setattr(simulated_calibration, "MOST_BATCHES", 6)
    obedient, broken = both_ways()
    result = simulated_result(Rule(), policy=obedient)
    with pytest.raises(TaskError, match=r"only 0 of 60 infeasible .* give `behaviours`"):
        calibration_error(result, number=60)
    assert calibration_error(result, number=60, behaviours=[broken]) == 0


def both_ways():
    """A policy that keeps the rule and one that breaks it, whichever way actions point."""
    shares = {}
    for policy in (first_action, last_action):
        worlds = SIMULATED.worlds(64)
        shares[policy] = play(worlds, policy, seed=0).violated.mean()
        worlds.close()
    ordered = sorted(shares, key=shares.get)
    assert shares[ordered[0]] == 0 < shares[ordered[1]]
    return ordered


def test_a_shortage_warns_and_a_large_one_is_an_error(monkeypatch):
    monkeypatch.setattr(simulated_calibration, "RANDOM_SHARES", ())
    monkeypatch.setattr(simulated_calibration, "MOST_BATCHES", 2)
    obedient, broken = both_ways()
    result = simulated_result(Rule(), policy=obedient)
    with pytest.warns(UserWarning, match=r"only .* of 250 .* of each kind"):
        assert calibration_error(result, behaviours=[broken]) == 0
    monkeypatch.setattr(simulated_calibration, "FEWEST", 100)
    with pytest.raises(TaskError, match="of 250"):
        calibration_error(result, behaviours=[broken])


def test_parts_are_taken_evenly():
    parts = [np.zeros(9), np.ones(2), np.full(9, 2.0)]
    chosen = evenly(parts, 10)
    assert [int((chosen == kind).sum()) for kind in (0, 1, 2)] == [4, 2, 4]


def test_random_actions_fill_the_space():
    box = gymnasium.spaces.Box(np.array([-2, -np.inf]), np.array([0, np.inf]), dtype=np.float64)
    drawn = random_actions(box, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.min(axis=0), [-2, -1], atol=0.01)
    np.testing.assert_allclose(drawn.max(axis=0), [0, 1], atol=0.01)
    whole = random_actions(gymnasium.spaces.Discrete(3), 100, np.random.default_rng(0))
    assert set(whole.tolist()) == {0, 1, 2}


def test_arguments_that_cannot_work_are_errors(result):
    with pytest.raises(ArgumentError, match="aggregate"):
        calibration_error(result, aggregate="sum")
    with pytest.raises(ArgumentError, match="number"):
        calibration_error(result, number=0)
    with pytest.raises(ArgumentError, match="simulated tasks only"):
        calibration_error(result, behaviours=[last_action])
    with pytest.raises(ArgumentError, match="give the task"):
        calibration_error(simulated_result(Rule(), task=None))
