import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaincinv

from tacit.errors import ArgumentError
from tacit.inference.confidence.quantile import QuantileTable, beta_quantile

PROBABILITIES = (0.01, 0.9)
AXIS = np.geomspace(1, 20001, 40)
ALPHA, BETA = np.array(list(itertools.product(AXIS, AXIS))).T


@jax.jit
def pull_back(table, alpha, beta):
    """Value and both slopes, point by point."""
    value, pull = jax.vjp(table, alpha, beta)
    return value, *pull(jnp.ones_like(value))


@jax.jit
def exact_slopes(probability, alpha, beta):
    value, pull = jax.vjp(lambda *shapes: beta_quantile(probability, *shapes), alpha, beta)
    return value, *pull(jnp.ones_like(value))


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients_are_close_up_to_20001(probability, dtype):
    table = QuantileTable.build(probability)
    with jax.enable_x64(True):
        exact = exact_slopes(probability, ALPHA, BETA)
    with jax.enable_x64(dtype == np.float64):
        ours = pull_back(table, ALPHA.astype(dtype), BETA.astype(dtype))
    assert ours[0].dtype == dtype
    assert np.abs(np.asarray(ours[0]) - betaincinv(ALPHA, BETA, probability)).max() <= 2e-5
    for approximate, slope in zip(ours[1:], exact[1:], strict=True):
        matters = np.abs(slope) > 1e-6
        np.testing.assert_allclose(approximate[matters], slope[matters], rtol=2e-3)


def test_covers_any_number_of_experts():
    table = QuantileTable.build(0.3)
    many = np.array([1e5, 1e6, 1e9])
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            table(many, 2 * many), betaincinv(many, 2 * many, 0.3), atol=1e-5
        )
        np.testing.assert_allclose(table(many, 1.0), betaincinv(many, 1.0, 0.3), atol=2e-5)


def test_gradient_is_whole_at_one_and_zero_below():
    table = QuantileTable.build(0.3)
    slope = jax.jit(jax.grad(table))
    assert float(slope(1.0, 4.0)) == pytest.approx(float(slope(1.0001, 4.0)), rel=1e-2)
    assert float(slope(0.5, 4.0)) == 0
    assert float(table(0.5, 4.0)) == float(table(1.0, 4.0))


def test_jit_vmap_and_broadcasting_agree():
    table = QuantileTable.build(0.7)
    alpha, beta = jnp.array([1.0, 3.0, 50.0]), jnp.array([2.0, 2.5, 7.0])
    expected = table(alpha, beta)
    np.testing.assert_allclose(
        jax.jit(lambda alpha, beta: table(alpha, beta))(alpha, beta), expected, rtol=1e-6
    )
    np.testing.assert_allclose(jax.jit(jax.vmap(table))(alpha, beta), expected, rtol=1e-6)
    assert table(alpha[:, None], beta).shape == (3, 3)
    assert table(3, 4).dtype == jnp.float32


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.5, float("nan")])
def test_a_probability_out_of_range_is_an_error(probability):
    with pytest.raises(ArgumentError, match="probability must be"):
        QuantileTable.build(probability)
