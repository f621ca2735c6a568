"""Which policies CA-ICRL that samples on a table trains, in which order: its rounds as data."""

from typing import NamedTuple

from tacit.inference.counts.counted import LEVELS

SWEEPS = 3
LOW_AND_HIGH = (30.0, 1000.0)


class Plan(NamedTuple):
    """What a policy is trained for.

    Fields:
        round: those of one round do not know of each other.
        level: the confidence at which costs are read off the belief.
        price: of cost; None for an addition to the best mixture of the rounds before, at its price.
    """

    round: int
    level: float
    price: float | None


LEAST_PRICE = 1.0
PLANS = (
    # At this confidence nothing costs.
    Plan(0, 0.0, LEAST_PRICE),
    *(
        Plan(2 * sweep + part, level, price)
        for sweep in range(SWEEPS)
        for part, prices in ((1, LOW_AND_HIGH), (2, (None,)))
        for level in LEVELS
        for price in prices
    ),
)
"""All levels of a sweep face one belief, as in the exact computation: who learns at once what the
level before has found is tempted by less."""
SWEPT = tuple(sum(plan.round <= 2 * sweep for plan in PLANS) for sweep in range(1, SWEEPS + 1))
"""How many policies there are at the end of each sweep."""
