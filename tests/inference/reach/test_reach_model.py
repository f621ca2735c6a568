"""Counting how far experts went: exact against brute force, monotone, readable, saved whole."""

import itertools

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ArgumentError
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.inference.inputs import Inputs
from tacit.inference.reach.model import Extent, Extremes, ReachModel

BOX = gymnasium.spaces.Box(-1, 1, (1,), np.float32)


def reach(lowest, highest):
    return Extent(
        jnp.asarray(np.sort(np.asarray(lowest, np.float32), axis=-1)),
        jnp.asarray(np.sort(np.asarray(highest, np.float32), axis=-1)),
    )


def model(experts, tempted, reading="graded"):
    who = jnp.zeros(experts.lowest.shape, jnp.int32)
    order = jnp.broadcast_to(jnp.arange(experts.episodes, dtype=jnp.int32), who.shape)
    inputs = Inputs.blank(len(experts.lowest), BOX)
    return ReachModel(inputs, experts, Extremes(order, who, order, who), tempted, reading)


def constraint(of, confidence=0.7):
    size = of.inputs.centre.shape[0]
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    return Constraint(of, confidence, Spaces(seen, BOX), True)


# One quantity: 8 experts whose lowest values are -1.0, -0.9 ... -0.3; all reach 1.
EXPERTS = reach([np.linspace(-1.0, -0.3, 8)], [np.ones(8)])
WANTED = reach([np.r_[[-3.0] * 3, [-0.5]]], [np.ones(4)])
MODEL = model(EXPERTS, WANTED)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 5)), min_size=1, max_size=9),
    st.integers(-12, 12),
)
def test_the_count_is_that_of_the_episodes_that_pass_the_value(spans, doubled):
    lowest, width = np.array(spans, float).T
    counted = reach([lowest], [lowest + width]).passing(jnp.array([[doubled / 2]]))
    assert int(counted[0, 0]) == sum(low <= doubled / 2 <= low + wide for low, wide in spans)


def test_the_widest_of_two_rounds_has_the_larger_share_at_every_value():
    draws = np.random.default_rng(0)
    one, other = (
        reach(-draws.exponential(size=(2, 6)), draws.exponential(size=(2, 6))) for _ in "ab"
    )
    both = one.widened(other)
    values = jnp.asarray(draws.normal(0, 2, (500, 2)), jnp.float32)
    upper = jnp.abs(values)
    for side in (upper, -upper):
        larger = jnp.maximum(one.passing(side), other.passing(side))
        np.testing.assert_array_equal(both.passing(side), larger)


@pytest.mark.parametrize(
    ("value", "votes"),
    [(0.0, 8), (-0.3, 8), (-0.95, 1), (-1.0, 1), (-1.01, -6), (-3.0, -6), (-9.0, -6), (1.1, 0)],
)
def test_votes_for_where_experts_were_and_against_where_only_policies_were(value, votes):
    assert float(MODEL.votes(jnp.array([value]))[0]) == votes


@pytest.mark.parametrize(("value", "widths"), [(-0.5, 0), (-1.0, 0), (-2.0, 0.5), (-5, 2), (9, 0)])
def test_a_step_is_beyond_the_experts_where_it_is_doubted_only(value, widths):
    assert float(MODEL.beyond(jnp.array([[value]]))[0]) == pytest.approx(widths)


def test_the_least_supported_quantity_decides():
    two = model(reach([[-1.0] * 4, [0.0] * 4], [[1.0] * 4, [2.0] * 4]), Extent.nowhere(2, 3))
    alpha, beta = two.belief(jnp.array([[0.0, 1.0], [0.0, 3.0]]))
    np.testing.assert_array_equal(alpha, [5, 1])
    np.testing.assert_array_equal(beta, [1, 1])


def test_what_is_allowed_shrinks_as_confidence_rises():
    values = np.linspace(-2, 1, 301, dtype=np.float32)[:, None]
    idle = np.zeros((301, 1), np.float32)
    allowed = [
        constraint(MODEL).feasibility(values, idle, level) >= 1 for level in (0.1, 0.5, 0.7, 0.9)
    ]
    for looser, tighter in itertools.pairwise(allowed):
        assert (looser | ~tighter).all()
    assert allowed[0].sum() > allowed[-1].sum()
    # At .9 three visits are wanted: -1.0, -0.9 and -0.8 are the three lowest.
    np.testing.assert_allclose(values[allowed[-1]].min(), -0.8, atol=0.011)
    np.testing.assert_allclose(values[allowed[2]].min(), -1.0, atol=0.011)


