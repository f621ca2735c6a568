"""The method `likelihood`: votes are learned by the paper's gradient, with nothing sampled."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax
from jax.scipy.special import digamma
from jaxtyping import Array, Float

from tacit.argument_checks import check_choice
from tacit.control.planning import Dynamics, occupancy, soft_value_iteration
from tacit.environments.tabular import TabularTask
from tacit.inference.confidence.belief import (
    LEARNED_VOTES,
    LearnedVotes,
    beta_divergence,
    initial_weights,
    learned_votes,
)
from tacit.inference.confidence.quantile import QuantileTable
from tacit.inference.counts.counts import TableMethod
from tacit.inference.counts.model import VisitCounts

Objective = Literal["evidence", "quantile"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

STEPS = 200
ADAM = optax.adam(0.1)
PRIOR_WEIGHT = 1.0


class LearnedBelief(NamedTuple):
    """What the gradient ends in."""

    alpha: Float[Array, " X"]
    beta: Float[Array, " X"]
    gap: Array
    """Largest difference between the experts' and the model's visits: zero at the optimum of the
    data terms."""


@dataclass(frozen=True, kw_only=True)
class Likelihood(TableMethod):
    """The method `likelihood`: votes are learned by the paper's gradient, with nothing sampled.

    Fields:
        objective: `evidence`, a variational bound, or `quantile`, the paper's equation 8.
        votes: `independent`, two sigmoids (the paper), or `abstain`, a softmax with no opinion.
    """

    objective: Objective = "evidence"
    votes: LearnedVotes = "independent"

    name: ClassVar[str] = "likelihood"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("votes", self.votes, LEARNED_VOTES)

    @property
    def any_confidence(self) -> bool:
        """The paper's objective trains for one confidence."""
        return self.objective != "quantile"

    def belief(
        self, dynamics: Dynamics, counts: VisitCounts, *, task: TabularTask, confidence: float
    ) -> LearnedBelief:
        """Learn the votes; see `learn_votes`."""
        quantile = self.objective == "quantile"
        return learn_votes(
            dynamics,
            *counts,
            horizon=task.horizon,
            votes=self.votes,
            table=QuantileTable.build(1 - confidence) if quantile else None,
        )

    def facts(self, belief: LearnedBelief) -> dict[str, float]:
        """How far the model's visits are from the experts'."""
        return {"visit_gap": float(belief.gap)}


def log_feasibility(alpha: Array, beta: Array, table: QuantileTable | None) -> Array:
    """v(x), what stands for log phi(x) in the likelihood.

    With a table, objective `quantile`: log of the (1 - lambda)-quantile (equation 8). Without one,
    objective `evidence`: E[log phi] = digamma(alpha) - digamma(alpha + beta).
    """
    if table is not None:
        return jnp.log(table(alpha, beta))
    return digamma(alpha) - digamma(alpha + beta)


def divergence_from_prior(alpha: Array, beta: Array) -> Array:
    """KL(Beta(alpha, beta) || Beta(1, 1))."""
    return beta_divergence(alpha, beta, 1.0, 1.0)


@partial(jax.jit, static_argnames=("horizon", "votes", "steps"))
def learn_votes(
    dynamics: Dynamics,
    visitors: Float[Array, " X"],
    mean_visits: Float[Array, " X"],
    number: Array | float,
    *,
    horizon: int,
    votes: LearnedVotes,
    table: QuantileTable | None,
    steps: int = STEPS,
) -> LearnedBelief:
    """Maximise the likelihood of the demonstrations over the weights of the encoder (equation 8).

    The experts are modelled as p(tau) proportional to exp(r(tau) / temperature) * phi(tau)
    (equation 5 with phi in place of the indicator), so that

        gradient = E_experts[grad v] - E_policy[grad v]

    where the policy is soft-optimal for r + temperature * v. Both expectations are exact sums over
    occupancies, recomputed at every step: the importance weights of equations 12 and 13 are 1.
    Without a table (`evidence`) the bound also pays KL(belief || Beta(1, 1)) / N per query.

    Arguments:
        dynamics: the task.
        visitors: how many experts visited each query.
        mean_visits: steps that an expert spends at each query, on average.
        number: N.
        horizon: steps of an episode.
        votes: how the encoder votes.
        table: the quantile at 1 - lambda for objective `quantile`; None for `evidence`.
        steps: how many gradient steps.
    """

    def loss(weights: Array) -> tuple[Array, Array]:
        alpha, beta = learned_votes(weights, visitors, number, votes)
        value = log_feasibility(alpha, beta, table)
        gap = mean_visits - model_visits(dynamics, jax.lax.stop_gradient(value), horizon)
        likelihood = (gap * value).sum()
        if table is None:
            likelihood -= PRIOR_WEIGHT / number * divergence_from_prior(alpha, beta).sum()
        return -likelihood, jnp.abs(gap).max()

    def step(carry: tuple[Array, optax.OptState], _: None) -> tuple[tuple, None]:
        weights, state = carry
        updates, state = ADAM.update(jax.grad(loss, has_aux=True)(weights)[0], state)
        return (optax.apply_updates(weights, updates), state), None

    first = initial_weights(len(visitors), votes).astype(dynamics.rewards.dtype)
    (weights, _), _ = jax.lax.scan(step, (first, ADAM.init(first)), None, length=steps)
    return LearnedBelief(*learned_votes(weights, visitors, number, votes), loss(weights)[1])


def model_visits(dynamics: Dynamics, value: Float[Array, " X"], horizon: int) -> Float[Array, " X"]:
    """Expected steps at each query under the soft-optimal policy for r + temperature * v."""
    states, actions, _ = dynamics.transitions.shape
    spread = jnp.broadcast_to(value.reshape(states, -1), (states, actions))
    policy, _ = soft_value_iteration(
        dynamics.transitions,
        dynamics.rewards + dynamics.temperature * spread,
        horizon,
        dynamics.temperature,
    )
    pairs = occupancy(dynamics.transitions, dynamics.initial, policy).sum(axis=0)
    return pairs.reshape(-1) if len(value) > states else pairs.sum(axis=1)
