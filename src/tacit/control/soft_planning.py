"""Exact control on tabular tasks: soft value iteration, occupancy, violation.

All functions are pure and take arrays, so that `jax.vmap` adds data sets, confidence levels or
constraints as an axis. `S` states, `A` actions, `H` steps, `X` queries (states or pairs).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tacit.errors import ArgumentError


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


def stationary_soft_value_iteration(
    transitions: Float[Array, "S A S"],
    rewards: Float[Array, "S A"],
    discount: Array | float,
    temperature: Array | float = 1.0,
    tolerance: Array | float = 1e-10,
) -> tuple[Float[Array, "S A"], Float[Array, " S"]]:
    """The infinite-horizon case: the fixed point of the soft Bellman operator.

    Q(s, a) = r(s, a) + discount * sum_s' P(s' | s, a) V(s'), V and pi as in
    `soft_value_iteration`. Stops when V moves by less than `tolerance * (1 - discount)` per sweep,
    which bounds the error of V by `tolerance`, or by no more than rounding; `discount` must be
    below 1, and calls for float64 when it is close to 1.
    """
    if isinstance(discount, int | float) and not 0 <= discount < 1:
        raise ArgumentError(f"discount must lie in [0, 1), not {discount!r}")
    states, actions, _ = transitions.shape
    flat = transitions.reshape(states * actions, states)

    def quality_of(value: Array) -> Array:
        return rewards + discount * (flat @ value).reshape(states, actions)

    def sweep(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        value, _ = carry
        updated = temperature * jax.nn.logsumexp(quality_of(value) / temperature, axis=1)
        return updated, jnp.max(jnp.abs(updated - value))

    start = (jnp.zeros(states, dtype=rewards.dtype), jnp.asarray(jnp.inf, dtype=rewards.dtype))

    def moving(carry: tuple[Array, Array]) -> Array:
        value, change = carry
        rounding = 4 * jnp.finfo(rewards.dtype).eps * jnp.abs(value).max()
        return change > jnp.maximum(tolerance * (1 - discount), rounding)

    value, _ = jax.lax.while_loop(moving, sweep, start)
    return jax.nn.softmax(quality_of(value) / temperature, axis=1), value


def occupancy(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    policy: Float[Array, "H S A"],
) -> Float[Array, "H S A"]:
    """P(s_t = s, a_t = a) for every step t."""

    def forward(state: Array, step_policy: Array) -> tuple[Array, Array]:
        pairs = state[:, None] * step_policy
        return jnp.einsum("sa,san->n", pairs, transitions), pairs

    return jax.lax.scan(forward, initial, policy)[1]


def discounted_occupancy(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    policy: Float[Array, "S A"],
    discount: Array | float,
) -> Float[Array, "S A"]:
    """sum_t discount^t P(s_t = s, a_t = a) of a stationary policy, by one linear solve."""
    step = jnp.einsum("sa,san->sn", policy, transitions)
    states = jnp.linalg.solve(jnp.eye(len(step)) - discount * step.T, initial)
    return states[:, None] * policy


def violation_probability(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    policy: Float[Array, "H S A"],
    costs: Float[Array, "S A"],
) -> Float[Array, ""]:
    """P(at least one step of the episode has a cost above zero), exactly.

    Follows the probability mass that has not violated yet; what is missing at the end violated.
    """
    clean = (costs <= 0).astype(transitions.dtype)

    def forward(state: Array, step_policy: Array) -> tuple[Array, None]:
        return jnp.einsum("sa,san->n", state[:, None] * step_policy * clean, transitions), None

    survivors, _ = jax.lax.scan(forward, initial, policy)
    return jnp.clip(1 - survivors.sum(), 0, 1)


def stationary_violation_probability(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    policy: Float[Array, "S A"],
    costs: Float[Array, "S A"],
    discount: Array | float,
) -> Float[Array, ""]:
    """P(a step with a cost above zero happens before the episode stops).

    After every step the episode goes on with probability `discount`: the usual reading of a
    discount as a random horizon.
    """
    bad = (costs > 0).astype(transitions.dtype)
    step = jnp.einsum("sa,san->sn", policy * (1 - bad), transitions)
    hit = (policy * bad).sum(axis=1)
    return initial @ jnp.linalg.solve(jnp.eye(len(step)) - discount * step, hit)


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
