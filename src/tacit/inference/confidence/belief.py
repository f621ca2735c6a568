"""The belief about feasibility, and how a confidence level reads a constraint off it.

For every query x (a state or a state-action pair) the learner holds Beta(alpha, beta) over the
feasibility phi(x): the fraction of people who would call x acceptable (section 3.1 of the paper).
With no evidence it is Beta(1, 1). A confidence level lambda turns the belief into a constraint by
one of three readings:

`soft`
    phi*(x), the (1 - lambda)-quantile of the Beta (equation 9): the true feasibility exceeds it
    with probability lambda. The cost of a step is 1 - phi*(x).
`hard`
    Allowed if and only if phi*(x) >= 1/2, which is the same as P(phi(x) >= 1/2) >= lambda: one is
    sure enough that most people find x acceptable. The cost of a step is 0 or 1; where too few
    demonstrations leave nothing allowed, all steps cost the same and nothing is constrained.
`graded`
    Allowed exactly where `hard` allows; elsewhere the feasibility is P(phi(x) >= 1/2) / lambda,
    the share of the demanded confidence that the evidence reaches. Its negative base-2 logarithm
    counts the missing evidence in bits, which add up along a trajectory because feasibilities
    multiply (phi(tau) = prod phi(s_t, a_t)). See `step_cost` for how bits become a cost.

Votes of the experts: how each demonstration speaks for or against a query.

Expert i votes sigma1_i for "feasible" and sigma2_i for "infeasible", both in [0, 1], and the belief
counts them (section 3.1 of the paper):

    alpha = 1 + sum_i sigma1_i,   beta = 1 + sum_i sigma2_i

In the lab the comparison of a query x with trajectory i is exact: i visited x, or it did not. So
the most general encoder has one output for visitors and one for the others, and the sums need only
the number of visitors. Ways to vote:

`visits` (counted)
    A visitor votes for x. The others vote against it to the degree that they would have come:
    sigma2_i = tempted(x), the probability that a policy which trusts the present constraint visits
    x. Where anyone came, nobody votes against ("infallible" experts: one visit proves x
    acceptable).
`visits-fallible` (counted)
    The same, but those who stayed away vote against x even where others came.
`independent` (learned)
    Two sigmoids (the paper).
`abstain` (learned)
    A softmax over feasible / infeasible / no opinion, so that one expert casts at most one vote;
    starts at no opinion.
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc, digamma, gammaln
from jaxtyping import Array, Float

from tacit.errors import ArgumentError
from tacit.inference.confidence.quantile import beta_quantile

CountedVotes = Literal["visits", "visits-fallible"]
LearnedVotes = Literal["independent", "abstain"]
COUNTED_VOTES: tuple[CountedVotes, ...] = get_args(CountedVotes)
LEARNED_VOTES: tuple[LearnedVotes, ...] = get_args(LearnedVotes)
Reading = Literal["soft", "hard", "graded"]
READINGS: tuple[Reading, ...] = get_args(Reading)
ROUNDING = 1e-9
SMALLEST_SUPPORT = 2.0**-900
BITS_PER_EPISODE = 1 / 4
LEAST_BUDGET = 0.01
LARGEST_PRICE = 1.0


def counted_votes(
    visitors: Float[Array, " X"],
    number: Array | float,
    tempted: Float[Array, " X"],
    votes: CountedVotes,
) -> tuple[Float[Array, " X"], Float[Array, " X"]]:
    """Alpha and beta from the number of visitors of each query, out of `number` experts."""
    against = (number - visitors) * tempted
    if votes == "visits":
        against = jnp.where(visitors > 0, 0.0, against)
    return 1 + visitors, 1 + against


def initial_weights(queries: int, votes: LearnedVotes) -> Float[Array, "X 2 K"]:
    """Weights of the tabular encoder: [query, visitor or not, output], close to no opinion."""
    if votes == "independent":
        return jnp.full((queries, 2, 2), -6.0)
    return jnp.broadcast_to(jnp.array([-3.0, -3.0, 3.0]), (queries, 2, 3))


def learned_votes(
    weights: Float[Array, "X 2 K"],
    visitors: Float[Array, " X"],
    number: Array | float,
    votes: LearnedVotes,
) -> tuple[Float[Array, " X"], Float[Array, " X"]]:
    """Alpha and beta from the encoder's votes, summed over visitors and non-visitors."""
    cast = jax.nn.sigmoid(weights) if votes == "independent" else jax.nn.softmax(weights, axis=-1)
    voters = jnp.stack([visitors, number - visitors], axis=-1)
    sums = (voters[..., None] * cast[..., :2]).sum(axis=-2)
    return 1 + sums[..., 0], 1 + sums[..., 1]


