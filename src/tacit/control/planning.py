"""Exact control on tabular tasks: soft value iteration, occupancy, violation, budgets of cost.

All functions are pure and take arrays, so that `jax.vmap` adds data sets, confidence levels or
constraints as an axis. `S` states, `A` actions, `H` steps, `X` queries (states or pairs).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tacit.environments.tabular import TabularTask

SLACK = 0.05
SMALLEST, LARGEST = 1e-6, 1e5
HALVINGS = 26


def soft_value_iteration(
    transitions: Float[Array, "S A S"],
    rewards: Float[Array, "S A"],
    horizon: int,
    temperature: Array | float = 1.0,
) -> tuple[Float[Array, "H S A"], Float[Array, "H S"]]:
    """The policy that maximises E[reward] + temperature * entropy over all steps (equation 2).

        Q_t(s, a) = r(s, a) + sum_s' P(s' | s, a) V_{t+1}(s'),   V_H = 0
        V_t(s)    = temperature * log sum_a exp(Q_t(s, a) / temperature)
        pi_t(a | s) = exp((Q_t(s, a) - V_t(s)) / temperature)

    A cost enters as `rewards - multiplier * costs` (the Lagrangian of equation 4).

    Returns:
        The policy for each step and the soft values V_t.
    """
    states, actions, _ = transitions.shape
    flat = transitions.reshape(states * actions, states)

    def backward(value: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        quality = rewards + (flat @ value).reshape(states, actions)
        value = temperature * jax.nn.logsumexp(quality / temperature, axis=1)
        return value, (jax.nn.softmax(quality / temperature, axis=1), value)

    last = jnp.zeros(states, dtype=rewards.dtype)
    _, (policy, values) = jax.lax.scan(backward, last, None, length=horizon, reverse=True)
    return policy, values


def occupancy(
    transitions: Float[Array, "S A S"], initial: Float[Array, " S"], policy: Float[Array, "H S A"]
) -> Float[Array, "H S A"]:
    """P(s_t = s, a_t = a) for every step t."""

    def forward(state: Array, step_policy: Array) -> tuple[Array, Array]:
        pairs = state[:, None] * step_policy
        return jnp.einsum("sa,san->n", pairs, transitions), pairs

    return jax.lax.scan(forward, initial, policy)[1]


def violation_probability(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    policy: Float[Array, "H S A"],
    costs: Float[Array, "S A"],
) -> Float[Array, ""]:
    """P(at least one step of the episode has a cost above zero), exactly.

    Follows the probability mass that has not violated yet; the mass missing at the end violated.
    """
    clean = (costs <= 0).astype(transitions.dtype)

    def forward(state: Array, step_policy: Array) -> tuple[Array, None]:
        return jnp.einsum("sa,san->n", state[:, None] * step_policy * clean, transitions), None

    survivors, _ = jax.lax.scan(forward, initial, policy)
    return jnp.clip(1 - survivors.sum(), 0, 1)


def visit_probability(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    policy: Float[Array, "H S A"],
    *,
    on_pairs: bool = False,
) -> Float[Array, " X"]:
    """P(the episode visits x at least once), for every state x (or pair, with `on_pairs`).

    Row x of the carried matrix is the distribution over states of the episodes that have not
    visited x so far; each step removes the mass that visits x now.
    """
    states, actions, _ = transitions.shape
    queries = jnp.arange(states * actions if on_pairs else states)
    place = queries // actions if on_pairs else queries

    def forward(waiting: Array, step_policy: Array) -> tuple[Array, None]:
        step = jnp.einsum("sa,san->sn", step_policy, transitions)
        here = waiting[queries, place]
        if on_pairs:
            leaving = (here * step_policy.reshape(-1))[:, None] * transitions.reshape(-1, states)
        else:
            leaving = here[:, None] * step
        return waiting @ step - leaving, None

    start = jnp.broadcast_to(initial, (len(queries), states))
    waiting, _ = jax.lax.scan(forward, start, policy)
    return jnp.clip(1 - waiting.sum(axis=1), 0, 1)


class Dynamics(NamedTuple):
    """The parts of a tabular task that forward control needs, as arrays."""

    transitions: Float[Array, "S A S"]
    rewards: Float[Array, "S A"]
    initial: Float[Array, " S"]
    temperature: Float[Array, ""]

    @classmethod
    def of(cls, task: TabularTask) -> "Dynamics":
        """The arrays of `task`, in JAX's present precision."""
        return cls(
            jnp.asarray(task.transitions),
            jnp.asarray(task.rewards),
            jnp.asarray(task.initial),
            jnp.asarray(float(task.temperature)),
        )


class Plan(NamedTuple):
    """A policy for every step, its multiplier, and its expected cost per episode."""

    policy: Float[Array, "H S A"]
    multiplier: Float[Array, ""]
    cost: Float[Array, ""]


def attainable_budget(budget: Array | float, least: Array | float) -> Array:
    """The budget, or a little more than the least cost where no policy is within it.

    Slippery ground, or a constraint so tight that even the most careful policy leaves it, make a
    budget impossible. Then it is raised just above the least cost there is, by 5 % of it or by the
    budget, whichever is less: as careful as possible, and among such policies the best.
    """
    return jnp.maximum(budget, least + jnp.minimum(SLACK * least, budget))


def penalised_plan(
    dynamics: Dynamics, costs: Float[Array, "S A"], multiplier: Array | float, horizon: int
) -> Plan:
    """The soft-optimal policy for reward - multiplier * cost, and its expected cost per episode."""
    transitions, rewards, initial, temperature = dynamics
    policy, _ = soft_value_iteration(
        transitions, rewards - multiplier * costs, horizon, temperature
    )
    cost = (occupancy(transitions, initial, policy) * costs).sum()
    return Plan(policy, jnp.asarray(multiplier, dtype=rewards.dtype), cost)


@partial(jax.jit, static_argnames="horizon")
def constrained_plan(
    dynamics: Dynamics, costs: Float[Array, "S A"], budget: Array | float, horizon: int
) -> Plan:
    """Equation 4 solved exactly: max E[reward] + temperature * entropy s.t. E[cost] <= budget.

    With entropy the problem is strictly concave in the occupancy, so the optimum is the
    soft-optimal policy for reward - multiplier * cost at the smallest multiplier that meets the
    budget. The cost falls as the multiplier grows: bisection on its logarithm finds it.

    A budget that the dynamics cannot meet is raised: see `attainable_budget`. The paper writes the
    constraint as E[phi*] <= epsilon; it means the cost 1 - phi*.
    """
    rewards = dynamics.rewards
    stakes = horizon * (
        rewards.max() - rewards.min() + dynamics.temperature * np.log(rewards.shape[1])
    )
    dearest = jnp.where(costs.max() > 0, costs.max(), 1.0)
    smallest, largest = jnp.log(SMALLEST * stakes / dearest), jnp.log(LARGEST * stakes / dearest)
    least = penalised_plan(dynamics, costs, jnp.exp(largest), horizon).cost
    budget = attainable_budget(budget, least)

    def halve(_: Array | int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        kept = penalised_plan(dynamics, costs, jnp.exp(middle), horizon).cost <= budget
        return jnp.where(kept, low, middle), jnp.where(kept, middle, high)

    _, high = jax.lax.fori_loop(0, HALVINGS, halve, (smallest, largest))
    free = penalised_plan(dynamics, costs, 0.0, horizon).cost <= budget
    return penalised_plan(dynamics, costs, jnp.where(free, 0.0, jnp.exp(high)), horizon)
