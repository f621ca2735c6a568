"""The best soft policy for costs at a price on a tabular task, by sampling: PPO with entropy.

    maximise  E[sum_t r_t - nu c_t - temperature * log pi(a_t | s_t, t)]           (equation 4)

Entropy enters as a reward, so that the best policy is that of soft value iteration and its own
randomness is no exploration to be switched off: what `constrained_planning` computes, learned from
rollouts alone. The price nu is given, or sought in dual ascent until cost is within a budget. All
functions are pure: many rounds may be a `vmap` axis, which is what an accelerator is good for.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from tacit.control import learner as learning
from tacit.control.compiled_training import Account, Run, roll_out
from tacit.control.conduct import side_by_side
from tacit.control.learner import Learner, Rollout
from tacit.control.ppo import PPO
from tacit.environments.tabular_compiled import TabularCompiled

REST = 0.05
"""Share of a round for which an imitation rests, until the critics know it."""
LEAST_PRICE = 1.0
"""Below, a policy takes to what costs before the price can rise again, and does not find back."""

CLONING_STEPS = 300
OPEN_MIND = 0.1
"""Share of an imitation's actions that are any: what experts never did must remain possible."""
CLONING = optax.adam(3e-3)


class Orders(NamedTuple):
    """What a round is to do.

    Fields:
        costs: of every query, a state or a pair.
        budget: expected cost of an episode that is allowed.
        price: of cost at the start.
        firm: whether the price stays as it is, and the budget does not matter.
        imitate: whether the policy begins as the experts do, or knowing nothing.
        experts: how often experts took each action, at each step in each state.
    """

    costs: Float[Array, " X"]
    budget: Float[Array, ""]
    price: Float[Array, ""]
    firm: Bool[Array, ""]
    imitate: Bool[Array, ""]
    experts: Float[Array, "H S A"]


class Played(NamedTuple):
    """What came of a round.

    Fields:
        policy: at the end.
        price: of cost at the end.
    """

    policy: Float[Array, "H S A"]
    price: Float[Array, ""]


@eqx.filter_jit
def play_rounds(
    task: TabularCompiled,
    settings: PPO,
    temperature: float,
    orders: Orders,
    keys: Key[Array, " n"],
) -> Played:
    """`play_round` for n orders, in a leading axis of all their fields."""

    def play(given: tuple[Orders, Key[Array, ""]]) -> Played:
        return play_round(task, settings, temperature, *given)

    return side_by_side(play, (orders, keys))


def play_round(
    task: TabularCompiled,
    settings: PPO,
    temperature: float,
    orders: Orders,
    key: Key[Array, ""],
) -> Played:
    """Train a policy from the beginning; its rollouts are whole episodes."""
    start_key, world_key, run_key = jax.random.split(key, 3)
    seen, queries = every_observation(task), orders.costs.shape[0]
    learner = first_learner(task, settings, orders, seen, key=start_key)
    state, observations = jax.vmap(task.reset)(jax.random.split(world_key, settings.worlds))
    zero = jnp.zeros(settings.worlds)
    run = Run(learner, state, observations, Account(zero, zero, jnp.zeros(4)))

    def iteration(run: Run, given: tuple[Key[Array, ""], Array]) -> tuple[Run, None]:
        key, place = given
        rollout_key, update_key = jax.random.split(key)
        before = run.learner
        run, rollout = roll_out(task, run, settings, key=rollout_key)
        surprise = -before.policy.log_probability(rollout.observations, rollout.actions)
        rollout = rollout._replace(
            rewards=rollout.rewards + temperature * surprise,
            costs=orders.costs[queries_of(task, rollout, queries)][..., None],
        )
        learner, _ = learning.learn(before, rollout, settings, key=update_key)
        resting = orders.imitate & (place < REST * settings.iterations)
        return run._replace(learner=rested(learner, before, resting, orders.firm)), None

    keys = jax.random.split(run_key, settings.iterations)
    run, _ = jax.lax.scan(iteration, run, (keys, jnp.arange(settings.iterations)))
    policy: Any = run.learner.policy
    return Played(jax.nn.softmax(policy.logits(seen)), run.learner.multiplier.price[0])


def every_observation(task: TabularCompiled) -> Float[Array, "H S o"]:
    """What a policy sees in each state at each step."""
    states, horizon = task.number_of_states, task.horizon
    place = jnp.broadcast_to(jnp.eye(states), (horizon, states, states))
    clock = jnp.broadcast_to(task.clock[:horizon, None, None], (horizon, states, 1))
    return jnp.concatenate([place, clock], axis=-1)


def first_learner(
    task: TabularCompiled,
    settings: PPO,
    orders: Orders,
    seen: Float[Array, "H S o"],
    *,
    key: Key[Array, ""],
) -> Learner:
    """One that knows nothing, or as much as the experts show."""
    learner = learning.start(seen.shape[-1], task.action_space, 1, task.horizon, settings, key=key)
    policy = jax.lax.cond(
        orders.imitate,
        lambda: imitation(learner.policy, orders.experts, seen),
        lambda: learner.policy,
    )
    price = learner.multiplier._replace(price=orders.price[None], allowance=orders.budget[None])
    return learner._replace(policy=policy, multiplier=price)


def imitation(policy: Any, experts: Float[Array, "H S A"], seen: Float[Array, "H S o"]) -> Any:
    """A policy that does what the experts did, and a little of everything else."""
    chosen = experts / jnp.maximum(experts.sum(), 1.0)
    anything = chosen.mean(axis=-1, keepdims=True)
    target = (1 - OPEN_MIND) * chosen + OPEN_MIND * anything

    def step(now: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        policy, state = now

        def surprise(policy: Any) -> Array:
            return -(target * jax.nn.log_softmax(policy.logits(seen))).sum()

        change, state = CLONING.update(jax.grad(surprise)(policy), state)
        return (optax.apply_updates(policy, change), state), None

    return jax.lax.scan(step, (policy, CLONING.init(policy)), None, length=CLONING_STEPS)[0][0]


def queries_of(task: TabularCompiled, rollout: Rollout, queries: int) -> Int[Array, "T n"]:
    """The number of the state, or of the pair, of every step."""
    place = rollout.observations[..., : task.number_of_states].argmax(axis=-1)
    actions = task.rewards.shape[1]
    return place if queries == task.number_of_states else place * actions + rollout.actions


def rested(
    learner: Learner, before: Learner, resting: Bool[Array, ""], firm: Bool[Array, ""]
) -> Learner:
    """The learner after an update, but policy and price as before where it rests or is firm."""

    def kept(after: Any, old: Any, keep: Bool[Array, ""]) -> Any:
        return jax.tree.map(lambda new, was: jnp.where(keep, was, new), after, old)

    price = learner.multiplier
    price = price._replace(price=jnp.maximum(price.price, LEAST_PRICE))
    return learner._replace(
        policy=kept(learner.policy, before.policy, resting),
        policy_optimiser=kept(learner.policy_optimiser, before.policy_optimiser, resting),
        multiplier=kept(price, before.multiplier, resting | firm),
    )
