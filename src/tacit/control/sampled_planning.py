"""The best soft policy for costs at a price on a tabular task, by sampling: PPO with entropy.

    maximise  E[sum_t r_t - nu c_t - temperature * log pi(a_t | s_t, t)]           (equation 4)

Entropy enters as a reward, so that the best policy is that of soft value iteration and its own
randomness is no exploration to be switched off: what `constrained_planning` computes, learned from
rollouts alone. Half of the worlds begin in any state at any step. From the start alone, a policy
that has found a way, or that to wait is cheap, stops trying others before it knows how to go them
well; the best policy is the same wherever one begins. A policy may also be asked for as an addition
to others that there are already: then what they do is no surprise, and what they leave out is one.
All functions are pure: many policies may be a `vmap` axis, which is what an accelerator is good
for.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from tacit.control import learner as learning
from tacit.control.compiled_training import Account, Run, roll_out
from tacit.control.conduct import side_by_side
from tacit.control.learner import Rollout
from tacit.control.ppo import PPO
from tacit.environments.tabular_world import TabularCompiled, TabularState

ELSEWHERE = 0.5
"""Share of the worlds that begin anywhere."""
ADDED = 0.1
"""How present a policy that is added counts beside others, wherever it goes."""


class Orders(NamedTuple):
    """What a policy is asked for.

    Fields:
        costs: of every query, a state or a pair.
        price: of cost, in rewards.
        others: rho(t, s, a) of those it is an addition to; zeros for none.
    """

    costs: Float[Array, " X"]
    price: Float[Array, ""]
    others: Float[Array, "H S A"]


@eqx.filter_jit
def soft_policies(
    task: TabularCompiled,
    settings: PPO,
    temperature: float,
    orders: Orders,
    keys: Key[Array, " n"],
) -> Float[Array, "n H S A"]:
    """`soft_policy` for n orders, in a leading axis of all their fields."""

    def learned(given: tuple[Orders, Key[Array, ""]]) -> Array:
        return soft_policy(task, settings, temperature, *given)

    return side_by_side(learned, (orders, keys))


def soft_policy(
    task: TabularCompiled,
    settings: PPO,
    temperature: float,
    orders: Orders,
    key: Key[Array, ""],
) -> Float[Array, "H S A"]:
    """Train a policy from the beginning; a rollout is as long as an episode."""
    start_key, world_key, run_key = jax.random.split(key, 3)
    seen = every_observation(task)
    learner = learning.start(
        seen.shape[-1], task.action_space, 1, task.horizon, settings, key=start_key
    )
    multiplier = learner.multiplier._replace(price=orders.price[None])
    state, observations = jax.vmap(task.reset)(jax.random.split(world_key, settings.worlds))
    zero = jnp.zeros(settings.worlds)
    account = Account(zero, zero, jnp.zeros(4))
    run = Run(learner._replace(multiplier=multiplier), state, observations, account)

    def iteration(run: Run, key: Key[Array, ""]) -> tuple[Run, None]:
        place_key, rollout_key, update_key = jax.random.split(key, 3)
        run, rollout = roll_out(task, placed(task, run, key=place_key), settings, key=rollout_key)
        own = run.learner.policy.log_probability(rollout.observations, rollout.actions)
        queries = queries_of(task, rollout, orders.costs.shape[0])
        rollout = rollout._replace(
            rewards=rollout.rewards + temperature * surprise(task, rollout, own, orders.others),
            costs=orders.costs[queries][..., None],
        )
        learner, _ = learning.learn(run.learner, rollout, settings, key=update_key)
        return run._replace(learner=learner), None

    run, _ = jax.lax.scan(iteration, run, jax.random.split(run_key, settings.iterations))
    policy: Any = run.learner.policy
    return jax.nn.softmax(policy.logits(seen))


def placed(task: TabularCompiled, run: Run, *, key: Key[Array, ""]) -> Run:
    """With the first of the worlds put anywhere; the others have just begun at the start."""
    number = int(ELSEWHERE * len(run.state.place))
    cells = jax.random.randint(key, (number,), 0, task.horizon * task.number_of_states)
    steps, places = jnp.divmod(cells, task.number_of_states)
    state = TabularState(
        run.state.place.at[:number].set(places), run.state.steps.at[:number].set(steps)
    )
    return run._replace(state=state, observations=jax.vmap(task.observe)(state))


def surprise(
    task: TabularCompiled,
    rollout: Rollout,
    own: Float[Array, "T n"],
    others: Float[Array, "H S A"],
) -> Float[Array, "T n"]:
    """-log of the chance of every action, for a policy that is added to others.

        chance(a | s, t) = (rho(t, s, a) + e pi(a | s, t)) / (sum_a rho(t, s, a) + e),  e = 0.1

    Alone, or where others never are, it is the policy's own. Where they always are it is nearly
    theirs, and the surprise the gradient of entropy in rho: what Frank and Wolfe maximise.

    Arguments:
        task: what it happened in.
        rollout: the steps.
        own: log pi of their actions.
        others: rho.
    """
    place = rollout.observations[..., : task.number_of_states].argmax(axis=-1)
    step = jnp.searchsorted(task.clock, rollout.observations[..., -1])
    there = others[step, place]
    theirs = jnp.take_along_axis(there, rollout.actions[..., None], axis=-1)[..., 0]
    present = there.sum(axis=-1)
    return -jnp.log((theirs + ADDED * jnp.exp(own)) / (present + ADDED))


def every_observation(task: TabularCompiled) -> Float[Array, "H S o"]:
    """What a policy sees in each state at each step."""
    states, horizon = task.number_of_states, task.horizon
    place = jnp.broadcast_to(jnp.eye(states), (horizon, states, states))
    clock = jnp.broadcast_to(task.clock[:horizon, None, None], (horizon, states, 1))
    return jnp.concatenate([place, clock], axis=-1)


def queries_of(task: TabularCompiled, rollout: Rollout, queries: int) -> Int[Array, "T n"]:
    """The number of the state, or of the pair, of every step."""
    place = rollout.observations[..., : task.number_of_states].argmax(axis=-1)
    actions = task.rewards.shape[1]
    return place if queries == task.number_of_states else place * actions + rollout.actions
