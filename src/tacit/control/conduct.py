"""What a policy does on a tabular task, seen from many episodes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tacit.environments.tabular_world import TabularCompiled, drawn

WATCHED, TOGETHER = 2**17, 2**10
"""Episodes in which a policy is watched, and how many of them run side by side: costs must be known
to a percent, as policies are compared by them, and most episodes cost nothing."""


class Conduct(NamedTuple):
    """What a policy does, in the mean over episodes.

    Fields:
        visits: share of the episodes that visited each query.
        presence: share of the episodes that are in each state at each step.
        cost: of an episode.
        reward: of an episode.
        soft_return: reward and entropy of an episode.
    """

    visits: Float[Array, " X"]
    presence: Float[Array, "H S"]
    cost: Float[Array, ""]
    reward: Float[Array, ""]
    soft_return: Float[Array, ""]


def side_by_side(function: Callable[[Any], Any], given: Any) -> Any:
    """`function` of every place of a leading axis: together on an accelerator.

    Elsewhere one after the other: on few cores nothing is gained, and XLA's threads wait for each
    other without end. (So they do where a program both trains and watches; each by itself is fine.)
    """
    together = jax.default_backend() != "cpu"
    return jax.vmap(function)(given) if together else jax.lax.map(function, given)


@eqx.filter_jit
def watch_policies(
    task: TabularCompiled,
    policies: Float[Array, "n H S A"],
    costs: Float[Array, "n X"],
    temperature: float,
) -> Conduct:
    """`watched` for n policies and the costs of queries for each."""
    return side_by_side(
        lambda given: watched(task, given[0], given[1], temperature), (policies, costs)
    )


def watched(
    task: TabularCompiled,
    policy: Float[Array, "H S A"],
    costs: Float[Array, " X"],
    temperature: float,
) -> Conduct:
    """What a policy does, from episodes with the same luck for all: it is not what differs."""
    (_, states, actions), queries = policy.shape, costs.shape[0]

    def watch(nothing: None, key: Key[Array, ""]) -> tuple[None, Conduct]:
        start_key, step_key = jax.random.split(key)
        place = drawn(task.cumulative_initial, jax.random.uniform(start_key, (TOGETHER,)))

        def step(
            now: tuple[Array, Array], given: tuple[Array, Key[Array, ""]]
        ) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
            (place, visited), (chances, key) = now, given
            luck = jax.random.uniform(key, (2, TOGETHER))
            action = drawn(jnp.cumsum(chances, axis=-1)[place, :-1], luck[0])
            asked = place if queries == states else place * actions + action
            told = (
                (place[:, None] == jnp.arange(states)).mean(axis=0),
                costs[asked].mean(),
                task.rewards[place, action].mean(),
                -jnp.log(chances[place, action]).mean(),
            )
            visited = visited | (asked[:, None] == jnp.arange(queries))
            return (drawn(task.cumulative[place, action], luck[1]), visited), told

        nowhere = jnp.zeros((TOGETHER, queries), bool)
        given = (policy, jax.random.split(step_key, task.horizon))
        (_, visited), told = jax.lax.scan(step, (place, nowhere), given)
        presence, cost, reward, surprise = told
        return nothing, Conduct(
            visits=visited.mean(axis=0),
            presence=presence,
            cost=cost.sum(),
            reward=reward.sum(),
            soft_return=reward.sum() + temperature * surprise.sum(),
        )

    keys = jax.random.split(jax.random.key(0), WATCHED // TOGETHER)
    _, conducts = jax.lax.scan(watch, None, keys)
    return jax.tree.map(lambda means: means.mean(axis=0), conducts)
