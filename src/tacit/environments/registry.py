"""Names of tasks: `make("GridWorld", layout="rooms")`, and the same under Gymnasium ids.

Builders are looked up when their task is made for the first time, so that this module imports
neither JAX nor a simulator.
"""

import dataclasses
import importlib
import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args, get_type_hints, overload

import gymnasium
from gymnasium.vector import VectorEnv

from tacit.argument_checks import fits, nearest
from tacit.environments.gymnasium_task import gymnasium_task
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import TabularEnvironment
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError

Task: TypeAlias = TabularTask | SimulatedTask
Build: TypeAlias = str | Callable[..., Task]

BUILDERS: dict[str, Build] = {
    "Chain": "tacit.environments.lab_tasks:chain",
    "GridWorld": "tacit.environments.lab_tasks:grid_world",
    "BlockedPoint": "tacit.environments.blocked_point:blocked_point",
    "HighwayDistance": "tacit.highway.driving:highway_distance",
    "HighwayVelocity": "tacit.highway.driving:highway_velocity",
    "BlockedHalfCheetah": "tacit.environments.mujoco_tasks:blocked_half_cheetah",
    "BlockedAnt": "tacit.environments.mujoco_tasks:blocked_ant",
    "BiasedPendulum": "tacit.environments.mujoco_tasks:biased_pendulum",
    "BlockedWalker": "tacit.environments.mujoco_tasks:blocked_walker",
    "BlockedSwimmer": "tacit.environments.mujoco_tasks:blocked_swimmer",
}
TASKS: Mapping[str, Build] = types.MappingProxyType(BUILDERS)  # `register` adds to them
NAMESPACE, VERSION = "tacit/", "-v0"
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)

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
    """The task called `name` (in any mix of cases).

    >>> make("GridWorld", layout="rooms").number_of_states
    69

    The options are the arguments of the function that builds the task; see `TASKS`. `register`
    adds tasks of your own.

    In place of a name, any other Gymnasium environment will do: its id, the environment itself or
    a function that makes one; see `gymnasium_task` for the options then.
    """
    if is_foreign(name):
        return gymnasium_task(name, **options)
    name = find_name(name)
    build = builder(name)
    check_options(name, build, options)
    task = build(**options)
    if isinstance(task, TabularTask):
        return task
    if not isinstance(task, SimulatedTask):
        raise TaskError(
            f"the function that builds {name} must return a TabularTask or a SimulatedTask, "
            f"not {type(task).__name__}"
        )
    options = remembered(build, options, task)
    return dataclasses.replace(task, name=name, options=options, made_by_name=True)


def register(name: str, build: Build) -> None:
    """Make a task of your own known to `make`, to `load` and to Gymnasium as `tacit/NAME-v0`.

    >>> register("ShortChain", "tacit.environments.lab_tasks:chain")
    >>> make("ShortChain", length=9, limit=-2).number_of_states
    9

    Registering the same function again is harmless. Results on the task can be loaded wherever
    it has been registered.

    Arguments:
        name: a word.
        build: a function that returns a `TabularTask` or a `SimulatedTask`, or its place as
            "module:function", which is imported when the task is made. Its arguments are the
            options of the task; those with annotations are checked.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise TaskError(
            f"the name of a task must be a word of letters, digits and underscores, not {name!r}"
        )
    if isinstance(build, str) and not PLACE.fullmatch(build):
        raise TaskError(f"{name}: build must look like 'module:function', not {build!r}")
    if not isinstance(build, str) and not callable(build):
        raise TaskError(f"{name}: build must be a function or 'module:function', not {build!r}")
    taken = spellings().get(name.lower())
    if taken is not None and (taken != name or not same_build(BUILDERS[taken], build)):
        raise TaskError(f"there is a task {taken} already, built by {place_of(BUILDERS[taken])}")
    BUILDERS[name] = build
    register_environments()


def known(name: str) -> bool:
    """Whether `make` builds a task of exactly this name, ours or registered."""
    return name in BUILDERS


def builder(name: str) -> Callable[..., Task]:
    """The function that builds the task called `name`."""
    build = BUILDERS[name]
    if not isinstance(build, str):
        return build
    module, function = build.split(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise TaskError(f"{name} is built by {build}, which cannot be imported: {error}") from error


def place_of(build: Build) -> str:
    """Where a builder is defined, as "module:function"."""
    return build if isinstance(build, str) else f"{build.__module__}:{build.__qualname__}"


def same_build(one: Build, other: Build) -> bool:
    """Whether two builders are the same; a function that was defined again is."""
    nameless = "<" in place_of(one)  # functions of one line, or inside of others
    return one == other or (not nameless and place_of(one) == place_of(other))


def is_foreign(name: object) -> bool:
    """Whether `name` stands for a Gymnasium environment that is not one of ours."""
    if isinstance(name, str):
        # module:id imports the module first, which registers the id.
        return ":" in name or (name in gymnasium.registry and not name.startswith(NAMESPACE))
    return isinstance(name, gymnasium.Env) or callable(name)


class NamedEnvironment:
    """Makes one world of the task called `name`, for `gymnasium.make`.

    A class, because Gymnasium looks up the render modes before it calls what makes environments.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __new__(
        cls, name: str, *, render_mode: str | None = None, **options: Any
    ) -> gymnasium.Env[Any, Any]:
        """A `TabularEnvironment`, or the task's own environment."""
        task = make(name, **options)
        if isinstance(task, TabularTask):
            return TabularEnvironment(task, render_mode=render_mode)
        return task.environment(render_mode=render_mode)


