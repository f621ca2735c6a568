import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv, polygamma

from tacit.errors import ArgumentError
from tacit.inference.confidence.quantile import beta_quantile

PROBABILITIES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)
DTYPES = (np.float32, np.float64)
BLOCK = 4096
shapes = st.floats(1, 20001, allow_subnormal=False)
probabilities = st.floats(0.01, 0.99)


@pytest.fixture(autouse=True)
def both_precisions():
    with jax.enable_x64(True):
        yield


def grid(dtype, count=30):
    """All pairs of shapes at all probabilities, rounded to the dtype under test."""
    axis = np.geomspace(1, 20001, count)
    points = np.array(list(itertools.product(PROBABILITIES, axis, axis))).T
    return points.astype(dtype)


def truth(probability, alpha, beta):
    return betaincinv(*(np.asarray(shape, np.float64) for shape in (alpha, beta, probability)))


compiled = jax.jit(beta_quantile, static_argnames="method")


@partial(jax.jit, static_argnames="method")
def compiled_slopes(*points, method="exact"):
    value, pull = jax.vjp(partial(beta_quantile, method=method), *points)
    return jnp.stack([value, *pull(jnp.ones_like(value))])


def in_blocks(function, *points, method="exact"):
    """The function at all points, in blocks of one size so that it compiles once."""
    points = np.stack(np.broadcast_arrays(*points))
    count = points.shape[1]
    whole = np.pad(points, ((0, 0), (0, -count % BLOCK)), mode="edge")
    blocks = np.split(whole, whole.shape[1] // BLOCK, axis=1)
    found = [np.asarray(function(*block, method=method)) for block in blocks]
    return np.concatenate(found, axis=-1)[..., :count]


quantiles = partial(in_blocks, beta_quantile)
slopes = partial(in_blocks, compiled_slopes)
"""Value and derivatives in probability, alpha and beta, point by point."""


@cache
def precise_slopes(probability, alpha, beta):
    """Slopes in alpha and beta from mpmath: tanh-sinh quadrature in 20 digits.

    With E the expectation under Beta(alpha, beta), dI/dalpha = E[log x; x < q] - p E[log x].
    """
    below = betaincinv(alpha, beta, probability)
    above = betaincinv(beta, alpha, 1 - probability)
    width = np.sqrt(polygamma(1, alpha) + polygamma(1, beta))
    knots = np.array([0, 1, 3, 8, 20, 80]) * width
    with mpmath.workdps(20):
        below, above = mpmath.mpf(float(below)), mpmath.mpf(float(above))

        def integral(moment, end):
            def integrand(shift):
                softening = mpmath.log(above + below * mpmath.exp(shift))
                density = mpmath.exp(alpha * shift - (alpha + beta) * softening)
                return density * moment(shift, softening)

            return mpmath.quad(integrand, list(end * knots), maxdegree=4) * end

        def slope(moment):
            change = integral(moment, -1) * right - integral(moment, 1) * left
            return float(-below * above * change / (left + right))

        left, right = (integral(lambda *_: 1, end) for end in (-1, 1))
        return slope(lambda shift, softening: shift - softening), slope(lambda _, soft: -soft)


@pytest.mark.parametrize("dtype", DTYPES)
def test_agrees_with_scipy_for_all_pairs_up_to_20001(dtype):
    points = grid(dtype)
    value = quantiles(*points)
    error = np.abs(np.asarray(value, np.float64) - truth(*points))
    small = (points[1] <= 300) & (points[2] <= 300)
    assert value.dtype == dtype
    assert error[small].max() <= (5e-5 if dtype == np.float32 else 1e-9)
    assert error.max() <= (2e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_agree_with_mpmath(dtype):
    axis = (1.0, 1.0 + 2**-10, 1.75, 20.0, 300.0, 2500.0, 20001.0)
    every = np.array(list(itertools.product((0.01, 0.3, 0.5, 0.99), axis, axis)), np.float32)
    points = every[::7].T
    exact = np.array([precise_slopes(*map(float, point)) for point in points.T]).T
    ours = slopes(*points.astype(dtype))[2:]
    assert ours.dtype == dtype
    matters = np.abs(exact) > 1e-6
    assert matters.sum() > 25
    tolerance = 1e-2 if dtype == np.float32 else 1e-5
    np.testing.assert_allclose(ours[matters], exact[matters], rtol=tolerance)


def test_gradient_in_probability_is_one_over_the_density():
    points = grid(np.float64, 12)
    slope = slopes(*points)[1]
    step = 1e-6
    lower, upper = (truth(points[0] + sign * step, *points[1:]) for sign in (-1, 1))
    np.testing.assert_allclose(slope, (upper - lower) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_million_random_points_are_finite_with_finite_gradients(dtype):
    random = np.random.default_rng(7)
    count = 1_000_000 if dtype == np.float32 else 250_000
    alpha, beta = np.exp(random.uniform(0, np.log(20001), (2, count))).astype(dtype)
    probability = random.uniform(1e-6, 1 - 1e-6, count).astype(dtype)
    found = slopes(probability, alpha, beta)
    assert ((found[0] >= 0) & (found[0] <= 1)).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_are_finite(dtype):
    ends = (1e-7, 1e-5, 0.01, 0.5, 0.99, 1 - 1e-5, 1 - 1e-6)
    sizes = (1, 1 + 1e-6, 2, 20001, 1e6)
    points = np.array(list(itertools.product(ends, sizes, sizes))).T.astype(dtype)
    found = slopes(*points)
    np.testing.assert_allclose(found[0], truth(*points), atol=2e-5 if dtype == np.float32 else 1e-7)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(("smallest", "tolerance"), [(0.5, 1e-8), (0.3, 1e-7), (0.1, 1e-5)])
def test_shapes_below_one_lose_precision_gradually(smallest, tolerance):
    axis = np.geomspace(smallest, 100, 12)
    points = np.array(list(itertools.product(PROBABILITIES, axis, axis))).T
    np.testing.assert_allclose(quantiles(*points), truth(*points), atol=tolerance)


@pytest.mark.parametrize("method", ["exact", "paper"])
def test_jit_equals_eager(method):
    points = grid(np.float64, 7)
    jitted = in_blocks(compiled, *points, method=method)
    np.testing.assert_allclose(jitted, quantiles(*points, method=method), rtol=1e-12)


def test_vmap_equals_a_batch():
    points = grid(np.float64, 7)
    # Alone, a point may stop stepping earlier than in a batch: equal to the promise, not the bit.
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(beta_quantile, 1)))(*points)
    np.testing.assert_allclose(value, quantiles(*points), atol=1e-10)
    np.testing.assert_allclose(slope, slopes(*points)[2], rtol=1e-5, atol=1e-9)


def test_forward_and_reverse_mode_agree_inside_a_scan():
    def walk(alpha):
        def step(total, beta):
            return total + beta_quantile(0.3, alpha, beta), None

        return jax.lax.scan(step, jnp.zeros_like(alpha), jnp.array([1.0, 5.0, 40.0]))[0]

    forward, reverse = jax.jit(lambda x: (jax.jacfwd(walk)(x), jax.grad(walk)(x)))(3.0)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)


