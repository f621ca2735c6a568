"""Votes of experts who may err, about how far one may go to one side of a quantity.

Towards low values, of N experts

    for(v)     = #(lowest <= v)                                  went at least as far as v
    against(v) = (N - for(v)) p(v),   p(v) = share of a policy's episodes that go as far

and who gets to v has passed all values before it: v is as feasible as the least supported of them.
Towards high values it is the mirror of this.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tacit.inference.confidence.belief import counted_votes

Belief = tuple[Float[Array, "*n"], Float[Array, "*n"]]


def margin(alpha: Float[Array, "*n"], beta: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """How clearly Beta(alpha, beta) speaks for something: in deviations, about.

    Who has one vote for among few is not supported less than among many.
    """
    return (alpha - beta) / jnp.sqrt(alpha + beta)


@jax.jit
def votes_below(
    ends: Float[Array, " N"], wanted: Float[Array, " m"], values: Float[Array, " n"]
) -> Belief:
    """Alpha and beta of going down to each value.

    Arguments:
        ends: the lowest value of each expert, sorted.
        wanted: the lowest value of each episode of a policy, sorted.
        values: where to.
    """
    number = ends.shape[0]
    # The least supported value between two ends lies just before the inner one: as few experts go
    # there as anywhere between, and as many episodes. Before the outermost nobody went.
    reached = jnp.searchsorted(ends, ends, side="left").astype(jnp.float32)
    share = jnp.searchsorted(wanted, ends, side="left") / wanted.shape[0]
    between = counted_votes(reached, number, share, "visits-fallible")
    # From each on inwards the least supported one is the next that none further in is below.
    support = margin(*between)
    least = jax.lax.cummin(support, reverse=True)
    lowest = jnp.where(support <= least, jnp.arange(number), number)
    worst = jnp.append(jax.lax.cummin(lowest, reverse=True), number)
    alpha, beta = jnp.append(between[0], 1.0 + number), jnp.append(between[1], 1.0)
    place = worst[jnp.searchsorted(ends, values, side="right")]
    return alpha[place], beta[place]


def sided_votes(
    lowest: tuple[Float[Array, "Q N"], Float[Array, "Q m"]],
    highest: tuple[Float[Array, "Q N"], Float[Array, "Q m"]],
    values: Float[Array, "*n Q"],
) -> tuple[Float[Array, "*n Q"], Float[Array, "*n Q"]]:
    """Alpha and beta of each value, by the side that speaks less for it.

    Arguments:
        lowest: how low experts, and how low policies went, sorted.
        highest: how high.
        values: where to.
    """
    flat = values.reshape(-1, values.shape[-1]).T
    below = jax.vmap(votes_below)(lowest[0], lowest[1], flat)
    above = jax.vmap(votes_below)(-highest[0][:, ::-1], -highest[1][:, ::-1], -flat)
    lower = margin(*below) <= margin(*above)
    alpha, beta = (jnp.where(lower, *sides) for sides in zip(below, above, strict=True))
    return alpha.T.reshape(values.shape), beta.T.reshape(values.shape)
