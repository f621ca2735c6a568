r"""Solve I_x(alpha, beta) = p for x: a Cornish-Fisher start, Halley steps, implicit gradients.

The unknown is the logit :math:`y` of the quantile. With the tails :math:`L, R` seen from
:math:`y` (below) and :math:`Z = L + R` the equation reads

.. math:: h(y) = \log L - \log R - \log\frac{p}{1 - p} = 0,

nearly straight in the bulk and in both tails. In units of the density at :math:`y` one has
:math:`h' = 1/L + 1/R` and :math:`h''/h' = c + 1/R - 1/L` with
:math:`c = \alpha - (\alpha+\beta)x`, so Halley's step costs nothing beyond the tails. By the
implicit function theorem

.. math:: \frac{\partial y}{\partial p} = Z, \qquad
          \frac{\partial y}{\partial\alpha} = \frac{L\,R_\alpha - R\,L_\alpha}{Z},

with :math:`L_\alpha, R_\alpha` the moments of log x about the point, and the same for beta.

The two tails of a Beta distribution and their derivatives, from one quadrature.

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
from jax.scipy.special import ndtri

LARGEST_EXPONENT = 79.0
"""What we hand to exp at most: just inside float32, and the same in float64."""


class Quadrature(NamedTuple):
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
def graded_rule(order: int, cutoff: float, grading: float = 2.0) -> Quadrature:
    """Gauss-Legendre nodes on [0, 1], drawn towards 0 by t = sinh(grading u) / sinh(grading).

    The grading serves both shapes a tail can have: a bell of large alpha and beta, which fills the
    interval, and the long exponential tail of alpha = 1, whose mass sits near 0.
    """
    points, weights = np.polynomial.legendre.leggauss(order)
    points, weights = (points + 1) / 2, weights / 2
    nodes = np.sinh(grading * points) / np.sinh(grading)
    weights = weights * grading * np.cosh(grading * points) / np.sinh(grading)
    return Quadrature(nodes, weights, cutoff)


def tails(alpha: Array, beta: Array, logit: Array, rule: Quadrature) -> Tails:
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


COARSE = graded_rule(10, 12.0)
FINE = {"float32": graded_rule(18, 15.0), "float64": graded_rule(32, 22.0)}
COARSE_STEPS = 30
LARGEST_LOGIT = 55.0
"""Beyond it, at x = 1e-24, a quantile is no longer told from 0."""


class Solution(NamedTuple):
    """The quantile and its derivatives in probability, alpha and beta."""

    value: Array
    by_probability: Array
    by_alpha: Array
    by_beta: Array


@jax.jit
def solve(probability: Array, alpha: Array, beta: Array) -> Solution:
    """Solve for arrays of one shape and one dtype, float32 or float64; NaN where undefined."""
    valid = (probability > 0) & (probability < 1) & (alpha > 0) & (beta > 0)
    valid &= jnp.isfinite(alpha) & jnp.isfinite(beta)
    probability = jnp.where(valid, probability, 0.5)
    alpha, beta = jnp.where(valid, alpha, 1), jnp.where(valid, beta, 1)

    start, width = cornish_fisher(probability, alpha, beta)
    # Mirror what lies right of the middle: q(p; a, b) = 1 - q(1 - p; b, a).
    mirrored = start > 0
    target = jnp.log(probability) - jnp.log1p(-probability)
    logit = jnp.where(mirrored, -start, start)
    target = jnp.where(mirrored, -target, target)
    first, second = jnp.where(mirrored, beta, alpha), jnp.where(mirrored, alpha, beta)

    logit = approach(first, second, target, logit, width)
    logit, gap, slopes = finish(first, second, target, logit, width)
    # Shapes far below 1, or p below 1e-30, can defeat the quadrature: say so rather than guess.
    tolerance = jnp.where((alpha >= 1) & (beta >= 1), 20, 0.5)
    valid &= (jnp.abs(gap) < tolerance) | (logit <= -LARGEST_LOGIT)

    below = 1 / (1 + jnp.exp(-logit))
    above = 1 / (1 + jnp.exp(logit))
    scale = below * above
    sign = jnp.where(mirrored, -1, 1).astype(logit.dtype)
    by_probability, by_first, by_second = (scale * slope for slope in slopes)
    largest = jnp.finfo(logit.dtype).max
    solution = Solution(
        value=jnp.where(mirrored, above, below),
        by_probability=jnp.minimum(by_probability, largest),
        by_alpha=sign * jnp.where(mirrored, by_second, by_first),
        by_beta=sign * jnp.where(mirrored, by_first, by_second),
    )
    return Solution(*(jnp.where(valid, leaf, jnp.nan) for leaf in solution))


def approach(alpha: Array, beta: Array, target: Array, start: Array, width: Array) -> Array:
    """Take Halley steps on a coarse rule until the last one closed a gap in h of at most 0.3.

    One step is the rule for p in [0.01, 0.99]; more are taken far out in a tail.
    """

    def unsettled(state):
        count, _, gap = state
        return (count < COARSE_STEPS) & jnp.any(jnp.abs(gap) > 0.3)

    def improve(state):
        count, logit, _ = state
        seen = tails(alpha, beta, logit, COARSE)
        gap, step = halley_step(alpha, beta, target, logit, width, seen)
        return count + 1, confine(logit + step), gap

    start = confine(start)
    _, logit, _ = jax.lax.while_loop(unsettled, improve, (0, start, jnp.full_like(start, jnp.inf)))
    return logit


def finish(
    alpha: Array, beta: Array, target: Array, logit: Array, width: Array
) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Take one step on the fine rule; return the logit, the gap before, the slopes of the logit.

    The tails are seen from the point before the step, so the slopes are carried over it: the
    density exactly, and F = dy/dalpha to first order, by dF/dy = (L_alpha + R_alpha) / Z - c F.
    """
    seen = tails(alpha, beta, logit, FINE[str(logit.dtype)])
    gap, step = halley_step(alpha, beta, target, logit, width, seen)
    total = seen.left + seen.right
    fraction = 1 / (1 + jnp.exp(-logit))
    steepness = alpha - (alpha + beta) * fraction
    log_density = alpha * step - (alpha + beta) * log_growth(fraction, step)

    def slope(left: Array, right: Array) -> Array:
        here = (seen.left / total) * right - (seen.right / total) * left
        return here + step * ((left + right) / total - steepness * here)

    by_alpha = slope(seen.left_alpha, seen.right_alpha)
    by_beta = slope(seen.left_beta, seen.right_beta)
    return confine(logit + step), gap, (total * jnp.exp(-log_density), by_alpha, by_beta)


