"""Votes of the experts: how each demonstration speaks for or against a query.

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
from jaxtyping import Array, Float

CountedVotes = Literal["visits", "visits-fallible"]
LearnedVotes = Literal["independent", "abstain"]
COUNTED_VOTES: tuple[CountedVotes, ...] = get_args(CountedVotes)
LEARNED_VOTES: tuple[LearnedVotes, ...] = get_args(LearnedVotes)


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