def support(alpha: Float[Array, "..."], beta: Float[Array, "..."]) -> Float[Array, "..."]:
    """P(phi >= 1/2) under Beta(alpha, beta): how sure one is that most find it acceptable.

    Equals I_{1/2}(beta, alpha), the regularised incomplete beta function.
    """
    return betainc(beta, alpha, 0.5)


def feasibility(
    alpha: Float[Array, "*shape"],
    beta: Float[Array, "*shape"],
    confidence: Array | float,
    reading: Reading,
) -> Float[Array, "*shape"]:
    """Feasibility in [0, 1] at the confidence level, by one of the readings above."""
    if reading == "soft":
        return beta_quantile(1 - confidence, alpha, beta)
    supported = support(alpha, beta)
    if reading == "hard":
        return (supported >= confidence - ROUNDING).astype(supported.dtype)
    if reading == "graded":
        return jnp.minimum(1.0, (supported + ROUNDING) / confidence)
    raise ArgumentError(f"reading must be one of {', '.join(READINGS)}, not {reading!r}")


def missing_bits(
    alpha: Float[Array, "*shape"], beta: Float[Array, "*shape"], confidence: Array | float
) -> Float[Array, "*shape"]:
    """log2(lambda / P(phi >= 1/2)), zero where the confidence is reached."""
    supported = jnp.maximum(support(alpha, beta), SMALLEST_SUPPORT)
    short = supported < confidence - ROUNDING
    return jnp.where(short, jnp.log2(confidence / supported), 0.0)


def forward_budget(budget: Array | float, confidence: Array | float) -> Array:
    """Expected cost per episode that a policy may have: epsilon, but never above 1 - lambda.

    Whoever tolerates more violated steps than 1 - lambda per episode cannot promise to violate in
    at most a share 1 - lambda of the episodes.
    """
    return jnp.minimum(budget, 1 - confidence)


def step_cost(
    alpha: Float[Array, "*shape"],
    beta: Float[Array, "*shape"],
    confidence: Array | float,
    reading: Reading,
    budget: Array | float,
) -> Float[Array, "*shape"]:
    """The cost in [0, 1] of one step, for a controller whose expected cost per episode is bounded.

    `soft` and `hard`: 1 - feasibility. `graded`: a policy may lack, in expectation, about
    (1 - lambda) / 4 bits of evidence per episode. So that one and the same `budget` (epsilon of
    equation 4, in violated steps per episode) bounds the cost of every rule, a bit is priced at
    4 * budget / (1 - lambda), and the cost of a step approaches 1, a violation, as bits mount up:

        cost = 1 - exp(-4 * budget / (1 - lambda) * log2(lambda / P(phi >= 1/2)))

    A state that nobody visited lacks at least log2(2 lambda) bits. So for lambda >= 0.6 and a
    small budget, a policy within it enters unproved states in at most a share 1 - lambda of its
    episodes. As evidence grows, forbidden states cost 1 and allowed ones 0: the experts' own
    problem. The cost goes on rising with the missing evidence, so that where nothing is proved
    the most careful policy still prefers what some experts did. For that the price is at most 1;
    and budgets below 0.01 price a bit as 0.01 does: a budget of zero must not make evidence free.
    """
    if reading != "graded":
        return 1 - feasibility(alpha, beta, confidence, reading)
    budget = jnp.maximum(forward_budget(budget, confidence), LEAST_BUDGET)
    price = budget / (BITS_PER_EPISODE * (1 - confidence))
    price = jnp.minimum(price, LARGEST_PRICE)
    return -jnp.expm1(-price * missing_bits(alpha, beta, confidence))


def beta_divergence(
    alpha: Float[Array, "*n"],
    beta: Float[Array, "*n"],
    prior_alpha: float,
    prior_beta: float,
) -> Float[Array, "*n"]:
    """KL(Beta(alpha, beta) || Beta(prior)).

    ln B(p, q) - ln B(a, b) + (a - p) psi(a) + (b - q) psi(b) + (p - a + q - b) psi(a + b)
    """
    total = alpha + beta
    # Not JAX's betaln, which is off by 1.3e-6 in double precision where a or b is 8 or more.
    prior = (
        gammaln(jnp.asarray(prior_alpha))
        + gammaln(jnp.asarray(prior_beta))
        - gammaln(jnp.asarray(prior_alpha + prior_beta))
    )
    return (
        prior
        - (gammaln(alpha) + gammaln(beta) - gammaln(total))
        + (alpha - prior_alpha) * digamma(alpha)
        + (beta - prior_beta) * digamma(beta)
        + (prior_alpha - alpha + prior_beta - beta) * digamma(total)
    )
