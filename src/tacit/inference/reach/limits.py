"""Rules in words that a person reads: sides of quantities that experts did not go to.

Votes of experts who may err, about how far one may go to one side of a quantity.

Towards low values, of N experts

    for(v)     = #(lowest <= v)                                  went at least as far as v
    against(v) = (N - for(v)) p(v),   p(v) = share of a policy's episodes that go as far

and who gets to v has passed all values before it: v is as feasible as the least supported of them.
Towards high values it is the mirror of this.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.inference.confidence.belief import ROUNDING, CountedVotes, counted_votes, support

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


class Rule(NamedTuple):
    """One side of one quantity that the experts did not go to, though policies would have.

    Fields:
        quantity: its place: in the observation, or after it for ratios.
        name: of the quantity.
        side: where it is forbidden: "below" or "above" the limit.
        limit: the last value that is allowed at the confidence; where it wants more experts than
            there are, nothing is allowed, and this is the last one that all of them reached.
        experts: how many went at least as far as the limit.
        against: how many of the N experts speak against going further: than all of them, or, if
            they may err, than the limit.
    """

    quantity: int
    name: str
    side: Literal["below", "above"]
    limit: float
    experts: int
    against: float

    def __str__(self) -> str:
        kept = "at least" if self.side == "below" else "at most"
        return (
            f"{self.name} is {kept} {self.limit:.4g} "
            f"({self.against:.0f} experts speak against going further)"
        )


class Limit(NamedTuple):
    """Where one side of a quantity ends, towards low values.

    Fields:
        value: the last one that is allowed.
        experts: how many went at least as far.
        against: how many speak against going further.
        edge: what is lower than this is tempting.
    """

    value: float
    experts: int
    against: float
    edge: float


def rules_of(
    experts: tuple[Float[np.ndarray, "Q N"], Float[np.ndarray, "Q N"]],
    policies: tuple[Float[np.ndarray, "Q m"], Float[np.ndarray, "Q m"]],
    *,
    names: list[str],
    counted: Bool[np.ndarray, " Q"],
    confidence: float,
    voting: CountedVotes,
) -> list[Rule]:
    """The sides that at least one expert speaks against, the strongest evidence first.

    Strong is what many speak against, and where policies would go far beyond the experts, compared
    with how much these differ in where they turned back: those who keep a limit turn back at one
    place, those who have habits do not.

    Arguments:
        experts: the lowest and the highest value of each, in each quantity, sorted.
        policies: the same of those that are tempted.
        names: of the quantities.
        counted: which of them a rule may be about.
        confidence: lambda.
        voting: whether a visit is proof.
    """
    limit_of = proved_limit if voting == "visits" else majority_limit
    # Turned round, the highest are the lowest.
    sides: tuple[tuple[Literal["below", "above"], np.ndarray, np.ndarray], ...] = (
        ("below", experts[0], policies[0]),
        ("above", -experts[1][:, ::-1], -policies[1][:, ::-1]),
    )
    found = []
    for side, reached, wanted in sides:
        for quantity in np.flatnonzero(counted):
            ends, tempting = reached[quantity], wanted[quantity]
            limit = limit_of(ends, tempting, confidence)
            if limit is None or limit.against < 1:
                continue
            spread = max(float(np.std(ends)), float(np.finfo(np.float32).tiny))
            far = float(limit.edge - tempting[tempting < limit.edge].mean()) / spread
            value = limit.value if side == "below" else -limit.value
            name = names[quantity]
            rule = Rule(int(quantity), name, side, value, limit.experts, limit.against)
            found.append((limit.against * far / (1 + far), rule))
    return [rule for _, rule in sorted(found, key=lambda pair: -pair[0])]


def proved_limit(
    ends: Float[np.ndarray, " N"], wanted: Float[np.ndarray, " m"], confidence: float
) -> Limit | None:
    """The lowest value that is allowed at the confidence, and how many experts went as far.

    n visits make P(phi >= 1/2) = 1 - 2^-(n + 1), so that n >= -log2(1 - lambda) - 1 are wanted.
    Where none are, n votes against make it 2^-(n + 1): up to -log2(lambda) - 1 are borne, and
    there is no limit.
    """
    against = len(ends) * float((wanted < ends[0]).mean())
    visits = max(0, int(np.ceil(-np.log2(1 - confidence) - 1 - 1e-9)))
    if visits == 0 and against <= -np.log2(confidence) - 1:
        return None
    # Beyond len(ends) nothing can be proved; what all of them reached is the best there is.
    place = min(max(visits, 1), len(ends)) - 1
    return Limit(float(ends[place]), place + 1, against, float(ends[0]))


def majority_limit(
    ends: Float[np.ndarray, " N"], wanted: Float[np.ndarray, " m"], confidence: float
) -> Limit | None:
    """The lowest value that is allowed at the confidence; all beyond are no more feasible.

    If what the furthest expert did is allowed, the limit is as if it were proved.
    """
    alpha, beta = votes_below(*(jnp.asarray(part, jnp.float32) for part in (ends, wanted, ends)))
    forbidden = np.flatnonzero(np.asarray(support(alpha, beta)) < confidence - ROUNDING)
    if len(forbidden) == 0:
        return proved_limit(ends, wanted, confidence)
    last = int(forbidden[-1])
    place = min(last + 1, len(ends) - 1)
    value = float(ends[place])
    experts = int(np.searchsorted(ends, value, side="right"))
    return Limit(value, experts, float(beta[last] - 1), value)