def test_arguments_broadcast_and_keep_their_precision():
    alpha, beta = jnp.arange(1, 4, dtype=jnp.float32)[:, None], jnp.ones(2, jnp.float32)
    value = beta_quantile(0.5, alpha, beta)
    assert value.shape == (3, 2)
    assert value.dtype == jnp.float32
    assert jax.eval_shape(beta_quantile, 0.5, alpha.astype(jnp.bfloat16), 2).dtype == jnp.bfloat16
    assert jax.eval_shape(beta_quantile, 0.5, 2, 3).dtype == jnp.float64
    with jax.enable_x64(False):
        found = jax.eval_shape(lambda: beta_quantile(np.float64(0.5), np.ones(2), 3))
    assert found.dtype == jnp.float32


@settings(max_examples=60, deadline=None)
@given(probability=probabilities, alpha=shapes, beta=shapes)
def test_mirror_symmetry_and_round_trip(probability, alpha, beta):
    value = float(beta_quantile(probability, alpha, beta))
    assert value == pytest.approx(1 - float(beta_quantile(1 - probability, beta, alpha)), abs=1e-9)
    # The cdf turns an error in x into one in p by the density, at most 113 at these shapes.
    assert betainc(alpha, beta, value) == pytest.approx(probability, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(probability=probabilities, alpha=shapes, beta=shapes, factor=st.floats(1.001, 3))
def test_grows_with_probability_and_alpha_and_falls_with_beta(probability, alpha, beta, factor):
    here = float(beta_quantile(probability, alpha, beta))
    further = 1 - (1 - probability) / factor
    rounding = 1e-9
    assert float(beta_quantile(further, alpha, beta)) >= here - rounding
    assert float(beta_quantile(probability, alpha * factor, beta)) >= here - rounding
    assert float(beta_quantile(probability, alpha, beta * factor)) <= here + rounding


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 2.0, 2.0), "probability"),
        ((1.0, 2.0, 2.0), "probability"),
        ((np.array([0.5, 1.2]), 2.0, 2.0), "probability"),
        ((0.5, 0.0, 2.0), "alpha"),
        ((0.5, np.inf, 2.0), "alpha"),
        ((0.5, 2.0, -1.0), "beta"),
        ((0.5, 2.0, np.nan), "beta"),
    ],
)
def test_out_of_range_raises_eagerly(arguments, name):
    with pytest.raises(ArgumentError, match=f"{name} must be"):
        beta_quantile(*arguments)
    with pytest.raises(ArgumentError, match=f"{name} must be"):
        beta_quantile(*arguments, method="paper")