def named_vector_environment(
    name: str,
    num_envs: int = 1,
    *,
    threads: int | None = None,
    render_mode: str | None = None,
    **options: Any,
) -> VectorEnv[Any, Any, Any]:
    """Many worlds of the task called `name`, for `gymnasium.make_vec`.

    A task without a vector environment of its own is stepped one world after the other.
    """
    task = make(name, **options)
    given = {"threads": threads, "render_mode": render_mode}
    given = {option: value for option, value in given.items() if value is not None}
    if isinstance(task, SimulatedTask) and task.make_vector is not None:
        unknown = [
            each for each in given if each not in inspect.signature(task.make_vector).parameters
        ]
        if unknown:
            raise TaskError(f"{task.name} has no option {unknown[0]!r} for many environments")
        return task.make_vector(num_envs, **given)
    identifier = f"{NAMESPACE}{find_name(name)}{VERSION}"
    return gymnasium.make_vec(identifier, num_envs, "sync", **given, **options)


def register_environments() -> None:
    """Let `gymnasium.make("tacit/GridWorld-v0", layout="rooms")` work; doing so twice is harmless.

    No step limit is registered: the environments truncate themselves at the task's horizon.
    """
    for name in TASKS:
        identifier = f"{NAMESPACE}{name}{VERSION}"
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point=f"{__name__}:{NamedEnvironment.__name__}",
                # Of our tables Gymnasium makes many by itself, with wrappers if it is asked to.
                vector_entry_point=None
                if name in get_args(Tabular)
                else f"{__name__}:{named_vector_environment.__name__}",
                kwargs={"name": name},
            )


def spellings() -> dict[str, str]:
    """Names by their lower-case spelling."""
    return {name.lower(): name for name in TASKS}


def find_name(name: object) -> str:
    """`name` as it is spelled in `TASKS`, or an error with the nearest one."""
    wanted = str(name).lower().removeprefix(NAMESPACE).removesuffix(VERSION)
    if wanted not in spellings():
        hint = nearest(wanted, spellings())
        raise TaskError(f"there is no task {name!r}; there are {', '.join(TASKS)}{hint}")
    return spellings()[wanted]


def check_options(name: str, build: Callable[..., object], options: Mapping[str, Any]) -> None:
    """Raise an error that names the first option which `build` lacks, needs or cannot take."""
    parameters = inspect.signature(build).parameters
    has = {option: option for option, its in parameters.items() if its.kind in NAMED}
    takes_all = any(its.kind is its.VAR_KEYWORD for its in parameters.values())
    try:
        kinds = get_type_hints(build)
    except (NameError, TypeError):  # annotations that mean something to their author only
        kinds = {}
    for option, value in options.items():
        if option not in has and not takes_all:
            raise TaskError(
                f"{name} has no option {option!r}; it has {', '.join(has)}"
                f"{nearest(option.lower(), has)}"
            )
        if not fits(value, kinds.get(option, Any)):
            wanted = inspect.formatannotation(kinds[option])
            raise TaskError(f"option {option!r} of {name} must be {wanted}, not {value!r}")

    empty = inspect.Parameter.empty
    missing = [each for each in has if parameters[each].default is empty and each not in options]
    if missing:
        raise TaskError(f"{name} needs the option {missing[0]!r}")


def remembered(
    build: Callable[..., object], options: Mapping[str, Any], task: SimulatedTask
) -> dict[str, Any]:
    """Every option that builds `task` again, with the task's own value where it has one."""
    defaults = {
        option: its.default
        for option, its in inspect.signature(build).parameters.items()
        if its.kind in NAMED
    }
    return {
        option: task.options.get(option, value) for option, value in {**defaults, **options}.items()
    }


register_environments()
