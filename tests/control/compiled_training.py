"""Train on a pure-JAX task in one compiled loop, with seeds as an axis."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.argument_checks import check_seed
from tacit.control import learner as learning
from tacit.control.actor import Actor
from tacit.control.learner import Learner, Progress, Rollout
from tacit.control.ppo import update_critics, update_policy
from tacit.control.settings import PPO
from tacit.environments.jax_world import JaxWorld, autoreset
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, DivergenceError

Cost = Callable[[Rollout], Float[Array, "T n k"]]


class Account(NamedTuple):
    """Sums over the episodes of n worlds: [n] of those running, [4] of those that ended.

    `ended` holds the number of episodes that ended in this rollout and, summed over them, reward,
    feasible reward (0 if violated) and violations.
    """

    reward: Float[Array, " n"]
    violated: Float[Array, " n"]
    ended: Float[Array, " 4"]


class Run(NamedTuple):
    """The state of a compiled training run."""

    learner: Learner
    state: Any
    observations: Float[Array, "n o"]
    account: Account


class Trained(NamedTuple):
    """The result of training, with an axis of seeds in front.

    Fields:
        learner: of every seed, at the end.
        curves: name -> [seeds, iterations]; reward, feasible_reward and violation are means over
            the episodes that ended in an iteration, NaN where none did.
    """

    learner: Learner
    curves: dict[str, Float[np.ndarray, "seeds iterations"]]

    def actor(self, place: int, task: JaxWorld, settings: PPO) -> Actor:
        """The policy of one of the seeds, by its place among them."""
        one = jax.tree.map(lambda leaf: leaf[place], self.learner)
        return Actor.of(one, task.action_space, settings)


def train_compiled(
    task: JaxWorld,
    settings: PPO,
    seeds: Sequence[int],
    *,
    cost: Cost | None = None,
    constraints: int = 1,
) -> Trained:
    """Train by PPO-Lagrange for all seeds at once: rollouts and updates in one program.

    Arguments:
        task: a task of pure functions, see `JaxWorld`.
        settings: of PPO.
        seeds: one run for each. A run does not depend on the other seeds, except for rounding.
        cost: a pure function of a rollout that gives the costs to learn from, [T, n, k]; None for
            the task's true cost. Curves always show true violations.
        constraints: k of `cost`.
    """
    if isinstance(task, TabularTask | SimulatedTask):
        raise ArgumentError(
            f"{task.name} is no pure-JAX task: see tacit.environments.tabular_world for tables, "
            "and tacit.train_expert for simulators"
        )
    if not isinstance(seeds, Sequence) or not len(seeds):
        raise ArgumentError(f"seeds must be a list with a seed for every run, not {seeds!r}")
    for seed in seeds:
        check_seed(seed)
    number = len(task.constraints) if cost is None else constraints
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    learner, progress, ended = many_runs(task, settings, cost, number, keys)
    episodes, reward, feasible, violated = np.moveaxis(np.asarray(ended), -1, 0)
    with np.errstate(invalid="ignore"):
        curves = {
            "reward": reward / episodes,
            "feasible_reward": feasible / episodes,
            "violation": violated / episodes,
            "cost": np.asarray(progress.costs).sum(axis=-1),
            "multiplier": np.asarray(progress.prices).sum(axis=-1),
            "kl": np.asarray(progress.kl),
            "entropy": np.asarray(progress.entropy),
        }
    check_finite(task, seeds, settings, curves["kl"])
    return Trained(learner, curves)


@eqx.filter_jit
def many_runs(
    task: JaxWorld,
    settings: PPO,
    cost: Cost | None,
    constraints: int,
    keys: Key[Array, " seeds"],
) -> tuple[Learner, Progress, Float[Array, "seeds iterations 4"]]:
    """`one_run` with an axis of seeds."""
    return jax.vmap(lambda key: one_run(task, settings, cost, constraints, key))(keys)


def one_run(
    task: JaxWorld, settings: PPO, cost: Cost | None, constraints: int, key: Key[Array, ""]
) -> tuple[Learner, Progress, Float[Array, "iterations 4"]]:
    """One training run from its key."""
    start_key, world_key, run_key = jax.random.split(key, 3)
    learner = learning.start(
        task.observation_space.shape[0],
        task.action_space,
        constraints,
        task.horizon,
        settings,
        key=start_key,
    )
    state, observations = jax.vmap(task.reset)(jax.random.split(world_key, settings.worlds))
    zero = jnp.zeros(settings.worlds)
    run = Run(learner, state, observations, Account(zero, zero, jnp.zeros(4)))

    def iteration(run: Run, key: Key[Array, ""]) -> tuple[Run, tuple[Progress, Array]]:
        rollout_key, update_key = jax.random.split(key)
        run, rollout = roll_out(task, run, settings, key=rollout_key)
        if cost is not None:
            taken = rollout._replace(actions=bounded(task, rollout.actions))
            rollout = rollout._replace(costs=checked_costs(cost(taken), rollout, constraints))
        learner, progress = learn(run.learner, rollout, settings, key=update_key)
        return run._replace(learner=learner), (progress, run.account.ended)

    keys = jax.random.split(run_key, settings.iterations)
    run, (progress, ended) = jax.lax.scan(iteration, run, keys)
    return run.learner, progress, ended


def learn(
    learner: Learner, rollout: Rollout, settings: PPO, *, key: Key[Array, ""]
) -> tuple[Learner, Progress]:
    """One whole update as one pure function, for loops that are compiled from end to end."""
    policy_key, critic_key = jax.random.split(key)
    learner, batch = learning.prepare(learner, rollout, settings)
    policy = update_policy(
        learner.policy,
        learner.policy_optimiser,
        batch,
        learner.multiplier.price,
        settings.rate(learner.updates),
        settings,
        key=policy_key,
    )
    critics = update_critics(
        learner.critics,
        learner.critic_optimiser,
        batch,
        settings.rate(learner.updates),
        settings,
        key=critic_key,
    )
    return learning.finish(learner, rollout, batch, policy, critics)


def roll_out(
    task: JaxWorld, run: Run, settings: PPO, *, key: Key[Array, ""]
) -> tuple[Run, Rollout]:
    """Step all worlds with the present policy, as one scan."""
    policy, observed = run.learner.policy, run.learner.observed
    continued = jax.vmap(autoreset(task))

    def step(
        now: tuple[Any, Array, Account], key: Key[Array, ""]
    ) -> tuple[tuple[Any, Array, Account], Rollout]:
        state, observations, account = now
        noise_key, world_key = jax.random.split(key)
        noise = policy.noise((settings.worlds,), key=noise_key)
        if settings.intended:
            noise = noise.at[: settings.intended].set(0)
        actions = policy.act(learning.look(observed, observations, settings), noise)
        taken, *onwards = continued(
            state, bounded(task, actions), jax.random.split(world_key, settings.worlds)
        )
        record = Rollout(
            observations=observations,
            arrived=taken.observation,
            actions=actions,
            rewards=taken.reward,
            costs=taken.costs,
            terminated=taken.terminated,
            truncated=taken.truncated,
        )
        return (*onwards, entered(account, record)), record

    account = run.account._replace(ended=jnp.zeros(4))
    (state, observations, account), rollout = jax.lax.scan(
        step, (run.state, run.observations, account), jax.random.split(key, settings.rollout)
    )
    return Run(run.learner, state, observations, account), rollout


def checked_costs(costs: Array, rollout: Rollout, constraints: int) -> Array:
    """Learned costs, if they have the shape that costs must have."""
    wanted = (*rollout.rewards.shape, constraints)
    if costs.shape != wanted:
        raise ArgumentError(
            f"the cost function gave the shape {list(costs.shape)}, not {list(wanted)}"
        )
    return costs


def bounded(task: JaxWorld, actions: Array) -> Array:
    """Continuous actions cut to their box."""
    if jnp.issubdtype(actions.dtype, jnp.integer):
        return actions
    return jnp.clip(actions, task.action_space.low, task.action_space.high)  # pyright: ignore


def entered(account: Account, step: Rollout) -> Account:
    """The account with one step of every world."""
    reward = account.reward + step.rewards
    violated = jnp.maximum(account.violated, (step.costs > 0).any(axis=-1))
    end = (step.terminated | step.truncated).astype(reward.dtype)
    sums = jnp.stack([end, end * reward, end * reward * (1 - violated), end * violated])
    return Account(reward * (1 - end), violated * (1 - end), account.ended + sums.sum(axis=1))


def check_finite(
    task: JaxWorld, seeds: Sequence[int], settings: PPO, kl: Float[np.ndarray, "s i"]
) -> None:
    """Raise an error that names the first seed and step at which training diverged."""
    for seed, curve in zip(seeds, kl, strict=True):
        bad = np.flatnonzero(~np.isfinite(curve))
        if len(bad):
            raise DivergenceError(
                f"training on {task.name} with seed {seed} diverged: kl is {curve[bad[0]]} after "
                f"{(bad[0] + 1) * settings.batch} steps; a lower learning_rate may help"
            )
