"""The belief of CA-ICRL as a constraint: votes of remembered experts, read at a confidence."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.inference.confidence.belief import Reading, feasibility, step_cost
from tacit.inference.constraint_model import (
    Actions,
    ConstraintModel,
    Evidence,
    Observations,
    Spaces,
)
from tacit.inference.encoder.model import ConfidenceModel
from tacit.inference.encoder.votes import ExpertMemory, PolicyMemory
from tacit.inference.inputs import Inputs, Steps


@dataclass(frozen=True)
class BeliefShape:
    """What decides the shapes of a `BeliefModel`; see `ConfidenceModel.start`.

    Fields:
        experts: S, how many are remembered.
        tokens: M, steps remembered of each.
        rounds, windows: remembered of past policies, for votes `visits`; 0 for the other votes.
    """

    votes: Any
    granularity: Any
    encoder: Any
    width: int
    heads: int
    layers: int
    experts: int
    tokens: int
    rounds: int
    windows: int


class BeliefModel(ConstraintModel):
    """Beta(alpha, beta) over the feasibility of a step, from votes; and how a cost is read off it.

    With granularity `trajectory` the last but one axis of the arrays is time. The feasibility of
    step t is then that of the trajectory up to t, and its cost is what it takes away from it, so
    that costs add up to one minus the feasibility of the whole:

        cost_t = phi*(tau_0..t-1) - phi*(tau_0..t),   phi* of nothing = 1.
    """

    model: ConfidenceModel
    memory: ExpertMemory
    policies: PolicyMemory | None
    reading: Reading = eqx.field(static=True)
    budget: float = eqx.field(static=True)
    made: BeliefShape = eqx.field(static=True)

    name: ClassVar[str] = "belief"
    promises: ClassVar[bool] = True

    @property
    def inputs(self) -> Inputs:
        """How steps become features."""
        return self.model.inputs

    @property
    def over_time(self) -> bool:
        """Whether a step is judged by what came before it."""
        return self.model.granularity == "trajectory"

    def belief(
        self,
        observations: Observations,
        actions: Actions,
        begins: Bool[Array, "*n"] | None = None,
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Alpha and beta of every step; `begins` tells where trajectories begin within windows."""
        steps = Steps(observations, actions, jnp.ones(observations.shape[:-1], bool))
        return self.model.belief_in_chunks(steps, self.memory, self.policies, begins=begins)

    def feasibility(
        self,
        observations: Observations,
        actions: Actions,
        confidence: Array | float,
        begins: Bool[Array, "*n"] | None = None,
    ) -> Float[Array, "*n"]:
        """Phi*: feasibility at the confidence, by the reading."""
        return feasibility(*self.belief(observations, actions, begins), confidence, self.reading)

    def cost(
        self,
        observations: Observations,
        actions: Actions,
        confidence: Array | float,
        begins: Bool[Array, "*n"] | None = None,
    ) -> Float[Array, "*n"]:
        """What every step costs."""
        if not self.over_time:
            belief = self.belief(observations, actions)
            return step_cost(*belief, confidence, self.reading, self.budget)
        now = self.feasibility(observations, actions, confidence, begins)
        before = jnp.concatenate([jnp.ones_like(now[..., :1]), now[..., :-1]], axis=-1)
        if begins is not None:
            before = jnp.where(begins, 1.0, before)
        return before - now

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int) -> Evidence:
        """Who speaks for and against each step, and by which of their own."""
        present = jnp.ones(observations.shape[:-1], bool)
        steps = Steps(jnp.asarray(observations), jnp.asarray(actions), present)
        return self.model.evidence(steps, self.memory, self.policies, most=most)

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to make a model like this one."""
        return {**asdict(self.made), "reading": self.reading, "budget": self.budget}

    @classmethod
    def blank(cls, spaces: Spaces, shape: dict[str, Any]) -> "BeliefModel":
        """A model of this shape to read a saved one into."""
        inputs = Inputs.blank(spaces.observation_size, spaces.action)
        fields = dict(shape)
        reading, budget = fields.pop("reading"), fields.pop("budget")
        return new_belief(inputs, BeliefShape(**fields), reading, budget, key=jax.random.key(0))


def new_model(inputs: Inputs, made: BeliefShape, number: int, *, key: Any) -> ConfidenceModel:
    """A model without an opinion, for `number` experts in all."""
    return ConfidenceModel.start(
        inputs,
        number,
        votes=made.votes,
        granularity=made.granularity,
        encoder=made.encoder,
        width=made.width,
        heads=made.heads,
        layers=made.layers,
        key=key,
    )


def new_belief(
    inputs: Inputs, made: BeliefShape, reading: Reading, budget: float, *, key: Any
) -> BeliefModel:
    """A belief that remembers nobody."""
    model = new_model(inputs, made, max(1, made.experts), key=key)
    memory = model.remember(
        blank_steps(inputs, (made.experts, made.tokens)),
        jnp.zeros(made.experts, jnp.int32),
        jnp.zeros((made.experts, made.tokens), jnp.int32),
        made.experts,
    )
    policies = None
    if made.rounds:
        windows = blank_steps(inputs, (made.rounds, made.windows, made.tokens))
        policies = model.remember_policies(windows, jnp.zeros(made.rounds, bool))
    return BeliefModel(model, memory, policies, reading, budget, made)


def blank_steps(inputs: Inputs, shape: tuple[int, ...]) -> Steps:
    """Steps that are not there."""
    if inputs.number_of_actions is None:
        actions = jnp.zeros((*shape, inputs.action_centre.shape[0]))
    else:
        actions = jnp.zeros(shape, jnp.int32)
    return Steps(jnp.zeros((*shape, inputs.centre.shape[0])), actions, jnp.zeros(shape, bool))
