"""Rules in words that a person reads: sides of quantities that experts did not go to."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from tacit.inference.confidence.belief import ROUNDING, CountedVotes, support
from tacit.inference.reach.sided_votes import votes_below


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