def halley_step(
    alpha: Array, beta: Array, target: Array, logit: Array, width: Array, seen: Tails
) -> tuple[Array, Array]:
    """Return the gap h = log(L / R) - target and Halley's step, at most five widths long."""
    steepness = alpha - (alpha + beta) / (1 + jnp.exp(-logit))
    left, right = 1 / seen.left, 1 / seen.right
    gap = jnp.log(seen.left) - jnp.log(seen.right) - target
    newton = gap / (left + right)
    bend = 1 - 0.5 * newton * (steepness + right - left)
    return gap, jnp.clip(-newton / jnp.maximum(bend, 0.5), -5 * width, 5 * width)


def confine(logit: Array) -> Array:
    """Keep the logit where exponentials of it and of its tails are representable."""
    return jnp.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT)


def cornish_fisher(probability: Array, alpha: Array, beta: Array) -> tuple[Array, Array]:
    """Approximate the logit of the quantile from four cumulants; also return its deviation.

    Within 0.11 standard deviations for alpha, beta >= 1 and p from 0.01 to 0.99.
    """
    of_alpha, of_beta = log_gamma_cumulants(alpha), log_gamma_cumulants(beta)
    mean, variance, third, fourth = (
        left + parity * right
        for left, right, parity in zip(of_alpha, of_beta, (-1, 1, -1, 1), strict=True)
    )
    width = jnp.sqrt(variance)
    skewness, kurtosis = third / (variance * width), fourth / (variance * variance)
    # The expansion is not monotone far out; Halley's steps walk the rest of the way.
    normal = jnp.clip(ndtri(probability), -4, 4)
    square = normal * normal
    bent = normal + (square - 1) * skewness / 6
    bent += normal * ((square - 3) * kurtosis / 24 - (2 * square - 5) * skewness * skewness / 36)
    return mean + width * bent, width


def log_gamma_cumulants(shape: Array) -> tuple[Array, Array, Array, Array]:
    """Return the first four cumulants of log Gamma(shape): polygamma functions, to about 1e-4.

    Stirling's series two steps up, taken down again by the recurrence.
    """
    raised = shape + 2
    inverse = 1 / raised
    square = inverse * inverse
    mean = jnp.log(raised) - inverse / 2 - square / 12
    variance = inverse + square / 2 + square * inverse / 6
    third = -square - square * inverse - square * square / 2
    fourth = 2 * square * inverse + 3 * square * square + 2 * square * square * inverse
    for lower in (shape, shape + 1):
        inverse = 1 / lower
        square = inverse * inverse
        mean, variance = mean - inverse, variance + square
        third, fourth = third - 2 * square * inverse, fourth + 6 * square * square
    return mean, variance, third, fourth
