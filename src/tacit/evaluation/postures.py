"""Does a constraint look at the quantity that matters, or at what experts look like?

The feasibility of steps whose one quantity is moved while all others stay as they were. A rule
about the quantity gives one curve, whoever's postures they are; an imitation calls the postures of
those who keep the rule feasible wherever they stand, and the others nowhere.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from tacit.errors import ArgumentError
from tacit.evaluation.recovery import SeenSteps
from tacit.inference.constraint import LearnedConstraint

POSTURES = 200


class Postures(NamedTuple):
    """Feasibility [n, m] at n values of a quantity, in m postures of each kind."""

    allowed: Float[np.ndarray, "n m"]
    forbidden: Float[np.ndarray, "n k"]


def postures(
    constraint: LearnedConstraint,
    steps: SeenSteps,
    quantity: int,
    values: Float[np.ndarray, " n"],
    *,
    confidence: float | None = None,
    seed: int = 0,
) -> Postures:
    """Feasibility against one observed number, in postures of steps that kept and broke the rule.

    Arguments:
        constraint: to be looked at.
        steps: where the postures come from, see `tacit.evaluation.recovery.seen_steps`; up to 200
            of each kind are drawn.
        quantity: its place in the observation.
        values: what it is set to.
        confidence: at which the constraint is asked; its own by default.
        seed: of the draw.
    """
    size = steps.observations.shape[1]
    if not 0 <= quantity < size:
        raise ArgumentError(f"quantity must be one of the {size} observed numbers, not {quantity}")
    generator = np.random.default_rng(seed)
    curves = []
    for kind in (~steps.broken, steps.broken):
        places = np.flatnonzero(kind)
        chosen = generator.choice(places, min(POSTURES, len(places)), replace=False)
        curves.append(
            moved(
                constraint,
                steps.observations[chosen],
                steps.actions[chosen],
                quantity,
                values,
                confidence,
            )
        )
    return Postures(*curves)


def moved(
    constraint: LearnedConstraint,
    observations: Float[np.ndarray, "m o"],
    actions: Shaped[np.ndarray, "m ..."],
    quantity: int,
    values: Float[np.ndarray, " n"],
    confidence: float | None,
) -> Float[np.ndarray, "n m"]:
    """Feasibility of every step with its quantity set to every value."""
    everywhere = np.repeat(observations[None], len(values), axis=0)
    everywhere[..., quantity] = values[:, None]
    repeated = np.repeat(actions[None], len(values), axis=0)
    flat = constraint.feasibility(
        everywhere.reshape(-1, observations.shape[1]),
        repeated.reshape(-1, *actions.shape[1:]),
        confidence,
    )
    return np.asarray(flat).reshape(len(values), len(observations))
