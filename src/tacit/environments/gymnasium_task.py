"""Any Gymnasium environment as a task: an id, an environment, or a function that makes one."""

import copy
import inspect
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from tacit.argument_checks import check_count
from tacit.environments.gymnasium_worlds import (
    CostFunction,
    CostReporting,
    Environment,
    FlatEnvironment,
    GymnasiumWorlds,
    cost_vector,
    spaces_of,
)
from tacit.environments.task import SimulatedTask, constraint_names
from tacit.environments.worlds import check_finite
from tacit.errors import TaskError

Factory: TypeAlias = Callable[..., Any]  # what it returns is checked
PROBE_SEED = 0
UNKNOWN = "unknown"


class Source(ABC):
    """Makes environments, all of the same kind."""

    def first(self) -> Environment:
        """An environment to step: the user's own where there is one and it is free."""
        return self.fresh()

    @abstractmethod
    def fresh(self, render_mode: str | None = None) -> Environment:
        """An environment that nobody else holds."""


def gymnasium_task(
    environment: str | EnvSpec | Environment | Callable[..., Environment],
    *,
    cost: CostFunction | Literal["unknown"] | None = None,
    horizon: int | None = None,
    name: str | None = None,
    observation_names: Sequence[str] | None = None,
    **make_options: Any,
) -> SimulatedTask:
    """A Gymnasium environment as a task, e.g. `gymnasium_task("CartPole-v1", cost=too_far_left)`.

    The worlds and the environment of the task have flat spaces: observations as
    `gymnasium.spaces.utils.flatten` gives them, in floats; actions as a float32 box (clipped to the
    environment's own bounds) or as the numbers 0..n-1. One reset and one step are taken here, to
    see whether there is a cost and how many numbers it has.

    Arguments:
        environment: a registered id, an environment, or a function called once for each world. Of
            an environment, the first world is the environment itself; it stays open when the worlds
            are closed. More worlds are made from its `spec`, or copied where it has none.
        cost: `cost(observation, action, next_observation)` is the true cost of a step, a number or
            a row of them for several constraints; it sees observations and actions in the
            environment's own form. None: the environment puts it into `info["cost"]`. "unknown":
            nobody knows it, which is why it is to be inferred; then no violations are counted.
        horizon: cut episodes short after this many steps, if the environment does not do so before.
        name: what to call the task; by default the id, or the name of the environment's class.
        observation_names: a word for each number of a flat observation; by default those in the
            environment's attribute of this name, if it has a fitting one.
        **make_options: passed on to `gymnasium.make` or to the function.
    """
    check_arguments(cost, horizon)
    described = getattr(cost, "__qualname__", type(cost).__name__) if callable(cost) else cost
    options = {"cost": described, "horizon": horizon, **make_options}
    if observation_names is not None:
        options["observation_names"] = list(observation_names)
    source = source_of(environment, make_options)
    return look_at(source, cost, horizon, name, tuple(observation_names or ()), options)


def look_at(
    source: Source,
    cost: CostFunction | Literal["unknown"] | None,
    horizon: int | None,
    name: str | None,
    observation_names: tuple[str, ...],
    options: Mapping[str, Any],
) -> SimulatedTask:
    """Take one environment, one reset and one step to see what the task is like."""
    first = source.first()
    try:
        label = label_of(first)
        name = name or label
        prepare = partial(prepared, cost=cost, horizon=horizon, name=name)
        ready = prepare(first)
        observation_space, action_space = spaces_of([ready], name)
        limits = (horizon, first.spec.max_episode_steps if first.spec else None)
        number_of_costs = 0 if cost == UNKNOWN else count_costs(ready, name)
        found_names = names_of(first, observation_space.shape[0])
    finally:
        first.close()
    return SimulatedTask(
        name=name,
        options={"environment": label, **options},
        observation_space=observation_space,
        action_space=action_space,
        horizon=min((limit for limit in limits if limit is not None), default=None),
        constraints=constraint_names(number_of_costs),
        make_worlds=partial(make_worlds, source, prepare, number_of_costs, name),
        make_environment=lambda render_mode: prepare(source.fresh(render_mode)),
        observation_names=observation_names or found_names,
    )


def names_of(environment: Environment, size: int) -> tuple[str, ...]:
    """The names that an environment has for its `size` flat numbers; empty where it has none."""
    names = getattr(environment.unwrapped, "observation_names", None)
    if not isinstance(names, list | tuple) or len(names) != size:
        return ()  # an attribute that does not fit is about something else
    return tuple(str(name) for name in names)


def check_arguments(cost: object, horizon: object) -> None:
    """Raise an error unless `cost` can be called and `horizon` is a whole number, if given."""
    if cost is not None and cost != UNKNOWN and not callable(cost):
        raise TaskError(
            "cost must be a function cost(observation, action, next_observation) or 'unknown', "
            f"not {cost!r}"
        )
    if horizon is None:
        return
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise TaskError(f"horizon must be None or a whole number of at least 1, not {horizon!r}")


def prepared(
    environment: Environment,
    *,
    cost: CostFunction | Literal["unknown"] | None,
    horizon: int | None,
    name: str,
) -> Environment:
    """`environment` with its cost in `info`, flat spaces and the task's horizon."""
    if not isinstance(cost, str):
        environment = CostReporting(environment, cost, name)
    environment = FlatEnvironment(environment, name)
    return environment if horizon is None else gymnasium.wrappers.TimeLimit(environment, horizon)


