"""Weights that let old samples speak about a new constraint, and how far it has drifted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.inference.gradient_steps import drift, importance_weights

# A policy over five outcomes, under an old constraint and a new one.
CHANCES = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
OLD = np.log([0.9, 0.5, 0.7, 0.2, 0.6])
NEW = np.log([0.8, 0.6, 0.1, 0.3, 0.6])


def sampled(values):
    """20 samples in which every outcome has exactly its share."""
    return jnp.asarray(np.repeat(values, (20 * CHANCES).round().astype(int)))


def reweighted():
    """The distribution under the new constraint, by brute force."""
    chances = CHANCES * np.exp(NEW - OLD)
    return chances / chances.sum()


def test_weighted_means_are_those_of_the_new_distribution():
    weights = importance_weights(sampled(NEW), sampled(OLD))
    for values in np.random.default_rng(0).normal(size=(4, 5)):
        found = float((weights * sampled(values)).mean())
        assert found == pytest.approx((reweighted() * values).sum(), abs=1e-5)


def test_weights_have_a_mean_of_one():
    random = np.random.default_rng(0)
    for scale in (0.1, 1.0, 10.0, 300.0):
        new, old = (jnp.asarray(scale * random.normal(size=(8, 4)), jnp.float32) for _ in range(2))
        weights = importance_weights(new, old)
        assert weights.shape == (8, 4)
        assert (weights >= 0).all()
        assert float(weights.mean()) == pytest.approx(1, rel=1e-5)


def test_a_factor_common_to_all_samples_changes_nothing():
    plain, shifted = (importance_weights(sampled(NEW) + by, sampled(OLD)) for by in (0.0, 500.0))
    np.testing.assert_allclose(plain, shifted, rtol=1e-4)


def test_equal_models_have_equal_weights_and_no_drift():
    same = sampled(OLD)
    np.testing.assert_allclose(importance_weights(same, same), 1, rtol=1e-6)
    np.testing.assert_allclose(drift(same, same, 100.0), 0, atol=1e-4)


def test_drift_is_the_divergence_between_old_and_new_in_both_directions():
    forward, backward = drift(sampled(NEW), sampled(OLD), 1.0)
    after = reweighted()
    assert float(forward) == pytest.approx((CHANCES * np.log(CHANCES / after)).sum(), abs=1e-5)
    assert float(backward) == pytest.approx((after * np.log(after / CHANCES)).sum(), abs=1e-5)
    assert float(forward) != pytest.approx(float(backward), abs=1e-3)


def test_drift_adds_up_along_a_trajectory():
    one, many = (drift(sampled(NEW), sampled(OLD), length) for length in (1.0, 50.0))
    np.testing.assert_allclose(many, 50 * np.array(one), rtol=1e-4)


def test_a_sample_that_has_become_impossible_has_no_weight_and_a_finite_drift():
    new = jnp.array([0.0, -1e4, 0.0, 0.0])
    weights = importance_weights(new, jnp.zeros(4))
    np.testing.assert_allclose(weights, [4 / 3, 0, 4 / 3, 4 / 3], rtol=1e-5)
    assert np.isfinite(drift(new, jnp.zeros(4), 10.0)).all()


def test_no_gradient_flows_through_the_weights():
    slope = jax.grad(lambda new: (importance_weights(new, sampled(OLD)) * sampled(NEW)).sum())
    np.testing.assert_array_equal(slope(sampled(NEW)), 0)