@pytest.mark.parametrize("method", ["exact", "paper"])
def test_out_of_range_is_nan_under_jit_and_only_there(method):
    probability = np.array([0.5, 0.0, 1.0, 1.2, 0.5, 0.5, 0.5, 0.5])
    alpha = np.array([2.0, 2.0, 2.0, 2.0, 0.0, np.inf, 2.0, 2.0])
    beta = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, -1.0, np.nan])
    value = in_blocks(compiled, probability, alpha, beta, method=method)
    np.testing.assert_array_equal(np.isnan(value), [False] + [True] * 7)


def test_an_unknown_method_is_named():
    with pytest.raises(ArgumentError, match="'guess'"):
        beta_quantile(0.5, 2.0, 2.0, method="guess")  # pyright: ignore[reportArgumentType]


def test_paper_method_is_the_lookup_in_a_table_of_steps_of_a_thousandth():
    random = np.random.default_rng(3)
    alpha, beta = np.exp(random.uniform(0, np.log(20001), (2, 200)))
    entries = np.linspace(0, 1, 1001)
    table = betainc(alpha[:, None], beta[:, None], entries)
    for probability in PROBABILITIES:
        looked_up = entries[np.argmax(table >= probability, axis=1)]
        value = quantiles(probability, alpha, beta, method="paper")
        np.testing.assert_allclose(value, looked_up, atol=1e-12)
        excess = value - truth(probability, alpha, beta)
        assert excess.min() >= -1e-9
        assert excess.max() <= 0.001


def test_paper_gradient_is_the_forward_difference():
    probability, alpha, beta = grid(np.float64, 8)
    here = quantiles(probability, alpha, beta, method="paper")
    step = 0.002
    by_alpha = (quantiles(probability, alpha + step, beta, method="paper") - here) / step
    by_beta = (quantiles(probability, alpha, beta + step, method="paper") - here) / step
    ours = slopes(probability, alpha, beta, method="paper")[2:]
    np.testing.assert_allclose(ours[0], by_alpha, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours[1], by_beta, rtol=1e-9, atol=1e-9)
    assert np.mean(np.asarray(ours[0]) == 0) > 0.5