def count_costs(environment: Environment, name: str) -> int:
    """Take one step; how many costs does it report?"""
    environment.reset(seed=PROBE_SEED)
    environment.action_space.seed(PROBE_SEED)
    info = environment.step(environment.action_space.sample())[4]
    costs = cost_vector(info["cost"], name)
    check_finite(name, cost=costs[None])
    return len(costs)


def make_worlds(
    source: Source,
    prepare: Callable[[Environment], Environment],
    number_of_costs: int,
    name: str,
    number: int,
    threads: int | None = None,
) -> GymnasiumWorlds:
    """`number` worlds; `threads` is ignored, as environments are stepped one after the other."""
    environments: list[Environment] = []
    try:
        for index in range(check_count("the number of worlds", number)):
            environments.append(source.fresh() if index else source.first())
        if len({id(environment) for environment in environments}) < number:
            raise TaskError(
                f"the function that makes {name} returned the same environment twice; it "
                f"must make a new one each time"
            )
        return GymnasiumWorlds(
            [prepare(environment) for environment in environments],
            number_of_costs=number_of_costs,
            name=name,
        )
    except Exception:
        for environment in environments:
            environment.close()
        raise


def source_of(environment: Any, options: Mapping[str, Any]) -> Source:
    """The `Source` that makes environments like the one given."""
    if isinstance(environment, str | EnvSpec):
        return Registered(environment, options)
    if isinstance(environment, gymnasium.vector.VectorEnv):
        raise TaskError(
            "environment is a VectorEnv; give its id or a function that makes a single "
            "environment instead: tacit makes as many worlds as it needs"
        )
    if isinstance(environment, gymnasium.Env):
        if options:
            raise TaskError(
                f"the environment exists already and takes no further options: {', '.join(options)}"
            )
        return Instance(environment)
    if callable(environment):
        return FromFactory(environment, options)
    raise TaskError(
        "environment must be a Gymnasium id, a Gymnasium environment or a function that makes one, "
        f"not {environment!r}"
    )


def label_of(environment: Environment) -> str:
    """The id of an environment, or the name of its class."""
    return environment.spec.id if environment.spec else type(environment.unwrapped).__name__


@dataclass(frozen=True, eq=False)
class Registered(Source):
    """`gymnasium.make(identifier, **options)`."""

    identifier: str | EnvSpec
    options: Mapping[str, Any]

    def fresh(self, render_mode: str | None = None) -> Environment:
        """Let Gymnasium make one."""
        options = dict(self.options)
        # Not every environment knows the argument, so it is passed only where it is wanted.
        if render_mode is not None:
            options["render_mode"] = render_mode
        try:
            return gymnasium.make(self.identifier, **options)
        except (gymnasium.error.Error, TypeError, ImportError) as error:
            name = self.identifier if isinstance(self.identifier, str) else self.identifier.id
            raise TaskError(f"the environment {name} cannot be made: {error}") from error


@dataclass(frozen=True, eq=False)
class FromFactory(Source):
    """`factory(**options)`, called once for each environment."""

    factory: Factory
    options: Mapping[str, Any]

    def fresh(self, render_mode: str | None = None) -> Environment:
        """Call the user's function, with a `render_mode` if there are to be pictures."""
        options = dict(self.options)
        name = getattr(self.factory, "__name__", repr(self.factory))
        if render_mode is not None:
            if not accepts(self.factory, "render_mode"):
                raise TaskError(f"{name} takes no render_mode; add that argument to see pictures")
            options["render_mode"] = render_mode
        environment = self.factory(**options)
        if not isinstance(environment, gymnasium.Env):
            kind = type(environment).__name__
            raise TaskError(f"{name} must return a Gymnasium environment, not {kind}")
        return environment


class Instance(Source):
    """An environment of the user's own, lent to one borrower at a time.

    All others get a new one, made from the environment's `spec`, or copied where it has none. What
    was changed on the environment *after* it was made is not in its spec: use a factory then.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.loan: weakref.ref[Lent] | None = None

    def first(self) -> Environment:
        """The environment itself unless it is lent; then a fresh one."""
        holder = None if self.loan is None else self.loan()
        if holder is not None and not holder.returned:
            return self.fresh()
        lent = Lent(self.environment)
        self.loan = weakref.ref(lent)
        return lent

    def fresh(self, render_mode: str | None = None) -> Environment:
        """Make one from the spec, or else copy the environment."""
        reasons = []
        spec = self.environment.spec
        if spec is not None:
            # A window for the user's own environment should not become one for each world.
            options = {"render_mode": None} if "render_mode" in spec.kwargs else {}
            try:
                return Registered(spec, options).fresh(render_mode)
            except Exception as error:  # whatever it is, a copy may still work
                reasons.append(f"it cannot be made from its spec ({error})")
        else:
            reasons.append("it has no spec")
        if render_mode not in (None, self.environment.render_mode):
            reasons.append(f"a copy would not have the render_mode {render_mode!r}")
        else:
            try:
                return copy.deepcopy(self.environment)
            except Exception as error:  # copying runs the user's code: anything can happen
                reasons.append(f"it cannot be copied ({error})")
        raise TaskError(
            f"there is one {label_of(self.environment)} and more are needed, but "
            f"{' and '.join(reasons)}; give a function that makes the environment instead"
        )


class Lent(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The user's own environment; closing it only gives it back."""

    returned = False

    def close(self) -> None:
        """Give it back, open: the user may go on with it."""
        self.returned = True


def accepts(function: Factory, argument: str) -> bool:
    """Whether `function` can be called with the keyword `argument`."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some built-in callables do not tell
        return True
    return argument in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
