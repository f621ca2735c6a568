"""What a rule may be about: the numbers of an observation, and ratios of two of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.errors import ArgumentError

SMALLEST = 1e-3
"""No divisor is closer to 0."""


@dataclass(frozen=True)
class Quantities:
    """Which quantities are measured, and which of them a rule may be about.

    Fields:
        ratios: pairs of places in the observation; the first divided by the second is a further
            quantity, as a gap divided by a speed is a time. They follow after the observation.
        about: places of those that a rule may be about, ratios included; None for all.
    """

    ratios: tuple[tuple[int, int], ...] = ()
    about: tuple[int, ...] | None = None

    @classmethod
    def of(cls, ratios: tuple[str, ...], about: tuple[int, ...] | None) -> "Quantities":
        """From how users write ratios: "22/6"."""
        try:
            parts = (str(ratio).split("/") for ratio in ratios)
            pairs = tuple((int(first), int(second)) for first, second in parts)
        except ValueError:
            raise ArgumentError(
                f"ratios must be written as two places in the observation, like 22/6, not {ratios}"
            ) from None
        return cls(pairs, about)

    def check(self, observation: int) -> None:
        """Raise an error if the observation has not so many numbers."""
        places = {place for pair in self.ratios for place in pair}
        for name, given, number in (
            ("ratios", places, observation),
            ("about", self.about or (), observation + len(self.ratios)),
        ):
            outside = sorted(place for place in given if not 0 <= place < number)
            if outside:
                raise ArgumentError(
                    f"{name}: there is no quantity {outside[0]}; there are {number}, from 0"
                )
        if self.about == ():
            raise ArgumentError("about: there must be a quantity that a rule may be about")

    def number(self, observation: int) -> int:
        """How many there are."""
        return observation + len(self.ratios)

    def measured(self, observations: Float[Array, "*n o"]) -> Float[Array, "*n Q"]:
        """Every quantity."""
        if not self.ratios:
            return observations
        first, second = (observations[..., list(part)] for part in zip(*self.ratios, strict=True))
        least = jnp.where(second < 0, -SMALLEST, SMALLEST)
        divisor = jnp.where(jnp.abs(second) < SMALLEST, least, second)
        return jnp.concatenate([observations, first / divisor], axis=-1)

    def name(self, quantity: int, names: Sequence[str]) -> str:
        """What a quantity is called, from the names of the observed numbers."""
        if quantity < len(names):
            return names[quantity]
        first, second = self.ratios[quantity - len(names)]
        return f"{names[first]} / {names[second]}"

    def counted(self, number: int) -> Bool[np.ndarray, " Q"]:
        """Which of `number` quantities a rule may be about."""
        if self.about is None:
            return np.ones(number, bool)
        return np.isin(np.arange(number), self.about)
