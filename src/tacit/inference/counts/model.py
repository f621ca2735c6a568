"""A learned rule of a tabular task, to be asked about any step at any confidence."""

from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from tacit.errors import ArgumentError
from tacit.inference.confidence.belief import Reading, feasibility, step_cost, support
from tacit.precision import in_double_precision


@dataclass(frozen=True, eq=False)
class Evidence:
    """Why: how many experts speak for and against a step, and how sure that makes us.

    Fields:
        votes_for: fractional number of experts who vote "feasible" (alpha - 1).
        votes_against: fractional number who vote "infeasible" (beta - 1).
        support: P(most people find it acceptable), P(phi >= 1/2).
    """

    votes_for: np.ndarray
    votes_against: np.ndarray
    support: np.ndarray


@dataclass(frozen=True, eq=False)
class TabularConstraint:
    """The belief of `tacit.inference.confidence.belief` with the confidence level it is read at.

    Fields:
        alpha: [X] one plus the votes for each query (state, or state-action pair).
        beta: [X] one plus the votes against it.
        confidence: the level used when none is given.
        reading: how the belief is read: soft, hard or graded.
        budget: expected cost per episode that a controller should keep to.
        number_of_actions: A of the task.
        rule_on: whether queries are states or pairs.
        any_confidence: False if the belief was trained for its own confidence alone.
    """

    alpha: Float[np.ndarray, " X"]
    beta: Float[np.ndarray, " X"]
    confidence: float
    reading: Reading
    budget: float
    number_of_actions: int
    rule_on: Literal["state", "pair"]
    any_confidence: bool = True

    def at(self, confidence: float) -> "TabularConstraint":
        """The same belief, read at another confidence."""
        return replace(self, confidence=self.check(confidence))

    def feasibility(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> np.ndarray:
        """How feasible each step (state, action) is at the confidence, in [0, 1]."""
        return self.feasibility_map(confidence)[self.queries(observations, actions)]

    def cost(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> np.ndarray:
        """The cost of each step (state, action) at the confidence, in [0, 1]."""
        return self.cost_map(confidence)[self.queries(observations, actions)]

    def evidence(self, observations: np.ndarray, actions: np.ndarray) -> Evidence:
        """How many experts speak for and against each step."""
        queries = self.queries(observations, actions)
        supported = self.support_map()
        return Evidence(self.alpha[queries] - 1, self.beta[queries] - 1, supported[queries])

    @in_double_precision
    def feasibility_map(self, confidence: float | None = None) -> Float[np.ndarray, " X"]:
        """Feasibility of every query."""
        level = self.check(confidence)
        alpha, beta = jnp.asarray(self.alpha), jnp.asarray(self.beta)
        return np.asarray(feasibility(alpha, beta, level, self.reading))

    @in_double_precision
    def cost_map(self, confidence: float | None = None) -> Float[np.ndarray, " X"]:
        """Cost of a step at every query."""
        level = self.check(confidence)
        alpha, beta = jnp.asarray(self.alpha), jnp.asarray(self.beta)
        return np.asarray(step_cost(alpha, beta, level, self.reading, self.budget))

    @in_double_precision
    def support_map(self) -> Float[np.ndarray, " X"]:
        """P(phi >= 1/2) of every query; does not depend on the confidence."""
        return np.asarray(support(jnp.asarray(self.alpha), jnp.asarray(self.beta)))

    def allowed_map(self, confidence: float | None = None) -> Bool[np.ndarray, " X"]:
        """True where phi* >= 1/2, that is P(phi >= 1/2) >= confidence."""
        return np.asarray(replace(self, reading="hard").feasibility_map(confidence) > 0)

    def queries(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Which query each step asks about; a trailing axis of length 1 is dropped."""
        states, actions = (
            array[..., 0] if array.ndim > 1 and array.shape[-1] == 1 else array
            for array in (np.asarray(observations), np.asarray(actions))
        )
        if states.dtype.kind not in "iu" or actions.dtype.kind not in "iu":
            raise ArgumentError("states and actions of a tabular task are whole numbers")
        size = len(self.alpha) // (self.number_of_actions if self.rule_on == "pair" else 1)
        if ((states < 0) | (states >= size)).any():
            raise ArgumentError(f"states must lie in 0 to {size - 1}")
        if ((actions < 0) | (actions >= self.number_of_actions)).any():
            raise ArgumentError(f"actions must lie in 0 to {self.number_of_actions - 1}")
        if self.rule_on == "pair":
            return states * self.number_of_actions + actions
        return np.broadcast_arrays(states, actions)[0]

    def check(self, confidence: float | None) -> float:
        """The confidence to use; an error if it is none or this belief cannot answer at it."""
        if confidence is None:
            return self.confidence
        check_confidence(confidence)
        if not self.any_confidence and abs(confidence - self.confidence) > 1e-12:
            raise ArgumentError(
                f"objective 'quantile' trains for one confidence, here {self.confidence}: infer "
                f"again at {confidence}, or use an objective that serves all of them"
            )
        return float(confidence)


def check_confidence(confidence: float) -> None:
    """A number strictly between 0 and 1."""
    if not isinstance(confidence, int | float | np.number) or not 0 < confidence < 1:
        raise ArgumentError(
            f"confidence must lie strictly between 0 and 1 (0.8 means 80 %), not {confidence!r}"
        )