def test_learning_charges_nothing_where_nobody_wants_to_go():
    values = jnp.array([[1.5], [-2.0], [0.0]])
    np.testing.assert_allclose(MODEL.costs(values, 0.7)[:, 0], [0, 1 - 2.0**-7 / 0.7, 0], atol=1e-6)
    asked = constraint(MODEL).cost(np.asarray(values), np.zeros((3, 1), np.float32))
    np.testing.assert_allclose(asked, [1 - 0.5 / 0.7, 1 - 2.0**-7 / 0.7, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("confidence", "limit", "experts"), [(0.3, -1.0, 1), (0.7, -1.0, 1), (0.9, -0.8, 3)]
)
def test_rules_say_what_is_forbidden_and_how_sure_that_is(confidence, limit, experts):
    (rule,) = constraint(MODEL).rules(confidence)
    assert (rule.quantity, rule.side, rule.experts) == (0, "below", experts)
    assert rule.limit == pytest.approx(limit)
    assert rule.against == 6
    assert "observation 0 is at least" in str(rule)


def test_rules_above_are_the_mirror_of_rules_below():
    turned = model(reach(-EXPERTS.highest, -EXPERTS.lowest), reach(-WANTED.highest, -WANTED.lowest))
    (rule,) = turned.rules(0.9, ())
    assert (rule.side, rule.limit) == ("above", pytest.approx(0.8))
    assert "at most 0.8" in str(rule)


def test_a_low_confidence_bears_a_few_votes_against():
    one = model(EXPERTS, reach([np.r_[[-3.0], [0.0] * 7]], [np.ones(8)]))
    assert constraint(one).rules(0.2) == []
    assert [rule.against for rule in constraint(one).rules(0.6)] == [1]


def test_evidence_names_those_who_went_furthest():
    evidence = constraint(MODEL).evidence(np.array([[-0.95], [-2.0]]), np.zeros((2, 1)), most=2)
    np.testing.assert_array_equal(evidence.votes_for, [1, 0])
    np.testing.assert_array_equal(evidence.votes_against, [0, 6])
    np.testing.assert_array_equal(evidence.expert, [[0, 1], [0, 1]])
    np.testing.assert_array_equal(evidence.weight, [[1, 0], [0, 0]])


def test_a_saved_constraint_says_the_same(tmp_path):
    mine = constraint(MODEL)
    path = mine.save(tmp_path / "constraint.safetensors")
    theirs = Constraint.load(path)
    values, idle = np.linspace(-4, 2, 50, dtype=np.float32)[:, None], np.zeros((50, 1), np.float32)
    for level in (0.3, 0.9):
        np.testing.assert_array_equal(
            mine.cost(values, idle, level), theirs.cost(values, idle, level)
        )
    assert mine.rules(0.8) == theirs.rules(0.8)
    assert eqx.tree_equal(mine.model, theirs.model)


def test_a_network_has_no_rules():
    from tacit.inference.baselines.networks import ClassifierModel

    seen = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    network = ClassifierModel.blank(Spaces(seen, BOX), {"hidden": [4]})
    with pytest.raises(ArgumentError, match="nobody can read"):
        constraint(network).rules()


def test_of_two_rules_the_one_that_policies_would_go_far_beyond_comes_first():
    experts = reach([[-1.0, -0.9], [-1.0, -0.9]], [[1.0, 1.0], [1.0, 1.0]])
    wanted = reach([[-1.01, -1.01], [-9.0, -0.5]], [[1.0, 1.0], [1.0, 1.0]])
    rules = constraint(model(experts, wanted)).rules(0.7)
    assert [(rule.quantity, rule.against) for rule in rules] == [(1, 1), (0, 2)]


def test_of_two_rules_the_one_where_all_experts_turned_back_at_one_place_comes_first():
    experts = reach([[-1.0, 3.0], [-1.0, -0.9]], [[4.0, 4.0], [1.0, 1.0]])
    wanted = reach([[-2.0, -2.0], [-2.0, -2.0]], [[4.0, 4.0], [1.0, 1.0]])
    rules = constraint(model(experts, wanted)).rules(0.7)
    assert [(rule.quantity, rule.against) for rule in rules] == [(1, 2), (0, 2)]
