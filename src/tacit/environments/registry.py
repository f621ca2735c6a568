"""Names of tasks: `make("GridWorld", layout="rooms")`, and the same under Gymnasium ids."""

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_type_hints, overload

import gymnasium
from gymnasium.vector import VectorEnv

from tacit.argument_checks import fits, nearest
from tacit.environments.biased_pendulum import biased_pendulum
from tacit.environments.blocked_locomotion import (
    blocked_ant,
    blocked_half_cheetah,
    blocked_swimmer,
    blocked_walker,
)
from tacit.environments.blocked_point import blocked_point
from tacit.environments.gymnasium_task import gymnasium_task
from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.mujoco_environment import (
    MujocoEnvironment,
    MujocoVectorEnvironment,
    mujoco_task,
)
from tacit.environments.mujoco_rules import MujocoRules
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import TabularEnvironment
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.highway.driving import highway_distance, highway_velocity

TABULAR_TASKS: Mapping[str, Callable[..., TabularTask]] = types.MappingProxyType(
    {"Chain": chain, "GridWorld": grid_world}
)
MUJOCO_TASKS: Mapping[str, Callable[..., MujocoRules]] = types.MappingProxyType(
    {
        "BlockedHalfCheetah": blocked_half_cheetah,
        "BlockedAnt": blocked_ant,
        "BiasedPendulum": biased_pendulum,
        "BlockedWalker": blocked_walker,
        "BlockedSwimmer": blocked_swimmer,
    }
)
COMPILED_TASKS: Mapping[str, Callable[..., SimulatedTask]] = types.MappingProxyType(
    {
        "BlockedPoint": blocked_point,
        "HighwayDistance": highway_distance,
        "HighwayVelocity": highway_velocity,
    }
)
TASKS = types.MappingProxyType({**TABULAR_TASKS, **COMPILED_TASKS, **MUJOCO_TASKS})
NAMESPACE, VERSION = "tacit/", "-v0"

Tabular = Literal["Chain", "GridWorld"]
Simulated = Literal[
    "BlockedPoint",
    "HighwayDistance",
    "HighwayVelocity",
    "BlockedHalfCheetah",
    "BlockedAnt",
    "BiasedPendulum",
    "BlockedWalker",
    "BlockedSwimmer",
]
Foreign = gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]]


@overload
def make(name: Tabular, /, **options: Any) -> TabularTask: ...
@overload
def make(name: Simulated | Foreign, /, **options: Any) -> SimulatedTask: ...
@overload
def make(name: str, /, **options: Any) -> TabularTask | SimulatedTask: ...
def make(name: str | Foreign, /, **options: Any) -> TabularTask | SimulatedTask:
    """The task called `name` (in any mix of cases), e.g. `make("GridWorld", layout="rooms")`.

    The options are the arguments of the function that builds the task; see `TASKS`.

    In place of a name, any other Gymnasium environment will do: its id, the environment itself or
    a function that makes one; see `gymnasium_task` for the options then.
    """
    if is_foreign(name):
        return gymnasium_task(name, **options)
    name = find_name(name)
    if name in TABULAR_TASKS:
        check_options(name, TABULAR_TASKS[name], options)
        return TABULAR_TASKS[name](**options)
    if name in COMPILED_TASKS:
        check_options(name, COMPILED_TASKS[name], options)
        return COMPILED_TASKS[name](**options)
    rules = make_rules(name, options)
    defaults = inspect.signature(MUJOCO_TASKS[name]).parameters.values()
    given = {option.name: option.default for option in defaults} | options
    return mujoco_task(rules, {**given, "horizon": rules.horizon})


def make_rules(name: str, options: dict[str, Any]) -> MujocoRules:
    """The rules of the MuJoCo task called `name`."""
    name = find_name(name)
    build = MUJOCO_TASKS[name]
    check_options(name, build, options)
    return build(**options)


