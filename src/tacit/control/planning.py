"""Exact constrained control: the best soft policy whose expected cost stays within a budget."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tacit.control.soft_planning import occupancy, soft_value_iteration
from tacit.environments.tabular import TabularTask

SLACK = 0.05
SMALLEST, LARGEST = 1e-6, 1e5
HALVINGS = 26


class Dynamics(NamedTuple):
    """What forward control needs to know of a tabular task, as arrays."""

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
    """A policy for every step, the multiplier behind it, and what it costs in expectation."""

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
    dynamics: Dynamics,
    costs: Float[Array, "S A"],
    budget: Array | float,
    horizon: int,
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
