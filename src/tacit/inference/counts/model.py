"""The belief about every query of a table, and the constraint that is read off it."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.inference.confidence.belief import Reading, feasibility, step_cost, support
from tacit.inference.constraint_model import ConstraintModel, Evidence, Spaces
from tacit.precision import in_double_precision


class ForbiddenQuery(NamedTuple):
    """A state, or an action in a state, that is not allowed at a confidence.

    Fields:
        state: its number.
        action: likewise, None where the rule is about states.
        experts: how many visited it.
        against: how many of the experts speak against it.
    """

    state: int
    action: int | None
    experts: float
    against: float

    def __str__(self) -> str:
        where = "" if self.action is None else f"action {self.action} in "
        return (
            f"{where}state {self.state} is forbidden "
            f"({self.against:.1f} experts speak against it, {self.experts:.1f} for it)"
        )


class TableModel(ConstraintModel):
    """Beta(alpha, beta) over the feasibility of each of X queries (states, or state-action pairs).

    Fields:
        alpha: one plus the votes for each query.
        beta: one plus the votes against it.
        reading: how the belief is read: soft, hard or graded.
        budget: expected cost per episode that a controller should keep to.
        number_of_actions: A of the task.
        rule_on: whether queries are states or pairs.
    """

    alpha: Float[np.ndarray, " X"]
    beta: Float[np.ndarray, " X"]
    reading: Reading = eqx.field(static=True)
    budget: float = eqx.field(static=True)
    number_of_actions: int = eqx.field(static=True)
    rule_on: Literal["state", "pair"] = eqx.field(static=True)

    name: ClassVar[str] = "table"
    promises: ClassVar[bool] = True

    def spaces(self) -> Spaces:
        """The numbers of states and actions."""
        actions = self.number_of_actions
        states = len(self.alpha) // (actions if self.rule_on == "pair" else 1)
        return Spaces(gymnasium.spaces.Discrete(states), gymnasium.spaces.Discrete(actions))

    def queries(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The query that each step asks about."""
        return states * self.number_of_actions + actions if self.rule_on == "pair" else states

    @in_double_precision
    def feasibilities(self, confidence: float) -> Float[np.ndarray, " X"]:
        """The feasibility of every query."""
        alpha, beta = jnp.asarray(self.alpha), jnp.asarray(self.beta)
        return np.asarray(feasibility(alpha, beta, confidence, self.reading))

    @in_double_precision
    def costs(self, confidence: float) -> Float[np.ndarray, " X"]:
        """The cost of a step at every query."""
        alpha, beta = jnp.asarray(self.alpha), jnp.asarray(self.beta)
        return np.asarray(step_cost(alpha, beta, confidence, self.reading, self.budget))

    @in_double_precision
    def supports(self) -> Float[np.ndarray, " X"]:
        """P(phi >= 1/2) of every query; it does not depend on the confidence."""
        return np.asarray(support(jnp.asarray(self.alpha), jnp.asarray(self.beta)))

    @in_double_precision
    def allowed(self, confidence: float) -> Bool[np.ndarray, " X"]:
        """True where phi* >= 1/2, that is P(phi >= 1/2) >= confidence."""
        alpha, beta = jnp.asarray(self.alpha), jnp.asarray(self.beta)
        return np.asarray(feasibility(alpha, beta, confidence, "hard") > 0)

    def feasibility(self, observations: Any, actions: Any, confidence: Array | float) -> Any:
        """How feasible each step (state, action) is at the confidence."""
        return self.feasibilities(float(confidence))[self.queries(observations, actions)]

    def cost(self, observations: Any, actions: Any, confidence: Array | float) -> Any:
        """What each step (state, action) costs at the confidence."""
        return self.costs(float(confidence))[self.queries(observations, actions)]

    def answers(
        self, question: str, observations: np.ndarray, actions: np.ndarray, confidence: float
    ) -> np.ndarray:
        """`cost` or `feasibility` of every step: a look-up, so that nothing is compiled."""
        return getattr(self, question)(observations, actions, confidence)

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int) -> Evidence:
        """How many experts speak for and against each step; who they are is not kept."""
        del most
        queries = self.queries(observations, actions)
        return Evidence(self.alpha[queries] - 1, self.beta[queries] - 1, self.supports()[queries])

    def rules(self, confidence: float, names: Sequence[str]) -> list[ForbiddenQuery]:
        """The forbidden queries that at least one expert speaks against, the strongest first."""
        del names
        forbidden = ~self.allowed(confidence) & (self.beta >= 2)
        order = np.flatnonzero(forbidden)[np.argsort(-self.beta[forbidden], kind="stable")]
        pairs = self.rule_on == "pair"
        places = np.divmod(order, self.number_of_actions) if pairs else (order, order)
        return [
            ForbiddenQuery(
                int(state),
                int(action) if pairs else None,
                float(self.alpha[query] - 1),
                float(self.beta[query] - 1),
            )
            for query, state, action in zip(order, *places, strict=True)
        ]

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to build a model like this one."""
        return {
            "queries": len(self.alpha),
            "reading": self.reading,
            "budget": self.budget,
            "number_of_actions": self.number_of_actions,
            "rule_on": self.rule_on,
        }

    @classmethod
    def blank(cls, spaces: Spaces, shape: dict[str, Any]) -> Self:
        """A model of this shape to read a saved one into."""
        del spaces
        fields = dict(shape)
        # Takes no memory, whatever number a file claims.
        empty = np.broadcast_to(np.ones(1), (fields.pop("queries"),))
        return cls(alpha=empty, beta=empty, **fields)

    @classmethod
    def pattern(cls, spaces: Spaces, shape: dict[str, Any]) -> Self:
        """As `blank`: in double precision, which JAX may not be set to."""
        return cls.blank(spaces, shape)
