r"""The quantile of a Beta distribution, with gradients: the paper's equations (9) and (10).

Equation (9) reads the constraint at a confidence level off the Beta distribution of the expert
votes,

.. math:: q(p; \alpha, \beta) = I^{-1}_p(\alpha, \beta), \qquad
          I_x(\alpha, \beta) = \frac{1}{B(\alpha, \beta)}
          \int_0^x t^{\alpha - 1} (1 - t)^{\beta - 1}\,dt,

with :math:`p = 1 - \lambda` the `probability` for a confidence :math:`\lambda`. Learning needs
its derivatives in alpha and beta. Equation (10) takes a forward difference over a lookup table;
we solve the equation to rounding and differentiate it by the implicit function theorem,

.. math:: \frac{\partial q}{\partial \alpha} =
          -\frac{\partial I_q / \partial \alpha}{\operatorname{pdf}(q; \alpha, \beta)},

and keep the paper's recipe as `method="paper"`.

`QuantileTable` is the same at one fixed probability, interpolated, for the inside of training
loops.

For one probability :math:`p`, with :math:`z` the normal quantile of :math:`p`, the logit of the
Beta quantile is

.. math:: \log\frac{q}{1-q} = \log\frac{\alpha}{\beta} + z\sqrt{\tfrac1\alpha + \tfrac1\beta}
          + \frac{z^2 - 1}{6}\Bigl(\frac1\beta - \frac1\alpha\Bigr)
          + r\Bigl(\frac1{\sqrt\alpha}, \frac1{\sqrt\beta}\Bigr).

The first three terms are the Cornish-Fisher expansion for large alpha and beta. The rest
:math:`r` is smooth on the unit square, to which the substitution :math:`1/\sqrt\alpha` maps every
alpha from 1 to infinity, and vanishes at its corner. So a polynomial through 8 x 8 Chebyshev
points covers any number of experts: no gather, no cell edges, a smooth gradient.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from numpy.polynomial.chebyshev import chebvander
from scipy.special import betaincinv, ndtri

from tacit.errors import ArgumentError
from tacit.inference.confidence.quantile_solver import solve

TABLE_STEP = 0.001
DIFFERENCE_STEP = 0.002


def beta_quantile(
    probability: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    *,
    method: Literal["exact", "paper"] = "exact",
) -> Array:
    """Return x with I_x(alpha, beta) = probability: the inverse regularised incomplete beta.

    Differentiable once in all three arguments, forward and reverse, under `jit`, `vmap` and
    `scan`. The arguments broadcast; the result has their common floating dtype (integers and
    plain numbers take JAX's default).

    For alpha, beta in [1, 20001] and probability in [0.01, 0.99], 0.5 included, the error is
    below 1e-9 in float64 and 1e-6 in float32, and the relative error of gradients above 1e-6 is
    below 1e-5 and 1e-2. Smaller alpha and beta are legal but less precise: see
    `docs/guide/beta_quantile.md`.

    Args:
        probability: mass below the quantile, between 0 and 1 exclusive (1 - lambda in the paper).
        alpha: first shape, above 0 (1 + the votes for feasible).
        beta: second shape, above 0 (1 + the votes against).
        method: `"exact"`, or `"paper"` for a table with steps of 0.001 and a forward difference
            with h = 0.002, for comparison only: its values are up to 0.001 too large and most of
            its derivatives are exactly 0.

    Raises:
        ArgumentError: if an argument is out of range. Values that are being traced (`jit`,
            `grad`, `vmap`) cannot raise; there the result is NaN.

    >>> round(float(beta_quantile(0.3, 4.0, 5.0)), 4)
    0.353
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be 'exact' or 'paper', not {method!r}")
    dtype = jnp.result_type(probability, alpha, beta, 1.0)
    precise = jnp.promote_types(dtype, jnp.float32)
    probability, alpha, beta = (jnp.asarray(value, precise) for value in (probability, alpha, beta))
    require(probability, "probability", "between 0 and 1, both excluded", above=0, below=1)
    require(alpha, "alpha", "above 0 and finite", above=0, below=np.inf)
    require(beta, "beta", "above 0 and finite", above=0, below=np.inf)
    return METHODS[method](*jnp.broadcast_arrays(probability, alpha, beta)).astype(dtype)


def require(argument: ArrayLike, name: str, condition: str, *, above: float, below: float) -> None:
    """Raise if a concrete argument leaves the open interval; let traced ones pass."""
    if isinstance(argument, Tracer):
        return
    values = np.asarray(argument, np.float64)
    wrong = ~((values > above) & (values < below))
    if wrong.any():
        raise ArgumentError(
            f"{name} must be {condition}, but {int(wrong.sum())} of {wrong.size} values are not, "
            f"the first of them {values[wrong].flat[0]:g}"
        )


@jax.custom_jvp
def exact_quantile(probability: Array, alpha: Array, beta: Array) -> Array:
    """Solve the equation; arguments of one shape and dtype, NaN where out of range."""
    return solve(probability, alpha, beta).value


@exact_quantile.defjvp
def exact_quantile_slope(primals, tangents):
    """Differentiate by the implicit function theorem."""
    solution = solve(*primals)
    probability_change, alpha_change, beta_change = tangents
    return solution.value, (
        solution.by_probability * probability_change
        + solution.by_alpha * alpha_change
        + solution.by_beta * beta_change
    )


def look_up(quantile: Array) -> Array:
    """Round up to the paper's table.

    The first entry of the table x = 0, 0.001, ..., 1 with I_x >= p is the first with x >= q, so
    the table need not be built. The slack keeps rounding from skipping an entry that q equals.
    """
    slack = 8 * jnp.finfo(quantile.dtype).eps / TABLE_STEP
    entry = jnp.ceil(quantile / TABLE_STEP - slack)
    return jnp.clip(entry / round(1 / TABLE_STEP), 0, 1)


@jax.custom_jvp
def paper_quantile(probability: Array, alpha: Array, beta: Array) -> Array:
    """Look the quantile up in the paper's table, step 0.001."""
    return look_up(solve(probability, alpha, beta).value)


@paper_quantile.defjvp
def paper_quantile_slope(primals, tangents):
    """Differentiate by the paper's equation (10): [q(a + h) - q(a)] / h over the table.

    The paper steps in the weights of the network; we step in alpha and beta and leave the rest to
    the chain rule. It holds the probability fixed; there we keep the exact slope.
    """
    probability, alpha, beta = primals
    solution = solve(
        jnp.stack([probability, probability, probability]),
        jnp.stack([alpha, alpha + DIFFERENCE_STEP, alpha]),
        jnp.stack([beta, beta, beta + DIFFERENCE_STEP]),
    )
    value, further_alpha, further_beta = look_up(solution.value)
    probability_change, alpha_change, beta_change = tangents
    return value, (
        solution.by_probability[0] * probability_change
        + (further_alpha - value) / DIFFERENCE_STEP * alpha_change
        + (further_beta - value) / DIFFERENCE_STEP * beta_change
    )


METHODS = {"exact": jax.jit(exact_quantile), "paper": jax.jit(paper_quantile)}


class QuantileTable(eqx.Module):
    """`beta_quantile` at one probability, for alpha and beta of at least 1.

    Within 2e-5 of the exact value for alpha, beta from 1 to infinity and probability
    from 0.01 to 0.99, with gradients by ordinary differentiation of the polynomial, of any order.
    Smaller alpha or beta are read as 1, with zero gradient.

    >>> table = QuantileTable.build(0.3)
    >>> round(float(table(4.0, 5.0)), 4)
    0.353
    """

    coefficients: np.ndarray | Array
    """Chebyshev coefficients of r, first index alpha."""
    probability: float | Array
    """The fixed probability (1 - lambda)."""
    normal: float | Array
    """z: the standard normal quantile of the probability."""

    @classmethod
    def build(cls, probability: float, *, points: int = 8) -> "QuantileTable":
        """Interpolate SciPy's quantile at points x points Chebyshev nodes (under 1 ms).

        Args:
            probability: a plain number between 0 and 1 exclusive; it cannot be traced.
            points: nodes per axis; more are slower and closer, 12 within 1e-6.
        """
        require(probability, "probability", "between 0 and 1, both excluded", above=0, below=1)
        probability = float(probability)
        normal = float(ndtri(probability))
        nodes = np.cos(np.pi * (np.arange(points) + 0.5) / points)
        alpha, beta = np.meshgrid(*2 * [4 / (1 + nodes) ** 2], indexing="ij")
        below = betaincinv(alpha, beta, probability)
        above = betaincinv(beta, alpha, 1 - probability)
        rest = np.log(below) - np.log(above) - expansion(np, alpha, beta, normal)
        inverse = np.linalg.inv(chebvander(nodes, points - 1))
        coefficients = inverse @ rest @ inverse.T
        return cls(coefficients, probability, normal)

    @eqx.filter_jit
    def __call__(self, alpha: ArrayLike, beta: ArrayLike) -> Array:
        """Return the quantile; arguments broadcast and keep their floating dtype."""
        dtype = jnp.result_type(alpha, beta, 1.0)
        alpha, beta = (at_least_one(jnp.asarray(shape, dtype)) for shape in (alpha, beta))
        across, along = (2 * jax.lax.rsqrt(shape) - 1 for shape in (alpha, beta))
        rows = [clenshaw(row, along) for row in self.coefficients.astype(dtype)]
        logit = expansion(jnp, alpha, beta, self.normal) + clenshaw(rows, across)
        return sigmoid(logit)


def at_least_one(shape: Array) -> Array:
    """Clip from below, with the full gradient at 1 (`jnp.maximum` would halve it there)."""
    return jnp.where(shape < 1, 1, shape)


def sigmoid(logit: Array) -> Array:
    """Return 1 / (1 + exp(-logit)) with a slope that is precise on both sides.

    `jax.nn.sigmoid` has the slope q (1 - q), which loses its digits in float32 as q nears 1.
    """
    positive = logit > 0
    smaller = jax.nn.sigmoid(jnp.where(positive, -logit, logit))
    return jnp.where(positive, 1 - smaller, smaller)


def expansion(library, alpha, beta, normal):
    """Return the first three terms of the logit, for arrays of NumPy or of JAX."""
    inverse_alpha, inverse_beta = 1 / alpha, 1 / beta
    spread = normal * library.sqrt(inverse_alpha + inverse_beta)
    skew = (normal**2 - 1) / 6 * (inverse_beta - inverse_alpha)
    return library.log(alpha) - library.log(beta) + spread + skew


def clenshaw(coefficients, point: Array) -> Array:
    """Sum c_k T_k(point) by Clenshaw's recurrence, stable in float32."""
    later, latest = jnp.zeros_like(point), jnp.zeros_like(point)
    for coefficient in reversed(coefficients[1:]):
        later, latest = latest, 2 * point * latest - later + coefficient
    return point * latest - later + coefficients[0]
