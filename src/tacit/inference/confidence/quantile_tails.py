r"""The two tails of a Beta distribution and their derivatives, from one quadrature.

In the logit :math:`y = \log(x / (1 - x))` the Beta density is proportional to

.. math:: g(y) = \exp\bigl(\alpha y - (\alpha + \beta)\log(1 + e^y)\bigr),

which is log-concave and analytic for every positive alpha and beta, without the end-point
singularities it has in :math:`x`. Seen from a point :math:`y`, at distance :math:`s`,

.. math:: \log\frac{g(y+s)}{g(y)} = \alpha s - (\alpha+\beta)\,\ell(s),
          \qquad \ell(s) = \log\bigl(1 + x\,(e^s - 1)\bigr),

so that :math:`L = \int_{-\infty}^{0}` and :math:`R = \int_0^{\infty}` of its exponential give the
cdf as :math:`L / (L + R)`. No log-gamma function appears, so nothing cancels at alpha = 20,000 in
float32; and the derivatives of the cdf in alpha and beta are two more sums over the same nodes.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LARGEST_EXPONENT = 79.0
"""What we hand to exp at most: just inside float32, and the same in float64."""


class Rule(NamedTuple):
    """Nodes and weights on [0, 1], and the exponent at which a tail is cut off."""

    nodes: np.ndarray
    weights: np.ndarray
    cutoff: float


class Tails(NamedTuple):
    """Mass left and right of a point, relative to the density there, with first moments.

    A moment is the integral of log x (`left_alpha`, `right_alpha`) or log(1 - x) (`left_beta`,
    `right_beta`), each minus its value at the point: one sign per side, so nothing cancels.
    """

    left: Array
    right: Array
    left_alpha: Array
    right_alpha: Array
    left_beta: Array
    right_beta: Array


@cache
def graded_rule(order: int, cutoff: float, grading: float = 2.0) -> Rule:
    """Gauss-Legendre nodes on [0, 1], drawn towards 0 by t = sinh(grading u) / sinh(grading).

    The grading serves both shapes a tail can have: a bell of large alpha and beta, which fills the
    interval, and the long exponential tail of alpha = 1, whose mass sits near 0.
    """
    points, weights = np.polynomial.legendre.leggauss(order)
    points, weights = (points + 1) / 2, weights / 2
    nodes = np.sinh(grading * points) / np.sinh(grading)
    weights = weights * grading * np.cosh(grading * points) / np.sinh(grading)
    return Rule(nodes, weights, cutoff)


def tails(alpha: Array, beta: Array, logit: Array, rule: Rule) -> Tails:
    """Integrate both tails of Beta(alpha, beta) seen from `logit`, which should not exceed 0.

    Points right of the middle are mirrored by the caller: x <= 1/2 keeps 1 - x exact in float32.
    """
    fraction = 1 / (1 + jnp.exp(-logit))
    extents = tuple(reach(alpha, beta, logit, fraction, rule.cutoff, side) for side in (-1, 1))

    def moments(shift: Array, weight: Array) -> tuple[Array, Array, Array]:
        growth = log_growth(fraction, shift)
        exponent = alpha * shift - (alpha + beta) * growth
        density = weight * jnp.exp(jnp.minimum(exponent, LARGEST_EXPONENT))
        return density, density * (shift - growth), -density * growth

    # A loop over nodes, not one array of them: XLA vectorises its body on a CPU.
    def add(sums: Tails, node: tuple[Array, Array]) -> tuple[Tails, None]:
        place, weight = node
        left = moments(-extents[0] * place, weight)
        right = moments(extents[1] * place, weight)
        terms = (term for pair in zip(left, right, strict=True) for term in pair)
        return Tails(*(sum_ + term for sum_, term in zip(sums, terms, strict=True))), None

    nodes = (jnp.asarray(rule.nodes, logit.dtype), jnp.asarray(rule.weights, logit.dtype))
    zeros = Tails(*(jnp.zeros_like(logit) for _ in Tails._fields))
    sums, _ = jax.lax.scan(add, zeros, nodes)
    return Tails(*(extent * sum_ for extent, sum_ in zip(3 * extents, sums, strict=True)))


def log_growth(fraction: Array, shift: Array) -> Array:
    """Return log(1 + x (e^s - 1)) without overflow, and to relative precision in float32.

    In float64 the absolute precision of a plain logarithm is enough, and faster.
    """
    within = jnp.minimum(shift, LARGEST_EXPONENT)
    if shift.dtype == jnp.float32:
        growth = jnp.log1p(fraction * jnp.expm1(within))
    else:
        growth = double_log(1 - fraction + fraction * jnp.exp(within))
    return growth + jnp.maximum(shift - LARGEST_EXPONENT, 0)


def double_log(value: Array) -> Array:
    """Take a float64 logarithm: the float32 one and a second-order Newton step.

    XLA vectorises exp in float64 on a CPU, but not log, which is three times slower.
    """
    guess = jnp.log(value.astype(jnp.float32)).astype(value.dtype)
    rest = value * jnp.exp(-guess) - 1
    return guess + rest * (1 - rest / 2)


def reach(
    alpha: Array, beta: Array, logit: Array, fraction: Array, cutoff: float, direction: int
) -> Array:
    """Find the distance at which the density has fallen by exp(-cutoff).

    Newton's method on a concave exponent: from the second step on it approaches the distance from
    outside, so a tail is cut too late rather than too early.
    """
    total = alpha + beta
    # Beyond this line the exponent is certainly below the cutoff: it is its asymptote.
    rate = alpha if direction < 0 else beta
    bound = (cutoff + total * jnp.logaddexp(0, -direction * logit)) / rate
    slope = direction * (alpha - total * fraction)
    curvature = total * fraction * (1 - fraction)
    root = jnp.sqrt(slope * slope + 2 * cutoff * curvature)
    distance = jnp.where(slope > 0, (slope + root) / curvature, 2 * cutoff / (root - slope))
    distance = jnp.minimum(distance, bound)
    tiny = jnp.finfo(logit.dtype).tiny

    def improve(_, distance: Array) -> Array:
        shift = direction * distance
        growth = log_growth(fraction, shift)
        excess = alpha * shift - total * growth + cutoff
        slope = direction * (alpha - total * fraction * jnp.exp(shift - growth))
        return jnp.minimum(distance - excess / jnp.minimum(slope, -tiny), bound)

    return jax.lax.fori_loop(0, 3, improve, distance)
