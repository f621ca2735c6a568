"""Worlds as pure JAX functions: whole training loops over them compile into one program."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from tacit.argument_checks import check_count, check_seed
from tacit.environments.worlds import Step, check_actions, check_finite
from tacit.errors import ArgumentError, EpisodeError
from tacit.runs.tree_file import is_key

KEY_KIND = "threefry2x32"


class JaxStep(NamedTuple):
    """What one step of one world returns; nothing is reset by it.

    Fields:
        state: where the world stands, a pytree.
        observation: [o].
        reward: [].
        costs: [k] true cost for each of k constraints.
        terminated: [] the episode came to an end of its own.
        truncated: [] the episode was cut short by its time limit.
    """

    state: Any
    observation: Float[Array, " o"]
    reward: Float[Array, ""]
    costs: Float[Array, " k"]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class JaxWorld(Protocol):
    """One world of a task as pure functions, for use under `jit`, `vmap` and `scan`.

    A world never changes, because programs are compiled for it. It can be hashed; or, if it holds
    large tables, it is an `equinox.Module`, so that programs take them as arguments instead of
    containing them. `task_from_jax` completes worlds that lack a name or cannot be hashed.

    The state is a pytree of arrays that holds everything, the count of steps included. Arrays
    should have types of their own (float32, int32), so that JAX's global precision changes nothing.

    Fields:
        name: what to call the task.
        observation_space: flat.
        action_space: a flat box or Discrete.
        constraints: what is constrained, one name per true cost.
        horizon: steps after which an episode is truncated; None where there is no such limit.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def observation_space(self) -> gymnasium.spaces.Box: ...  # noqa: D102
    @property
    def action_space(self) -> gymnasium.spaces.Box | gymnasium.spaces.Discrete: ...  # noqa: D102
    @property
    def constraints(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def horizon(self) -> int | None: ...  # noqa: D102

    def reset(self, key: PRNGKeyArray) -> tuple[Any, Float[Array, " o"]]:
        """Start an episode: state and observation."""
        ...

    def step(self, state: Any, action: Array, key: PRNGKeyArray) -> JaxStep:
        """Take one action."""
        ...


Continue: TypeAlias = Callable[[Any, Array, PRNGKeyArray], tuple[JaxStep, Any, Array]]


def autoreset(task: JaxWorld) -> Continue:
    """`task.step` that starts the next episode where one ended.

    It returns the step, and the state and observation from which the next step starts. The key is
    split in two, the first half for the step, the second for the next episode.
    """

    def step(state: Any, action: Array, key: PRNGKeyArray) -> tuple[JaxStep, Any, Array]:
        step_key, reset_key = jax.random.split(key)
        stepped = task.step(state, action, step_key)
        # Under vmap both sides of a condition are computed anyway, hence no lax.cond.
        start = task.reset(reset_key)
        ended = stepped.terminated | stepped.truncated
        onwards = jax.tree.map(
            lambda new, old: jnp.where(ended, new, old), start, (stepped.state, stepped.observation)
        )
        return stepped, *onwards

    return step


def world_keys(seed: int, number: int) -> PRNGKeyArray:
    """The keys of worlds 0..number-1: `jax.random.key(seed + i)`, also for seeds beyond 32 bits."""
    seeds = [check_seed(seed) + index for index in range(number)]
    if seeds[-1] >= 2**64:
        raise ArgumentError(f"seed must be below 2**64 - {number - 1}, not {seed}")
    halves = [(seed >> 32, seed & 0xFFFFFFFF) for seed in seeds]
    return jax.random.wrap_key_data(jnp.asarray(np.array(halves, np.uint32)), impl=KEY_KIND)


class Standing(NamedTuple):
    """Where n worlds stand: everything that `JaxWorlds` needs to go on.

    Fields:
        keys: [n] one for each world, split at every step.
        state: the task's own, with an axis of worlds in front.
        observations: [n, o].
    """

    keys: PRNGKeyArray
    state: Any
    observations: Float[Array, "n o"]


class JaxWorlds:
    """n copies of a JAX world as `Worlds`, for code outside of JAX.

    One call of a jitted function steps all worlds. World i starts from `jax.random.key(seed + i)`
    and splits its key in two at every start and step: one half stays, the other is used.
    """

    resumable = True

    def __init__(self, task: JaxWorld, number: int) -> None:
        self.task = task
        self.number = check_count("the number of worlds", number)
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self.number_of_costs = len(task.constraints)
        self.standing: Standing | None = None

    def reset(self, seed: int) -> Float[np.ndarray, "n o"]:
        """Seed every world anew and start an episode in each."""
        return self.stand(start_worlds(self.task, world_keys(seed, self.number)))

    def stagger(self) -> Bool[np.ndarray, " n"]:
        """Do nothing: only the world itself knows its clock, and a policy may see it."""
        return np.zeros(self.number, bool)

    def step(self, actions: np.ndarray) -> Step:
        """Take one action in every world; worlds whose episode ends start the next one."""
        here = self.here()
        actions = plain_actions(self.task, actions, self.number)
        standing, stepped = advance_worlds(self.task, here, actions)
        # Copies: what JAX hands out may not be written to.
        arrived, rewards, costs, terminated, truncated = (np.array(x) for x in stepped[1:])
        check_finite(self.task.name, observation=arrived, reward=rewards, cost=costs)
        return Step(self.stand(standing), arrived, rewards, costs, terminated, truncated)

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to go on from here, as arrays."""
        leaves, _ = jax.tree.flatten_with_path(self.here())
        return {name_of(path): np.array(as_numbers(leaf)) for path, leaf in leaves}

    def restore(self, state: dict[str, np.ndarray]) -> Float[np.ndarray, "n o"]:
        """Go back to a `state`; returns the observations there."""
        pattern = start_worlds(self.task, world_keys(0, self.number))
        leaves, structure = jax.tree.flatten_with_path(pattern)
        names = [name_of(path) for path, _ in leaves]
        if set(names) != set(state):
            raise ArgumentError(
                f"this state of {self.task.name} holds {sorted(state)}, not {sorted(names)}"
            )
        restored = [
            from_numbers(self.task.name, name, state[name], leaf)
            for name, (_, leaf) in zip(names, leaves, strict=True)
        ]
        return self.stand(jax.tree.unflatten(structure, restored))

    def close(self) -> None:
        """Forget where the worlds stand."""
        self.standing = None

    def here(self) -> Standing:
        """Where the worlds stand, or an error when no episode is running."""
        if self.standing is None:
            name = self.task.name
            raise EpisodeError(f"no episodes of {name} are running: call reset(seed) first")
        return self.standing

    def stand(self, standing: Standing) -> Float[np.ndarray, "n o"]:
        """Put the worlds there; returns the observations."""
        observations = np.array(standing.observations)
        check_finite(self.task.name, observation=observations)
        self.standing = standing
        return observations


def plain_actions(task: JaxWorld, actions: object, number: int) -> np.ndarray:
    """Checked actions for `number` worlds; whole numbers are int32 at any precision of JAX."""
    checked = check_actions(actions, number, task.action_space)
    return checked.astype(np.int32) if checked.dtype.kind == "i" else checked


def start_world(task: JaxWorld, key: PRNGKeyArray) -> Standing:
    """The first episode of one world."""
    key, start_key = jax.random.split(key)
    return Standing(key, *task.reset(start_key))


def advance_world(task: JaxWorld, standing: Standing, action: Array) -> tuple[Standing, JaxStep]:
    """One step of one world."""
    key, step_key = jax.random.split(standing.keys)
    stepped, *onwards = autoreset(task)(standing.state, action, step_key)
    return Standing(key, *onwards), stepped


# The task is part of what is compiled, but for the arrays of one that is a pytree: all worlds of
# one task share the program.
@eqx.filter_jit
def start_worlds(task: JaxWorld, keys: PRNGKeyArray) -> Standing:
    """`start_world` with an axis of worlds."""
    return jax.vmap(partial(start_world, task))(keys)


@eqx.filter_jit
def advance_worlds(
    task: JaxWorld, standing: Standing, actions: np.ndarray
) -> tuple[Standing, JaxStep]:
    """`advance_world` with an axis of worlds."""
    return jax.vmap(partial(advance_world, task))(standing, jnp.asarray(actions))


def cost_of_one(costs: Float[np.ndarray, " k"]) -> float | Float[np.ndarray, " k"]:
    """`info["cost"]` of one world: a number, or an array where the task has several costs."""
    return float(costs[0]) if len(costs) == 1 else costs


def name_of(path: Any) -> str:
    """The place of an array in a `Standing`, as a word."""
    return jax.tree_util.keystr(path).lstrip(".")


def as_numbers(leaf: Array) -> Array:
    """Keys as the integers they are made of; other arrays as they are."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def from_numbers(task: str, name: str, numbers: np.ndarray, wanted: Array) -> Array:
    """The inverse of `as_numbers`, or an error if the array has not the form of `wanted`."""
    plain = as_numbers(wanted)
    numbers = np.asarray(numbers)
    if numbers.shape != plain.shape or numbers.dtype != plain.dtype:
        raise ArgumentError(
            f"{name} in this state of {task} is {numbers.dtype} of the shape "
            f"{list(numbers.shape)}, not {plain.dtype} of the shape {list(plain.shape)}"
        )
    if is_key(wanted):
        return jax.random.wrap_key_data(jnp.asarray(numbers), impl=jax.random.key_impl(wanted))
    return jnp.asarray(numbers)
