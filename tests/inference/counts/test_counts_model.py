"""A learned rule asked about steps, against SciPy."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tacit.argument_checks import check_confidence
from tacit.errors import ArgumentError
from tacit.inference.counts.model import TabularConstraint

STATES, ACTIONS = 4, 3
LEVELS = (0.05, 0.3, 0.5, 0.7, 0.95)


def constraint(rule_on="state", **changes):
    size = STATES * (ACTIONS if rule_on == "pair" else 1)
    random = np.random.default_rng(0)
    fields = {
        "alpha": 1 + 5 * random.random(size),
        "beta": 1 + 5 * random.random(size),
        "confidence": 0.7,
        "reading": "soft",
        "budget": 0.05,
        "number_of_actions": ACTIONS,
        "rule_on": rule_on,
    }
    return TabularConstraint(**{**fields, **changes})


@pytest.mark.parametrize("level", LEVELS)
def test_maps_are_those_of_the_beta_distribution(level):
    rule = constraint()
    above = stats.beta.sf(0.5, rule.alpha, rule.beta)
    wanted = stats.beta.ppf(1 - level, rule.alpha, rule.beta)
    np.testing.assert_allclose(rule.feasibility_map(level), wanted, atol=1e-9)
    np.testing.assert_allclose(rule.cost_map(level), 1 - wanted, atol=1e-9)
    np.testing.assert_allclose(rule.support_map(), above, atol=1e-12)
    np.testing.assert_array_equal(rule.allowed_map(level), above >= level)


@pytest.mark.parametrize("reading", ["soft", "hard", "graded"])
def test_allowed_sets_shrink_as_confidence_rises_whatever_the_reading(reading):
    rule = constraint(reading=reading)
    maps = [rule.allowed_map(level) for level in LEVELS]
    for looser, tighter in itertools.pairwise(maps):
        assert (tighter <= looser).all()
    assert maps[0].sum() > maps[-1].sum()


def test_numbers_come_back_in_double_precision_whatever_the_setting_outside():
    rule = constraint()
    assert rule.feasibility_map().dtype == np.float64
    assert rule.cost_map().dtype == np.float64
    assert rule.support_map().dtype == np.float64


def test_a_step_is_looked_up_by_state_or_by_pair():
    states, actions = np.array([0, 3, 2]), np.array([2, 0, 1])
    of_state, of_pair = constraint(), constraint("pair", reading="graded")
    assert len(set(of_pair.cost_map(0.95)[[2, 9, 7]])) == 3
    np.testing.assert_array_equal(of_state.cost(states, actions), of_state.cost_map()[[0, 3, 2]])
    np.testing.assert_array_equal(of_pair.cost(states, actions), of_pair.cost_map()[[2, 9, 7]])
    np.testing.assert_array_equal(
        of_pair.cost(states, actions, 0.95), of_pair.cost_map(0.95)[[2, 9, 7]]
    )
    np.testing.assert_array_equal(
        of_pair.feasibility(states, actions, 0.95), of_pair.feasibility_map(0.95)[[2, 9, 7]]
    )


def test_steps_may_have_any_number_of_axes_and_a_last_one_of_length_one():
    rule = constraint("pair", reading="graded")
    states = np.arange(6).reshape(2, 3) % STATES
    actions = np.arange(6).reshape(2, 3) % ACTIONS
    found = rule.cost(states[..., None], actions[..., None])
    assert found.shape == (2, 3)
    np.testing.assert_array_equal(found, rule.cost(states, actions))
    assert rule.cost(np.array(1), np.array(2)).shape == ()


def test_evidence_tells_the_votes():
    rule = constraint("pair")
    evidence = rule.evidence(np.array([1]), np.array([2]))
    np.testing.assert_allclose(evidence.votes_for, rule.alpha[[5]] - 1)
    np.testing.assert_allclose(evidence.votes_against, rule.beta[[5]] - 1)
    np.testing.assert_allclose(evidence.support, stats.beta.sf(0.5, rule.alpha[5], rule.beta[5]))


def test_at_reads_the_same_belief_at_another_confidence():
    rule = constraint()
    other = rule.at(0.3)
    assert other.confidence == 0.3
    assert rule.confidence == 0.7
    np.testing.assert_array_equal(other.cost_map(), rule.cost_map(0.3))
    assert not np.array_equal(other.cost_map(), rule.cost_map())


def test_a_belief_for_one_confidence_refuses_another():
    rule = constraint(any_confidence=False)
    np.testing.assert_array_equal(rule.cost_map(0.7), rule.cost_map())
    for ask in (rule.at, rule.cost_map, rule.feasibility_map, rule.allowed_map):
        with pytest.raises(ArgumentError, match=r"0\.7"):
            ask(0.8)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "high", None, True])
def test_a_confidence_outside_zero_to_one_is_an_error(confidence):
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        check_confidence(confidence)
    if confidence is not None:
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            constraint().cost_map(confidence)


@pytest.mark.parametrize("confidence", [np.float32(0.5), np.float64(0.5), 1e-6, 1 - 1e-6])
def test_any_number_between_zero_and_one_is_a_confidence(confidence):
    check_confidence(confidence)
    assert constraint().cost_map(confidence).shape == (STATES,)


@pytest.mark.parametrize(
    ("state", "action", "word"),
    [(STATES, 0, "states"), (-1, 0, "states"), (0, ACTIONS, "actions"), (0, -1, "actions")],
)
@pytest.mark.parametrize("rule_on", ["state", "pair"])
def test_steps_outside_the_task_are_an_error_not_another_step(rule_on, state, action, word):
    with pytest.raises(ArgumentError, match=f"{word} must lie in 0 to"):
        constraint(rule_on, reading="graded").cost(np.array([state]), np.array([action]))


def test_real_numbers_are_not_states():
    with pytest.raises(ArgumentError, match="whole numbers"):
        constraint().cost(np.array([0.0]), np.array([0]))
