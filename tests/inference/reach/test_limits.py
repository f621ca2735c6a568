"""Reach where experts may err: what most of those who were tempted did not do is forbidden."""

import dataclasses
import itertools

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.inference.inputs import Inputs
from tacit.inference.reach.model import Extent, Extremes, ReachModel
from tacit.inference.reach.quantities import Quantities

BOX = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
DRAWS = np.random.default_rng(0)
# 60 experts turn back at about 0, a few of them much later; of 40 episodes half go to -3.
LOWEST = np.sort(np.r_[DRAWS.normal(0, 0.2, 56), [-4.0, -3.0, -2.0, -1.0]])[None]
WANTED = np.sort(np.r_[DRAWS.normal(-3, 0.1, 20), np.full(20, 0.5)])[None]


def model(voting="visits-fallible", quantities=None, lowest=LOWEST, wanted=WANTED):
    quantities = quantities or Quantities()
    experts, tempted = (
        Extent(jnp.asarray(ends, jnp.float32), jnp.full(ends.shape, 9.0))
        for ends in (lowest, wanted)
    )
    who = jnp.zeros(experts.lowest.shape, jnp.int32)
    inputs = Inputs.blank(len(lowest) - len(quantities.ratios), BOX)
    extremes = Extremes(who, who, who, who)
    return ReachModel(inputs, experts, extremes, tempted, "graded", voting, quantities)


def constraint(of, confidence=0.7):
    size = of.inputs.centre.shape[0]
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    return Constraint(of, confidence, Spaces(seen, BOX), True)


def test_those_who_stayed_away_speak_against_even_where_others_went():
    values = np.linspace(-5, 1, 61, dtype=np.float32)
    alpha, beta = model().belief(jnp.asarray(values)[:, None])
    ends, wanted = LOWEST[0].astype(np.float32), WANTED[0].astype(np.float32)

    def just_before(end):
        went = (ends < end).sum()
        return 1 + went, 1 + (60 - went) * (wanted < end).mean()

    def strength(pair):
        return (pair[0] - pair[1]) / np.sqrt(sum(pair))

    for value, found in zip(values, zip(alpha, beta, strict=True), strict=True):
        passed = [just_before(end) for end in ends if end > value]
        np.testing.assert_allclose(found, min([(61, 1), *passed], key=strength), rtol=1e-5)


def test_nothing_is_less_doubtful_for_being_further_off():
    values = np.linspace(-6, 1, 200, dtype=np.float32)[:, None]
    idle = np.zeros((200, 1), np.float32)
    for level in (0.3, 0.7, 0.95):
        feasible = constraint(model()).feasibility(values, idle, level)
        assert (np.diff(feasible) >= -1e-6).all()
        assert feasible[0] < 0.5 < feasible[-1]


def test_what_few_did_is_proof_for_the_infallible_only():
    values, idle = np.array([[-1.5], [0.5]], np.float32), np.zeros((2, 1), np.float32)
    proof = constraint(model("visits")).feasibility(values, idle, 0.7)
    majority = constraint(model()).feasibility(values, idle, 0.7)
    np.testing.assert_array_equal(proof, [1, 1])
    assert majority[0] < 0.01
    assert majority[1] == 1


def test_the_limit_is_where_most_of_the_tempted_stop():
    limits = []
    for confidence in (0.3, 0.5, 0.7, 0.9, 0.99):
        (rule,) = model().rules(confidence, ())
        assert (rule.quantity, rule.side) == (0, "below")
        went = int((LOWEST[0] <= rule.limit + 1e-6).sum())
        assert rule.experts == went
        # Just as far as the limit it is allowed, and one expert further it is not.
        for reached, allowed in ((went, True), (went - 1, False)):
            against = (60 - reached) * 0.5
            sure = stats.beta.sf(0.5, 1 + reached, 1 + against)
            assert (sure >= confidence) == allowed
        assert rule.against == pytest.approx((60 - (went - 1)) * 0.5)
        limits.append(rule.limit)
    for looser, tighter in itertools.pairwise(limits):
        assert looser <= tighter
    assert limits[0] < limits[-1]


def test_the_mirror_has_the_mirrored_limit():
    (rule,) = model().rules(0.9, ())
    experts = Extent(jnp.full((1, 60), -9.0), jnp.asarray(-LOWEST[:, ::-1], jnp.float32))
    tempted = Extent(jnp.full((1, 40), -9.0), jnp.asarray(-WANTED[:, ::-1], jnp.float32))
    turned = eqx.tree_at(lambda of: (of.experts, of.tempted), model(), (experts, tempted))
    (other,) = turned.rules(0.9, ())
    assert (other.side, other.limit) == ("above", pytest.approx(-rule.limit))


def test_where_policies_are_not_tempted_there_is_no_rule():
    idle = np.full((1, 40), 0.9)
    assert model(wanted=idle).rules(0.9, ()) == []


def test_ratios_are_judged_and_what_is_not_asked_about_is_not():
    quantities = Quantities.of(("0/1",), (2,))
    far = np.repeat(np.array([[-50.0], [1.0]]), 60, axis=1)
    lowest, wanted = np.r_[far, LOWEST], np.r_[far[:, :40] - 90, WANTED]
    mine = model(quantities=quantities, lowest=lowest, wanted=wanted)
    (rule,) = mine.rules(0.7, ())
    assert rule.quantity == 2
    assert str(rule).startswith("observation 0 / observation 1 is at least ")
    # The first number alone would be far out; only its ratio to the second counts.
    seen = np.array([[-60.0, 30.0], [-3.0, 2.0], [1.0, 2.0]], np.float32)
    idle = np.zeros((3, 1), np.float32)
    np.testing.assert_array_equal(constraint(mine).feasibility(seen, idle) >= 1, [0, 0, 1])
    assert mine.costs(jnp.asarray(seen), 0.7).shape == (3, 3)
    assert not np.asarray(mine.costs(jnp.asarray(seen), 0.7))[:, :2].any()


def test_a_saved_constraint_says_the_same(tmp_path):
    quantities = Quantities.of(("0/0",), (0,))
    both, wanted = np.repeat(LOWEST, 2, axis=0), np.repeat(WANTED, 2, axis=0)
    mine = constraint(model(quantities=quantities, lowest=both, wanted=wanted))
    theirs = Constraint.load(mine.save(tmp_path / "constraint.safetensors"))
    assert eqx.tree_equal(mine.model, theirs.model)
    assert theirs.model.quantities == quantities
    values, idle = np.linspace(-4, 2, 50, dtype=np.float32)[:, None], np.zeros((50, 1), np.float32)
    np.testing.assert_array_equal(mine.cost(values, idle), theirs.cost(values, idle))


def test_ratios_are_named_after_the_numbers_they_are_of():
    quantities = Quantities.of(("0/1",), (2,))
    far = np.repeat(np.array([[-50.0], [1.0]]), 60, axis=1)
    lowest, wanted = np.r_[far, LOWEST], np.r_[far[:, :40] - 90, WANTED]
    mine = constraint(model(quantities=quantities, lowest=lowest, wanted=wanted))
    named = dataclasses.replace(mine, names=("gap ahead", "speed"))
    (rule,) = named.rules(0.7)
    assert str(rule).startswith("gap ahead / speed is at least ")
