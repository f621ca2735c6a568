"""Names of tasks: `make("GridWorld", layout="rooms")`, and the same under Gymnasium ids."""

import difflib
import inspect
import numbers
import types
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import gymnasium

from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import TabularEnvironment
from tacit.errors import TaskError

TASKS: Mapping[str, Callable[..., TabularTask]] = types.MappingProxyType(
    {"Chain": chain, "GridWorld": grid_world}
)


def make(name: str, **options: Any) -> TabularTask:
    """The task called `name` (in any mix of cases), e.g. `make("GridWorld", layout="rooms")`.

    The options are the arguments of the function that builds the task; see `TASKS`.
    """
    name = find_name(name)
    build = TASKS[name]
    check_options(name, build, options)
    return build(**options)


class NamedEnvironment(TabularEnvironment):
    """`TabularEnvironment(make(name, **options))`: what the Gymnasium ids `tacit/...` stand for."""

    def __init__(self, name: str, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(make(name, **options), render_mode=render_mode)


def register_environments() -> None:
    """Let `gymnasium.make("tacit/GridWorld-v0", layout="rooms")` work; doing so twice is harmless.

    No step limit is registered: the environments truncate themselves at the task's horizon.
    """
    for name in TASKS:
        identifier = f"tacit/{name}-v0"
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point=f"{__name__}:{NamedEnvironment.__name__}",
                kwargs={"name": name},
            )


def find_name(name: str) -> str:
    """`name` as it is spelled in `TASKS`, or an error with the nearest one."""
    spellings = {known.lower(): known for known in TASKS}
    wanted = str(name).lower()
    if wanted not in spellings:
        hint = nearest(wanted, spellings)
        raise TaskError(f"there is no task {name!r}; there are {', '.join(TASKS)}{hint}")
    return spellings[wanted]


def check_options(name: str, build: Callable[..., TabularTask], options: dict[str, Any]) -> None:
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


def fits(value: object, kind: Any) -> bool:
    """Whether `value` may stand where the annotation `kind` is written, NumPy scalars included."""
    if get_origin(kind) in (Union, types.UnionType):
        return any(fits(value, member) for member in get_args(kind))
    if kind in (int, float):
        number = numbers.Integral if kind is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    if get_origin(kind) is tuple:
        # A settings file holds lists where Python code would write tuples.
        return isinstance(value, tuple | list) and all(
            fits(member, get_args(kind)[0]) for member in value
        )
    return isinstance(value, kind)


def nearest(word: str, spellings: Mapping[str, str]) -> str:
    """`; did you mean ...?`, when something close to `word` exists."""
    close = difflib.get_close_matches(word, spellings, n=1)
    return f"; did you mean {spellings[close[0]]}?" if close else ""


register_environments()
