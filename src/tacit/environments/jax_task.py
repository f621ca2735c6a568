"""`task_from_jax`: a world written in JAX becomes a task, completed and checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import gymnasium
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from tacit.environments.jax_environment import JaxEnvironment, JaxVectorEnvironment
from tacit.environments.jax_world import JaxStep, JaxWorld, JaxWorlds
from tacit.environments.task import SimulatedTask, constraint_names
from tacit.errors import TaskError

NEEDED = ("reset", "step", "observation_space", "action_space", "horizon")


def task_from_jax(
    world: Any, *, name: str | None = None, options: Mapping[str, Any] | None = None
) -> SimulatedTask:
    """A world written in JAX as a task, for `Expert`, `train_expert`, `collect` and `infer`.

    The world is any object with

        reset(key) -> (state, observation)       starts an episode
        step(state, action, key) -> JaxStep      takes one action and resets nothing
        observation_space                        a flat box of floats
        action_space                             a flat box of floats, or Discrete
        horizon                                  most steps of an episode, or None

    and it may have a `name` (default: that of its class), `constraints` (a name for each cost;
    default: "cost", or "cost 0", "cost 1" and so on) and `observation_names` (a word for each
    observed number). Both functions are pure and work under `jit` and `vmap`. The state is any
    pytree of arrays; it counts the steps, as `step` says itself when the time is up. Both are
    traced here once, which computes nothing, and what they return is checked.

    >>> task_from_jax(tacit.make("BlockedPoint").jax_world).constraints
    ('x',)

    Arguments:
        world: what to step; it must not change afterwards, as programs are compiled for it. One
            that holds large tables is best an `equinox.Module`: see `JaxWorld`.
        name: what to call the task, in place of the world's own name.
        options: what the world was built with, to be kept with results.
    """
    complete = complete_world(world, name)
    return SimulatedTask(
        name=complete.name,
        options=dict(options or {}),
        observation_space=complete.observation_space,
        action_space=complete.action_space,
        horizon=complete.horizon,
        constraints=complete.constraints,
        make_worlds=lambda number, threads: JaxWorlds(complete, number),
        make_environment=lambda render_mode: JaxEnvironment(complete, render_mode=render_mode),
        jax_world=complete,
        make_vector=lambda number: JaxVectorEnvironment(complete, number),
        observation_names=tuple(getattr(world, "observation_names", ())),
    )


@dataclass(frozen=True, eq=False)
class Facts:
    """What a `JaxWorld` says of itself; equal to nothing but itself, so that it can be hashed."""

    name: str
    observation_space: gymnasium.spaces.Box
    action_space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
    horizon: int | None
    constraints: tuple[str, ...]


class CompleteWorld(eqx.Module):
    """A user's world with what it left out.

    It holds the functions of the world, not the world: Python compares the functions of an object
    by the object's identity, so that a world need not be hashable. Functions of an
    `equinox.Module` carry its arrays, so that programs still take them as arguments.
    """

    start: Callable[[PRNGKeyArray], tuple[Any, Array]]
    advance: Callable[[Any, Array, PRNGKeyArray], JaxStep]
    facts: Facts

    def reset(self, key: PRNGKeyArray) -> tuple[Any, Float[Array, " o"]]:
        """Start an episode."""
        return self.start(key)

    def step(self, state: Any, action: Array, key: PRNGKeyArray) -> JaxStep:
        """Take one action."""
        return self.advance(state, action, key)

    @property
    def name(self) -> str:
        """What the task is called."""
        return self.facts.name

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        """Of the world."""
        return self.facts.observation_space

    @property
    def action_space(self) -> gymnasium.spaces.Box | gymnasium.spaces.Discrete:
        """Of the world."""
        return self.facts.action_space

    @property
    def horizon(self) -> int | None:
        """Of the world."""
        return self.facts.horizon

    @property
    def constraints(self) -> tuple[str, ...]:
        """A name for each cost."""
        return self.facts.constraints


def complete_world(world: Any, name: str | None) -> JaxWorld:
    """Check `world`; returns it where it has all that a `JaxWorld` has, else completed."""
    own_name = getattr(world, "name", None)
    name = str(name or own_name or type(world).__name__)
    number = check_world(world, name)
    constraints = tuple(getattr(world, "constraints", constraint_names(number)))
    if len(constraints) != number:
        raise TaskError(
            f"{name} has {len(constraints)} constraints, {constraints}, but its steps have "
            f"{number} costs"
        )
    if name == own_name and hasattr(world, "constraints") and is_hashable(world):
        return world
    facts = Facts(name, world.observation_space, world.action_space, world.horizon, constraints)
    return CompleteWorld(world.reset, world.step, facts)


def is_hashable(world: Any) -> bool:
    """Whether programs can be compiled for `world`: by its hash, or as an `equinox.Module`."""
    if isinstance(world, eqx.Module):
        return True
    try:
        hash(world)
    except TypeError:
        return False
    return True


def check_world(world: Any, name: str) -> int:
    """Raise an error that says what is wrong with `world`; returns the number of its costs."""
    missing = [part for part in NEEDED if not hasattr(world, part)]
    if missing:
        raise TaskError(f"{name} has no {missing[0]}; a world in JAX has {', '.join(NEEDED)}")
    check_spaces(world, name)
    key = jax.random.key(0)
    begun = trace(f"reset of {name}", world.reset, key)
    if not isinstance(begun, tuple) or len(begun) != 2:
        raise TaskError(f"reset of {name} must return (state, observation), not {form_of(begun)}")
    state, observation = begun
    check_observation(f"reset of {name}", observation, world.observation_space)
    stepped = trace(f"step of {name}", world.step, state, action_like(world.action_space), key)
    if not isinstance(stepped, JaxStep):
        raise TaskError(f"step of {name} must return a tacit.JaxStep, not {form_of(stepped)}")
    check_observation(f"step of {name}", stepped.observation, world.observation_space)
    check_state(name, state, stepped.state)
    for part, kind in (("reward", "f"), ("terminated", "b"), ("truncated", "b")):
        value = getattr(stepped, part)
        if not is_array(value) or value.shape != () or value.dtype.kind != kind:
            wanted = "one float" if kind == "f" else "one bool"
            raise TaskError(f"{part} of a step of {name} must be {wanted}, not {form_of(value)}")
    costs = stepped.costs
    if not is_array(costs) or len(costs.shape) != 1 or costs.dtype.kind != "f":
        raise TaskError(
            f"costs of a step of {name} must be a row of floats, one for each constraint, as in "
            f"jnp.array([cost], jnp.float32), not {form_of(costs)}"
        )
    return costs.shape[0]


def check_spaces(world: Any, name: str) -> None:
    """Raise an error unless the spaces are flat and the horizon is a whole number or None."""
    observed, acted, horizon = world.observation_space, world.action_space, world.horizon
    if not is_flat_box(observed):
        raise TaskError(f"observation_space of {name} must be a flat box of floats, not {observed}")
    if not is_flat_box(acted) and not (
        isinstance(acted, gymnasium.spaces.Discrete) and acted.start == 0
    ):
        raise TaskError(
            f"action_space of {name} must be a flat box of floats or Discrete from 0, not {acted}"
        )
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
    if horizon is not None and not (whole and horizon >= 1):
        raise TaskError(
            f"horizon of {name} must be a whole number of at least 1, or None, not {horizon!r}"
        )


def is_flat_box(space: object) -> bool:
    """Whether `space` is a box of floats in a row."""
    return (
        isinstance(space, gymnasium.spaces.Box)
        and len(space.shape) == 1
        and space.shape[0] > 0
        and space.dtype.kind == "f"
    )


def action_like(space: gymnasium.spaces.Box | gymnasium.spaces.Discrete) -> jax.ShapeDtypeStruct:
    """Shape and type of one action as `JaxWorlds` hands it to `step`."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return jax.ShapeDtypeStruct((), np.int32)
    return jax.ShapeDtypeStruct(space.shape, jax.dtypes.canonicalize_dtype(space.dtype))


