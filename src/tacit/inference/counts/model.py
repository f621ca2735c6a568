"""The queries of a table: which of them demonstrations visit, and the belief about each."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError, DemonstrationError
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


class VisitCounts(NamedTuple):
    """What inference needs to know of N demonstrations, or of D data sets of N each.

    Fields:
        visitors: [X] or [D, X] how many demonstrations visited each query.
        mean_visits: [X] or [D, X] steps spent there per demonstration.
        number: N.
    """

    visitors: Any
    mean_visits: Any
    number: Any

    @classmethod
    def of(cls, task: TabularTask, data_sets: list[Trajectories]) -> "VisitCounts":
        """Count the visits of data sets of one size."""
        return cls.of_visits([visits_of(task, data) for data in data_sets])

    @classmethod
    def of_visits(cls, visits: list[np.ndarray]) -> "VisitCounts":
        """From [N, X] visits per data set (see `visits_of`)."""
        if len({len(steps) for steps in visits}) != 1:
            raise ArgumentError("data sets must be there and hold equally many demonstrations")
        stacked = np.stack(visits)
        return cls((stacked > 0).sum(axis=1).astype(float), stacked.mean(axis=1), stacked.shape[1])

    def as_arrays(self) -> "VisitCounts":
        """The same for JAX, in its present precision."""
        visitors, mean_visits = jnp.asarray(self.visitors), jnp.asarray(self.mean_visits)
        return VisitCounts(visitors, mean_visits, float(self.number))


def visits_of(task: TabularTask, demonstrations: Trajectories) -> np.ndarray:
    """[N, X] how many steps each demonstration spent at each query."""
    check_trajectories(demonstrations)
    states, actions = demonstrations.observations, demonstrations.actions
    for field, array, size in (
        ("observations", states, task.number_of_states),
        ("actions", actions, task.number_of_actions),
    ):
        if array.shape[2] != 1 or array.dtype.kind not in "iu":
            raise DemonstrationError(
                f"{field}: {task.name} has whole numbers, one per step, but the demonstrations "
                f"have {array.shape[2]} x {array.dtype}"
            )
        outside = np.argwhere((array < 0) | (array >= size))
        if len(outside):
            episode, step, _ = outside[0]
            raise DemonstrationError(
                f"{field}: episode {episode}, step {step} is {array[tuple(outside[0])]}, "
                f"but {task.name} has only 0 to {size - 1}"
            )
    if demonstrations.lengths.max() > task.horizon:
        episode = int(np.argmax(demonstrations.lengths))
        raise DemonstrationError(
            f"episode {episode} has {demonstrations.lengths[episode]} steps, "
            f"but the horizon of {task.name} is {task.horizon}"
        )
    check_moves(task, demonstrations)
    queries = task.queries(states[:, :-1, 0], actions[:, :, 0])
    episodes = np.broadcast_to(np.arange(len(queries))[:, None], queries.shape)
    visits = np.zeros((len(queries), task.number_of_queries))
    np.add.at(visits, (episodes[demonstrations.mask], queries[demonstrations.mask]), 1.0)
    return visits


def check_moves(task: TabularTask, demonstrations: Trajectories) -> None:
    """Every step must be possible in the task: a sign that the data belong to it."""
    states, actions = demonstrations.observations[:, :, 0], demonstrations.actions[:, :, 0]
    probability = task.transitions[states[:, :-1], actions, states[:, 1:]]
    impossible = np.argwhere((probability == 0) & demonstrations.mask)
    if len(impossible):
        episode, step = impossible[0]
        raise DemonstrationError(
            f"episode {episode}, step {step}: {task.name} never moves from state "
            f"{states[episode, step]} to {states[episode, step + 1]} by action "
            f"{actions[episode, step]}; are these demonstrations of another task?"
        )


def check_experts(demonstrations: Trajectories, *, proofs: bool) -> None:
    """They must be demonstrations; a warning if they show violations that would count as proof."""
    check_trajectories(demonstrations)
    if proofs and demonstrations.costs is not None and demonstrations.violated.any():
        warnings.warn(
            f"{demonstrations.violated.sum()} demonstrations have steps with a cost, which votes "
            "'visits' takes as proof that they are allowed: leave them out (take), or use "
            "votes='visits-fallible'",
            stacklevel=5,
        )


def check_trajectories(demonstrations: object) -> None:
    """Raise an error unless these are demonstrations."""
    if not isinstance(demonstrations, Trajectories):
        raise ArgumentError(f"demonstrations must be Trajectories, not {type(demonstrations)}")
