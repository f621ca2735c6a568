"""A learned rule asked about steps, against SciPy."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tacit.argument_checks import check_confidence
from tacit.errors import ArgumentError
from tacit.inference.constraint import Constraint
from tacit.inference.counts.model import TableModel

STATES, ACTIONS = 4, 3
LEVELS = (0.05, 0.3, 0.5, 0.7, 0.95)


def model(rule_on="state", reading="soft"):
    size = STATES * (ACTIONS if rule_on == "pair" else 1)
    random = np.random.default_rng(0)
    return TableModel(
        alpha=1 + 5 * random.random(size),
        beta=1 + 5 * random.random(size),
        reading=reading,
        budget=0.05,
        number_of_actions=ACTIONS,
        rule_on=rule_on,
    )


def constraint(rule_on="state", *, reading="soft", any_confidence=True):
    of = model(rule_on, reading)
    return Constraint(of, 0.7, of.spaces(), any_confidence)


@pytest.mark.parametrize("level", LEVELS)
def test_maps_are_those_of_the_beta_distribution(level):
    rule = model()
    above = stats.beta.sf(0.5, rule.alpha, rule.beta)
    wanted = stats.beta.ppf(1 - level, rule.alpha, rule.beta)
    np.testing.assert_allclose(rule.feasibilities(level), wanted, atol=1e-9)
    np.testing.assert_allclose(rule.costs(level), 1 - wanted, atol=1e-9)
    np.testing.assert_allclose(rule.supports(), above, atol=1e-12)
    np.testing.assert_array_equal(rule.allowed(level), above >= level)


@pytest.mark.parametrize("reading", ["soft", "hard", "graded"])
def test_allowed_sets_shrink_as_confidence_rises_whatever_the_reading(reading):
    rule = model(reading=reading)
    maps = [rule.allowed(level) for level in LEVELS]
    for looser, tighter in itertools.pairwise(maps):
        assert (tighter <= looser).all()
    assert maps[0].sum() > maps[-1].sum()


def test_numbers_come_back_in_double_precision_whatever_the_setting_outside():
    rule = model()
    assert rule.feasibilities(0.7).dtype == np.float64
    assert rule.costs(0.7).dtype == np.float64
    assert rule.supports().dtype == np.float64
    states = np.arange(STATES)
    assert constraint().cost(states, 0 * states).dtype == np.float64


def test_a_step_is_looked_up_by_state_or_by_pair():
    states, actions = np.array([0, 3, 2]), np.array([2, 0, 1])
    of_state, of_pair = constraint(), constraint("pair", reading="graded")
    assert len(set(of_pair.model.costs(0.95)[[2, 9, 7]])) == 3
    np.testing.assert_array_equal(
        of_state.cost(states, actions), of_state.model.costs(0.7)[[0, 3, 2]]
    )
    np.testing.assert_array_equal(
        of_pair.cost(states, actions), of_pair.model.costs(0.7)[[2, 9, 7]]
    )
    np.testing.assert_array_equal(
        of_pair.cost(states, actions, 0.95), of_pair.model.costs(0.95)[[2, 9, 7]]
    )
    np.testing.assert_array_equal(
        of_pair.feasibility(states, actions, 0.95), of_pair.model.feasibilities(0.95)[[2, 9, 7]]
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
    np.testing.assert_allclose(evidence.votes_for, rule.model.alpha[[5]] - 1)
    np.testing.assert_allclose(evidence.votes_against, rule.model.beta[[5]] - 1)
    np.testing.assert_allclose(
        evidence.support, stats.beta.sf(0.5, rule.model.alpha[5], rule.model.beta[5])
    )


def test_at_reads_the_same_belief_at_another_confidence():
    rule = constraint()
    other = rule.at(0.3)
    assert other.confidence == 0.3
    assert rule.confidence == 0.7
    assert other.model is rule.model
    states = np.arange(STATES)
    np.testing.assert_array_equal(other.cost(states, 0), rule.cost(states, 0, 0.3))
    assert not np.array_equal(other.cost(states, 0), rule.cost(states, 0))


def test_a_belief_for_one_confidence_refuses_another():
    rule = constraint(any_confidence=False)
    states = np.arange(STATES)
    np.testing.assert_array_equal(rule.cost(states, 0, 0.7), rule.cost(states, 0))
    for ask in (rule.at, rule.rules, lambda level: rule.cost(states, 0, level)):
        with pytest.raises(ArgumentError, match=r"0\.7"):
            ask(0.8)
    with pytest.raises(ArgumentError, match=r"0\.7"):
        rule.feasibility(states, 0, 0.8)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "high", None, True])
def test_a_confidence_outside_zero_to_one_is_an_error(confidence):
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        check_confidence(confidence)
    if confidence is not None:
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            constraint().cost(np.arange(STATES), 0, confidence)


@pytest.mark.parametrize("confidence", [np.float32(0.5), np.float64(0.5), 1e-6, 1 - 1e-6])
def test_any_number_between_zero_and_one_is_a_confidence(confidence):
    check_confidence(confidence)
    assert constraint().cost(np.arange(STATES), 0, confidence).shape == (STATES,)


@pytest.mark.parametrize(
    ("state", "action", "word"),
    [(STATES, 0, "states"), (-1, 0, "states"), (0, ACTIONS, "actions"), (0, -1, "actions")],
)
@pytest.mark.parametrize("rule_on", ["state", "pair"])
def test_steps_outside_the_task_are_an_error_not_another_step(rule_on, state, action, word):
    with pytest.raises(ArgumentError, match=f"{word}: must lie in 0 to"):
        constraint(rule_on, reading="graded").cost(np.array([state]), np.array([action]))


def test_real_numbers_are_not_states():
    with pytest.raises(ArgumentError, match="whole numbers"):
        constraint().cost(np.array([0.0]), np.array([0]))


def test_rules_are_the_forbidden_queries_that_somebody_speaks_against_the_strongest_first():
    random = np.random.default_rng(3)
    for rule_on, level in itertools.product(("state", "pair"), (0.5, 0.9)):
        queries = STATES * (ACTIONS if rule_on == "pair" else 1)
        alpha, beta = 1 + 3 * random.random(queries), 1 + 3 * random.random(queries)
        of = TableModel(alpha, beta, "graded", 0.05, ACTIONS, rule_on)
        rules = Constraint(of, 0.7, of.spaces(), True, names=("state",)).rules(level)
        forbidden = np.flatnonzero((stats.beta.sf(0.5, alpha, beta) < level) & (beta >= 2))
        assert 0 < len(forbidden) < queries
        found = [
            rule.state if rule.action is None else rule.state * ACTIONS + rule.action
            for rule in rules
        ]
        assert sorted(found) == forbidden.tolist()
        assert (np.diff(beta[found]) <= 0).all()
        for rule, query in zip(rules, found, strict=True):
            assert (rule.experts, rule.against) == (alpha[query] - 1, beta[query] - 1)
            where = "" if rule.action is None else f"action {rule.action} in "
            assert str(rule).startswith(f"{where}state {rule.state} is forbidden (")
            counted = f"{rule.against:.1f} experts speak against it, {rule.experts:.1f} for it"
            assert counted in str(rule)


@pytest.mark.parametrize("rule_on", ["state", "pair"])
@pytest.mark.parametrize("reading", ["soft", "hard", "graded"])
def test_the_belief_of_a_table_is_saved_and_loaded_as_every_constraint(tmp_path, rule_on, reading):
    mine = constraint(rule_on, reading=reading)
    path = mine.save(tmp_path / "constraint.safetensors")
    theirs = Constraint.load(path)
    assert isinstance(theirs.model, TableModel)
    assert theirs.spaces == mine.spaces
    states, actions = np.divmod(np.arange(STATES * ACTIONS), ACTIONS)
    for level in (None, 0.4):
        for ask in ("cost", "feasibility"):
            one, other = (getattr(rule, ask)(states, actions, level) for rule in (mine, theirs))
            assert one.dtype == other.dtype == np.float64
            assert one.tobytes() == other.tobytes()
    assert theirs.rules(0.6) == mine.rules(0.6)
    votes = [rule.evidence(states, actions) for rule in (mine, theirs)]
    assert votes[0].support.tobytes() == votes[1].support.tobytes()