def trace(where: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Shapes and types of what `function` returns; nothing is computed."""
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        error.add_note(f"This happened in {where}, while JAX traced it for a task.")
        raise


def check_observation(where: str, observation: Any, space: gymnasium.spaces.Box) -> None:
    """Raise an error unless an observation has the shape and type of its space."""
    form = (observation.shape, observation.dtype) if is_array(observation) else None
    if form != (space.shape, space.dtype):
        raise TaskError(
            f"the observation that {where} returns is {form_of(observation)}, but "
            f"observation_space says {space.dtype} of the shape {list(space.shape)}"
        )


def check_state(name: str, before: Any, after: Any) -> None:
    """Raise an error unless a step keeps structure, shapes and types of the state."""
    one, other = (jax.tree.structure(state) for state in (before, after))
    if one != other:
        raise TaskError(
            f"the state of {name} must keep its structure: reset returns {one}, step {other}"
        )
    leaves, _ = jax.tree.flatten_with_path(before)
    for (path, old), new in zip(leaves, jax.tree.leaves(after), strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise TaskError(
                f"state{jax.tree_util.keystr(path)} of {name} must keep its shape and type: reset "
                f"returns {form_of(old)}, step {form_of(new)}"
            )


def is_array(value: object) -> bool:
    """Whether a traced value is one array."""
    return isinstance(value, jax.ShapeDtypeStruct)


def form_of(value: Any) -> str:
    """Type and shape of a traced value, in words."""
    if is_array(value):
        return f"{value.dtype} of the shape {list(value.shape)}"
    return type(value).__name__
