"""Of several policies one that does in each state, at each step, what the best of them would do.

    pi(. | s, t) = pi_k(. | s, t),   k the best of V_k(s, t),
    V_k(s, t) = E[sum of r - nu c - temperature * log pi_k, from there on]

It is worth at least as much as each of them, from everywhere (generalised policy improvement: by
induction from the last step). PPO leaves mistakes where it hardly ever comes, and each policy
others; all of them give up the last tenth of a wrong action slowly, so that a splice may also do
what a policy does, but surer of it.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.control.conduct import side_by_side
from tacit.environments.tabular_world import TabularCompiled, drawn

TRIES = 2**12
"""How often a policy acts in every state at every step, to find out what it is worth there."""
NEVER = 1e-30
SURER = 4.0
"""The power of the chances of all actions by which a policy is surer of what it does."""


class Outlook(NamedTuple):
    """What a policy earns and pays from each state at each step on.

    Fields:
        gain: reward and entropy.
        cost: of queries.
    """

    gain: Float[Array, "*n H S"]
    cost: Float[Array, "*n H S"]


@eqx.filter_jit
def outlooks(
    task: TabularCompiled,
    policies: Float[Array, "n H S A"],
    costs: Float[Array, "n X"],
    temperature: float,
) -> Outlook:
    """`outlook` of n policies with the costs of queries for each."""
    return side_by_side(
        lambda given: outlook(task, given[0], given[1], temperature), (policies, costs)
    )


def outlook(
    task: TabularCompiled,
    policy: Float[Array, "H S A"],
    costs: Float[Array, " X"],
    temperature: float,
) -> Outlook:
    """Learned backwards, from the last step to the first, with the same luck for all policies.

        V(s, t) = mean over tries of r - nu c - temperature * log pi + V(s', t + 1)

    Every try is one step of the policy; what comes after it has been learned before.
    """
    (horizon, states, actions), queries = policy.shape, costs.shape[0]
    place = jnp.broadcast_to(jnp.arange(states), (TRIES, states))

    def step(after: Outlook, given: tuple[Array, Key[Array, ""]]) -> tuple[Outlook, Outlook]:
        chances, key = given
        luck = jax.random.uniform(key, (2, TRIES, states))
        action = drawn(jnp.cumsum(chances, axis=-1)[place, :-1], luck[0])
        asked = place if queries == states else place * actions + action
        surprise = -jnp.log(jnp.maximum(chances[place, action], NEVER))
        earned = task.rewards[place, action] + temperature * surprise
        then = drawn(task.cumulative[place, action], luck[1])
        now = Outlook(
            (earned + after.gain[then]).mean(axis=0), (costs[asked] + after.cost[then]).mean(axis=0)
        )
        return now, now

    end = Outlook(jnp.zeros(states), jnp.zeros(states))
    keys = jax.random.split(jax.random.key(0), horizon)
    return jax.lax.scan(step, end, (policy, keys), reverse=True)[1]


def surer(policies: Float[np.ndarray, "*n A"]) -> Float[np.ndarray, "*n A"]:
    """Policies that do mostly what these do most."""
    powers = policies**SURER
    return powers / powers.sum(axis=-1, keepdims=True)


def spliced(
    policies: Float[np.ndarray, "k H S A"], values: Float[np.ndarray, "k H S"]
) -> Float[np.ndarray, "H S A"]:
    """In each state at each step what the policy does that is worth most from there.

    Arguments:
        policies: pi_k.
        values: V_k.
    """
    best = values.argmax(axis=0)
    return np.take_along_axis(policies, best[None, :, :, None], axis=0)[0]