def is_foreign(name: object) -> bool:
    """Whether `name` stands for a Gymnasium environment that is not one of ours."""
    if isinstance(name, str):
        # module:id imports the module first, which registers the id.
        return ":" in name or (name in gymnasium.registry and not name.startswith(NAMESPACE))
    return isinstance(name, gymnasium.Env) or callable(name)


class NamedEnvironment(TabularEnvironment):
    """`TabularEnvironment(make(name, **options))`: what the Gymnasium ids `tacit/...` stand for."""

    def __init__(self, name: str, *, render_mode: str | None = None, **options: Any) -> None:
        task = make(name, **options)
        assert isinstance(task, TabularTask)
        super().__init__(task, render_mode=render_mode)


def named_environment(
    name: str, *, render_mode: str | None = None, **options: Any
) -> gymnasium.Env[Any, Any]:
    """One world of the compiled task called `name`, for `gymnasium.make`."""
    check_options(name, COMPILED_TASKS[name], options)
    return COMPILED_TASKS[name](**options).environment(render_mode=render_mode)


def named_vector_environment(
    name: str, num_envs: int = 1, **options: Any
) -> VectorEnv[Any, Any, Any]:
    """Many worlds of the compiled task called `name`, for `gymnasium.make_vec`."""
    check_options(name, COMPILED_TASKS[name], options)
    make_vector = COMPILED_TASKS[name](**options).make_vector
    assert make_vector is not None
    return make_vector(num_envs)


class NamedMujocoEnvironment(MujocoEnvironment):
    """One world of the MuJoCo task called `name`, for `gymnasium.make`."""

    def __init__(self, name: str, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(make_rules(name, options), render_mode=render_mode)


class NamedMujocoVectorEnvironment(MujocoVectorEnvironment):
    """Many worlds of the MuJoCo task called `name`, for `gymnasium.make_vec`."""

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        rules = make_rules(name, options)
        super().__init__(rules, num_envs, threads=threads, render_mode=render_mode)


def register_environments() -> None:
    """Let `gymnasium.make("tacit/GridWorld-v0", layout="rooms")` work; doing so twice is harmless.

    No step limit is registered: the environments truncate themselves at the task's horizon.
    """
    for name in TASKS:
        identifier = f"{NAMESPACE}{name}{VERSION}"
        if identifier in gymnasium.registry:
            continue
        if name in MUJOCO_TASKS:
            single, vector = NamedMujocoEnvironment, NamedMujocoVectorEnvironment
        elif name in COMPILED_TASKS:
            single, vector = named_environment, named_vector_environment
        else:
            single, vector = NamedEnvironment, None
        gymnasium.register(
            identifier,
            entry_point=f"{__name__}:{single.__name__}",
            vector_entry_point=vector and f"{__name__}:{vector.__name__}",
            kwargs={"name": name},
        )


def find_name(name: object) -> str:
    """`name` as it is spelled in `TASKS`, or an error with the nearest one."""
    spellings = {known.lower(): known for known in TASKS}
    wanted = str(name).lower().removeprefix(NAMESPACE).removesuffix(VERSION)
    if wanted not in spellings:
        hint = nearest(wanted, spellings)
        raise TaskError(f"there is no task {name!r}; there are {', '.join(TASKS)}{hint}")
    return spellings[wanted]


def check_options(name: str, build: Callable[..., object], options: dict[str, Any]) -> None:
    """Raise an error that names the first option which `build` lacks or cannot take."""
    known = {option: option for option in inspect.signature(build).parameters}
    kinds = get_type_hints(build)
    for option, value in options.items():
        if option not in known:
            raise TaskError(
                f"{name} has no option {option!r}; it has {', '.join(known)}"
                f"{nearest(option.lower(), known)}"
            )
        if not fits(value, kinds[option]):
            wanted = inspect.formatannotation(kinds[option])
            raise TaskError(f"option {option!r} of {name} must be {wanted}, not {value!r}")


register_environments()
