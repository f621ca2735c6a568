"""What a method is: its settings, and the few places in which methods differ.

`tacit.Method` is the only class to subclass for a method that learns by acting; the loop
(`tacit.inference.loop`) is the same for all. Methods that compute on tables are `ExactMethod`s.
"""

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import optax
from jaxtyping import Array, Float, Key

from tacit.argument_checks import check_count, enter, fits, nearest
from tacit.control.learner import Rollout
from tacit.control.multiplier import Multiplier
from tacit.control.presets import preset
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Inputs
from tacit.inference.replay import Replay
from tacit.inference.result import Result

METHODS: "dict[str, type[NamedMethod]]" = {}
"""Every method by its name; a subclass with a `name` is entered when it is defined."""
DEFAULTS = ("counts", "reach")
"""The first one that fits the task runs where no method is named."""


@dataclass(frozen=True, kw_only=True)
class NamedMethod(ABC):
    """A method with its settings, which are the fields of a frozen record."""

    name: ClassVar[str]
    heeds_confidence: ClassVar[bool] = False
    """Whether the confidence that users ask for changes what is learned, or how it is read."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        enter(METHODS, cls, "method")

    def __new__(cls, *positional: Any, **settings: Any) -> Self:
        """Refuse a setting that the method does not have, before the record is filled."""
        if "name" not in cls.__dict__ and not inspect.isabstract(cls):
            # Its results would say that the method ran from which it inherits a name.
            raise ArgumentError(f"method {cls.__name__} has no `name` of its own")
        given = {field.name for field in dataclasses.fields(cls)} & set(cls.__dict__)
        if given and "__dataclass_fields__" not in cls.__dict__:
            raise ArgumentError(
                f"{cls.__name__} sets {', '.join(sorted(given))}, which would have no effect: put "
                "@dataclass(frozen=True, kw_only=True) above the class"
            )
        if positional:
            raise ArgumentError(f"{cls.__name__} takes its settings by name, as in every=5")
        kinds = {field.name: field.type for field in dataclasses.fields(cls)}
        known = {setting: setting for setting in kinds}
        for setting, value in settings.items():
            if setting not in known:
                listed = f"it has {', '.join(known)}" if known else "it has none"
                raise ArgumentError(
                    f"method {cls.name!r} has no setting {setting!r}; {listed}"
                    f"{nearest(str(setting).lower(), known)}"
                )
            # What else a setting must be, its own method checks.
            if kinds[setting] in (float, "float") and not fits(value, float):
                raise ArgumentError(f"{setting} must be a number, not {value!r}")
        return super().__new__(cls)

    @classmethod
    def fits(cls, task: TabularTask | SimulatedTask) -> bool:
        """Whether the method can learn on the task."""
        del task
        return True

    @classmethod
    def preset(cls, task: TabularTask | SimulatedTask, **settings: Any) -> Self:
        """The method with the settings that were found to work on `task`, and with `settings`."""
        del task
        return cls(**settings)

    @property
    def any_confidence(self) -> bool:
        """Whether what was learned once can be read at every confidence."""
        return False

    def settings(self) -> dict[str, Any]:
        """All fields, JSON-able."""
        return dataclasses.asdict(self)


class ExactMethod(NamedMethod):
    """A method that computes on the arrays of a table: nothing is sampled and nobody acts."""

    @classmethod
    def fits(cls, task: TabularTask | SimulatedTask) -> bool:
        """Only on tables."""
        return isinstance(task, TabularTask)

    @abstractmethod
    def learn(
        self, task: TabularTask, demonstrations: Trajectories, confidence: float, seed: int
    ) -> Result:
        """The rule, the best policy that keeps it, and how they came about."""


class Learned(NamedTuple):
    """What a method has learned so far.

    Fields:
        model: of the constraint, an equinox module; the part that gradients train.
        optimiser: the state of Adam.
        memory: whatever else the method keeps, a tree of arrays.
    """

    model: Any
    optimiser: optax.OptState
    memory: Any


class Moment(NamedTuple):
    """When a rollout is judged.

    Fields:
        confidence: asked for by the user.
        exploring: whether the policy has not begun anew as an imitation of the experts yet.
    """

    confidence: float
    exploring: bool


class Judged(NamedTuple):
    """What a method says about a rollout.

    Fields:
        learned: the method's state, as `judge` may note what it has seen.
        costs: of every step, one for each price; none where the method changes the reward instead.
        rewards: that the policy learns from.
    """

    learned: Learned
    costs: Float[np.ndarray, "T n k"]
    rewards: Float[np.ndarray, "T n"]


class Round(NamedTuple):
    """What an update of the constraint may look at.

    Fields:
        experts: all demonstrations.
        replay: what policies did, the newest round included; None where the method wants none.
        generator: of the draws of this round.
        passed: share of the run that is over.
        length: mean number of steps of an episode.
        confidence: asked for by the user.
        mixture: weight of every place of the replay, None for equal ones.
    """

    experts: ExpertSteps
    replay: Replay | None
    generator: np.random.Generator
    passed: float
    length: float
    confidence: float
    mixture: Float[np.ndarray, " R"] | None = None


@dataclass(frozen=True, kw_only=True)
class Method(NamedMethod):
    """What the loop asks of a method that learns by acting.

    Fields:
        every: updates of the policy between two of the constraint.
        temptation: share of the run in which the policy learns from nothing, so that it can be
            tempted. Then it begins anew as an imitation of the experts. 1: it never does.
    """

    every: int = 5
    temptation: float = 1.0

    budget_per: ClassVar[Literal["step", "worst"]] = "step"
    """What a budget is measured by: the mean step, or the worst step of an episode."""
    reported: ClassVar[tuple[str, ...]]
    """The numbers that an update of the constraint returns, and `expert_cost`."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Settings that differ from the defaults, by the name of the task."""

    def __post_init__(self) -> None:
        check_count("every", self.every)
        if not 0 <= self.temptation <= 1:
            raise ArgumentError(f"temptation must lie in [0, 1], not {self.temptation!r}")

    @classmethod
    def preset(cls, task: TabularTask | SimulatedTask, **settings: Any) -> Self:
        """The method with the settings that were found to work on `task`, and with `settings`."""
        return cls(**{**cls.presets.get(task.name, {}), **settings})

    @classmethod
    def forward(cls, task: SimulatedTask) -> PPO:
        """Settings of forward control: those of the task, but for the price.

        Steps are charged relative to each other (see `PPO.relative_costs`), so that the price is a
        weight beside the reward's advantages. It is capped because the policy may never be quite
        as cheap as the experts. Where experts need a penalty (the pendulum, which is beyond its
        limit in a few steps), so do policies under a learned rule.
        """
        base = preset(task)
        if base.multiplier.kind == "penalty":
            return base
        return dataclasses.replace(base, multiplier=Multiplier(start=1.0, rate=0.1, largest=2.0))

    def imitates_at(self, iterations: int) -> tuple[int, ...]:
        """The updates after which the policy begins anew as an imitation of the experts."""
        return () if self.temptation == 1 else (round(self.temptation * iterations),)

    def check_sizes(self, observed: int) -> None:
        """Raise an error if the settings do not fit so many observed numbers.

        It is asked before anything is done or written.
        """
        del observed

    def number_of_costs(self, observed: int) -> int:
        """How many costs `judge` gives for so many observed numbers, each with its own price."""
        del observed
        return 1

    @abstractmethod
    def begin(
        self, inputs: Inputs, experts: ExpertSteps, forward: PPO, *, key: Key[Array, ""]
    ) -> Learned:
        """The state before anything is learned."""

    def with_experts(self, learned: Learned, experts: ExpertSteps) -> Learned:
        """What of `learned` goes on to be of use with other experts."""
        del experts
        return learned

    def forget_episodes(self, learned: Learned) -> Learned:
        """The state after all running episodes were broken off and begun anew."""
        return learned

    def constraint(self, learned: Learned) -> Any:
        """The `ConstraintModel` to be asked after training."""
        return learned.model

    def new_replay(self, rollout: Rollout, generator: np.random.Generator) -> Replay | None:
        """An empty replay for rollouts like this one; None where the method wants none."""
        del rollout, generator
        return None

    def remember(
        self, replay: Replay | None, rollout: Rollout, generator: np.random.Generator
    ) -> None:
        """Put a sample of a rollout into the replay."""
        del replay, rollout, generator

    @abstractmethod
    def judge(self, learned: Learned, rollout: Rollout, moment: Moment) -> Judged:
        """The costs and rewards that the policy learns from; called once a rollout."""

    @abstractmethod
    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Learn from what the policy did; returns the numbers named in `reported`."""

    @abstractmethod
    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """What the experts spend of the budget, from some of them, in pieces of `width` steps."""

    @abstractmethod
    def allowance(self, expert_cost: float, confidence: float) -> float:
        """What the policy may spend."""


def default_method(task: TabularTask | SimulatedTask) -> type[NamedMethod]:
    """The method that runs on `task` when none is named: `counts` on tables, else `reach`."""
    return next(METHODS[name] for name in DEFAULTS if METHODS[name].fits(task))


def find_method(name: object) -> type[NamedMethod]:
    """The class of the method called `name`, or an error with the nearest name."""
    if isinstance(name, type) and issubclass(name, NamedMethod):
        raise ArgumentError(f"method must be an object: {name.__name__}(), not the class")
    if not isinstance(name, str) or name not in METHODS:
        hint = nearest(str(name).lower(), {known: known for known in METHODS})
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {name!r}{hint}")
    return METHODS[name]


def chosen_method(
    method: NamedMethod | str | None, task: TabularTask | SimulatedTask
) -> NamedMethod:
    """The method to run on `task`: the object itself, a name's preset, or the default's."""
    if not isinstance(method, NamedMethod):
        kind = default_method(task) if method is None else find_method(method)
        method = kind.preset(task) if kind.fits(task) else refused(kind, task)
    return method if type(method).fits(task) else refused(type(method), task)


def refused(kind: type[NamedMethod], task: TabularTask | SimulatedTask) -> NamedMethod:
    """Raise an error: the method cannot learn on the task."""
    raise ArgumentError(
        f"method {kind.name!r} computes on the arrays of a table, which {task.name} does not have; "
        f"{default_method(task).name!r} is of the same family and learns by acting"
    )
