"""The experts' density: a proper one, close to the truth, and telling far steps from near ones."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacit.inference.baselines import icl
from tacit.inference.baselines.icl import Flow, fit_flow

NUMBER = 2000
COVARIANCE = np.array([[1.0, 0.8], [0.8, 2.0]])
MEAN = np.array([3.0, -1.0])
log_density = eqx.filter_jit(Flow.log_density)
latents = eqx.filter_jit(Flow.latents)
slopes_of = eqx.filter_jit(lambda flow, step: jax.jacobian(lambda x: flow.latents(x)[0])(step))
threshold_of = eqx.filter_jit(icl.threshold_of)
unlikeness = eqx.filter_jit(icl.unlikeness)


def gaussian(seed):
    random = np.random.default_rng(seed)
    return jnp.asarray(random.multivariate_normal(MEAN, COVARIANCE, NUMBER), jnp.float32)


def ring(seed):
    """Steps around a circle of radius 2, which no single Gaussian fits."""
    random = np.random.default_rng(seed)
    angle, radius = random.uniform(0, 2 * np.pi, NUMBER), random.normal(2, 0.15, NUMBER)
    return jnp.asarray(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), jnp.float32)


def mixed(seed):
    """Two moving features, three that never move, and a choice of four of which one never is."""
    random = np.random.default_rng(seed)
    moving = random.normal(size=(NUMBER, 2)) * np.array([1.0, 1e-3])
    still = np.broadcast_to([0.0, 1.0, -300.0], (NUMBER, 3))
    chosen = np.eye(4)[random.integers(0, 3, NUMBER)]
    return jnp.asarray(np.concatenate([moving, still, chosen], 1), jnp.float32)


@cache
def fitted(sample, seed=0):
    layers = 2 if sample is mixed else 4
    return fit_flow(sample(0), key=jax.random.key(seed), layers=layers)


def best_gaussian(sample):
    seen = np.asarray(sample(0), np.float64)
    return stats.multivariate_normal(seen.mean(axis=0), np.cov(seen.T))


@pytest.mark.parametrize("sample", [gaussian, ring])
def test_the_density_integrates_to_one(sample):
    axis = np.linspace(-12, 12, 601)
    grid = jnp.asarray(np.stack(np.meshgrid(axis, axis), axis=-1), jnp.float32)
    heights = np.exp(np.asarray(log_density(fitted(sample), grid), np.float64))
    assert heights.shape == (601, 601)
    assert heights.sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1, abs=0.01)


def test_a_gaussian_is_recovered():
    fresh = gaussian(1)
    truth = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(fresh)
    divergence = np.mean(truth - np.asarray(log_density(fitted(gaussian), fresh)))
    assert abs(divergence) < 0.02


def test_a_ring_is_fitted_better_than_by_a_single_gaussian():
    fresh = ring(1)
    gain = np.asarray(log_density(fitted(ring), fresh)) - best_gaussian(ring).logpdf(fresh)
    assert gain.mean() > 0.7
    centre = log_density(fitted(ring), jnp.zeros(2))
    assert centre < best_gaussian(ring).logpdf(np.zeros(2)) - 2


@pytest.mark.parametrize("sample", [ring, mixed])
def test_the_stretch_is_that_of_the_jacobian(sample):
    flow = fitted(sample)
    for step in sample(1)[:4]:
        slopes = np.asarray(slopes_of(flow, step), np.float64)
        _, log_determinant = np.linalg.slogdet(slopes)
        assert latents(flow, step)[1] == pytest.approx(log_determinant, abs=1e-3)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_flow_starts_as_the_standard_normal(size):
    steps = np.random.default_rng(0).normal(size=(3, 4, size)).astype(np.float32)
    flow = Flow.start(size, layers=2, key=jax.random.key(0))
    expected = stats.norm.logpdf(steps).sum(axis=-1)
    np.testing.assert_allclose(log_density(flow, jnp.asarray(steps)), expected, rtol=1e-5)


def test_a_single_feature_has_the_gaussian_of_its_mean_and_spread():
    seen = 5 + 2 * jax.random.normal(jax.random.key(1), (NUMBER, 1))
    flow = fit_flow(seen, key=jax.random.key(0), steps=50)
    expected = stats.norm(seen.mean(), seen.std()).logpdf(seen[:, 0])
    np.testing.assert_allclose(log_density(flow, seen), expected, atol=1e-3)


def test_one_step_alone_can_be_fitted():
    flow = fit_flow(jnp.ones((1, 1)), key=jax.random.key(0), steps=50)
    assert log_density(flow, jnp.ones(1)) == pytest.approx(stats.norm.logpdf(0, scale=0.02))


def test_constant_and_chosen_features_do_no_harm():
    flow, fresh = fitted(mixed), mixed(1)
    leaves = jax.tree.leaves(flow)
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert np.isfinite(log_density(flow, fresh)).all()
    threshold = threshold_of(flow, mixed(0))
    assert unlikeness(flow, fresh, threshold) < 0.35
    assert unlikeness(flow, fresh.at[:, 2].add(0.5), threshold) > 0.99
    never_chosen = fresh.at[:, 5:].set(jnp.array([0.0, 0.0, 0.0, 1.0]))
    assert unlikeness(flow, never_chosen, threshold) > 0.99


def test_the_key_decides():
    again = fit_flow(ring(0), key=jax.random.key(0))
    other = fitted(ring, seed=1)
    first, again, other = (log_density(flow, ring(1)) for flow in (fitted(ring), again, other))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("sample", [gaussian, ring])
def test_steps_of_experts_are_like_them_and_far_ones_are_not(sample):
    flow = fitted(sample)
    threshold = threshold_of(flow, sample(0))
    near, far = unlikeness(flow, sample(1), threshold), unlikeness(flow, sample(1) + 10, threshold)
    assert near.shape == ()
    assert 0.02 < near < 0.25
    assert far == 1


def test_the_threshold_and_the_share_are_those_of_icl():
    flow, seen = fitted(gaussian), gaussian(1)
    surprise = -np.asarray(log_density(flow, seen))
    threshold = threshold_of(flow, seen)
    assert threshold == pytest.approx(surprise.mean() + surprise.std(), rel=1e-5)
    assert unlikeness(flow, seen, threshold) == pytest.approx(np.mean(surprise > threshold))
