"""Where the worlds of a Gymnasium task come from: an id, a factory, or an environment itself."""

import copy
import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec

from tacit.errors import TaskError

Environment: TypeAlias = gymnasium.Env[Any, Any]
Factory: TypeAlias = Callable[..., Any]  # what it returns is checked


class Source(Protocol):
    """Makes environments, all of the same kind."""

    def first(self) -> Environment:
        """An environment to step: the user's own where there is one and it is free."""
        ...

    def fresh(self, render_mode: str | None = None) -> Environment:
        """An environment that nobody else holds."""
        ...


def source_of(environment: Any, options: Mapping[str, Any]) -> Source:
    """The source for whatever the user gave as an environment."""
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
class Registered:
    """`gymnasium.make(identifier, **options)`."""

    identifier: str | EnvSpec
    options: Mapping[str, Any]

    def first(self) -> Environment:
        """A fresh environment."""
        return self.fresh()

    def fresh(self, render_mode: str | None = None) -> Environment:
        """Made by Gymnasium."""
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
class FromFactory:
    """`factory(**options)`, called once for each environment."""

    factory: Factory
    options: Mapping[str, Any]

    def first(self) -> Environment:
        """A fresh environment."""
        return self.fresh()

    def fresh(self, render_mode: str | None = None) -> Environment:
        """Made by the user's function, which takes a `render_mode` if there is to be a picture."""
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


class Instance:
    """An environment of the user's own: lent to one borrower at a time, made anew for the others.

    Others are made from the environment's `spec`, or copied where it has none. Something changed on
    the environment *after* it was made is not in its spec: use a factory in such a case.
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
        """Made from the spec, or copied."""
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
