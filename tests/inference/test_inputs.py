"""Features of a step: the same whatever the units, and of one size whatever the space."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.inference.inputs import Inputs, Steps

BOX = gymnasium.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))
FIVE = gymnasium.spaces.Discrete(5)
RANDOM = np.random.default_rng(0)
EXPERTS = RANDOM.normal([0, 5, -3], [1, 2, 300], (500, 3))
UNTRAINED = RANDOM.normal([0, 4, 0], [3, 1, 2], (400, 3))
ACTIONS = RANDOM.uniform(BOX.low, BOX.high, (500, 2))


@pytest.fixture(scope="module")
def inputs():
    return Inputs.fit(BOX, EXPERTS, UNTRAINED)


def test_features_are_those_of_the_formula(inputs):
    scale = np.minimum(EXPERTS.std(axis=0), UNTRAINED.std(axis=0))
    seen = np.arcsinh((EXPERTS - UNTRAINED.mean(axis=0)) / scale)
    done = (ACTIONS - [0, 5]) / [2, 5]
    wanted = np.concatenate([seen, done], axis=1)
    np.testing.assert_allclose(inputs(EXPERTS, ACTIONS), wanted, atol=1e-4)
    assert inputs.size == 5


def test_other_units_and_origins_give_the_same_features(inputs):
    factor, shift = np.array([1000.0, 0.01, 1.0]), np.array([5.0, -0.2, 30.0])
    moved = Inputs.fit(BOX, EXPERTS * factor + shift, UNTRAINED * factor + shift)
    np.testing.assert_allclose(
        moved(EXPERTS * factor + shift, ACTIONS), inputs(EXPERTS, ACTIONS), atol=2e-3
    )


def test_the_order_of_the_rows_does_not_matter(inputs):
    again = Inputs.fit(BOX, RANDOM.permutation(EXPERTS), RANDOM.permutation(UNTRAINED))
    for one, other in zip(jax.tree.leaves(inputs), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_actions_fill_the_range_from_minus_one_to_one(inputs):
    corners = np.stack([BOX.low, BOX.high])
    features = inputs(np.zeros((2, 3)), corners)
    np.testing.assert_allclose(features[:, 3:], [[-1, -1], [1, 1]], atol=1e-6)


def test_what_never_moves_has_a_scale_of_one_and_what_moves_for_one_of_both_has_its_scale():
    still = np.zeros((50, 3))
    moving = np.stack([np.zeros(50), np.linspace(-1, 1, 50), np.linspace(-9, 9, 50)], axis=1)
    inputs = Inputs.fit(BOX, still, moving)
    np.testing.assert_allclose(inputs.scale, [1, moving[:, 1].std(), moving[:, 2].std()], rtol=1e-5)
    assert np.isfinite(inputs(still, np.zeros((50, 2)))).all()


def test_a_feature_far_away_grows_slowly_and_stays_finite(inputs):
    far = np.array([[1e3, 0, 0], [1e6, 0, 0], [1e30, 0, 0]], np.float32)
    features = np.asarray(inputs(far, np.zeros((3, 2))))[:, 0]
    assert np.isfinite(features).all()
    assert features[1] - features[0] == pytest.approx(np.log(1000), rel=1e-2)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (2, 3, 4), (0,)])
def test_any_leading_axes_will_do(inputs, shape):
    seen, done = RANDOM.normal(size=(*shape, 3)), RANDOM.uniform(0, 1, (*shape, 2))
    features = np.asarray(inputs(seen, done))
    assert features.shape == (*shape, 5)
    flat = np.asarray(inputs(seen.reshape(-1, 3), done.reshape(-1, 2)))
    np.testing.assert_allclose(features.reshape(-1, 5), flat, rtol=1e-6)
    discrete = Inputs.blank(3, FIVE)
    assert discrete(seen, np.zeros(shape, np.int32)).shape == (*shape, 8)


def test_a_discrete_action_is_a_one_among_zeros():
    discrete = Inputs.blank(3, FIVE)
    assert discrete.size == 8
    features = discrete(np.zeros((5, 3)), np.arange(5))
    np.testing.assert_array_equal(features[:, 3:], np.eye(5))


def test_an_unbounded_action_is_taken_as_it_is():
    mixed = gymnasium.spaces.Box(
        np.array([-np.inf, 0.0], np.float32), np.array([np.inf, 4.0], np.float32)
    )
    features = Inputs.blank(1, mixed)(np.zeros((1, 1)), np.array([[7.0, 3.0]]))
    np.testing.assert_allclose(features, [[0, 7, 0.5]])


def test_nothing_here_is_trained(inputs):
    slopes = jax.grad(lambda fitted: fitted(jnp.ones((4, 3)), jnp.ones((4, 2))).sum())(inputs)
    assert all((np.asarray(slope) == 0).all() for slope in jax.tree.leaves(slopes))


def test_steps_on_the_host_are_not_copied_when_they_have_the_right_type():
    seen, done = np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)
    steps = Steps.on_host(seen, done, np.ones(4, bool))
    assert np.shares_memory(steps.observations, seen)
    assert np.shares_memory(steps.actions, done)
    steps = Steps.on_host(seen.astype(np.float64), np.zeros(4, np.int64), np.ones(4, bool))
    assert (steps.observations.dtype, steps.actions.dtype) == (np.float32, np.int32)


def test_a_constant_feature_has_no_spread_however_many_rows_there_are():
    experts = np.tile(np.float32([7.1, 0.0]), (10_000, 1))
    untrained = np.random.default_rng(0).normal(0, 1, (8192, 2)).astype(np.float32)
    inputs = Inputs.fit(gymnasium.spaces.Box(-1, 1, (1,)), experts, untrained)
    np.testing.assert_allclose(inputs.scale, 1, rtol=0.05)


def test_an_action_that_cannot_be_chosen_does_no_harm():
    space = gymnasium.spaces.Box(np.float32([-1, 2]), np.float32([1, 2]))
    inputs = Inputs.blank(1, space)
    features = inputs(np.zeros((3, 1), np.float32), np.tile(np.float32([0.5, 2.0]), (3, 1)))
    assert np.isfinite(features).all()
