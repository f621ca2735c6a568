"""The methods by name, with settings that were found to work on each task."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tacit.control import presets
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.environments.registry import nearest
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.gacl import GACL
from tacit.inference.baselines.icl import ICL
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.confidence.votes import LEARNED_VOTES
from tacit.inference.encoder.method import CAICRL, OBJECTIVES
from tacit.inference.method import Method
from tacit.inference.reach.method import ReachCAICRL

KINDS: dict[str, type[Method]] = {
    method.name: method for method in (ReachCAICRL, ICRL, VICRL, BC2L, GACL, ICL)
}
METHODS = tuple(KINDS)
# What differs from the defaults, by task; but for methods that update at every rollout anyway.
PRESETS: dict[str, dict[str, Any]] = {
    # Millimetres decide, and there are few updates: a slower constraint stays blind.
    "BiasedPendulum": {"every": 2, "passes": 40, "learning_rate": 3e-3},
}


def check_method(name: str) -> None:
    """Raise an error if there is no such method."""
    if name not in METHODS:
        hint = nearest(str(name).lower(), {known: known for known in METHODS})
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {name!r}{hint}")


def kind_of(name: str, settings: Mapping[str, Any]) -> type[Method]:
    """The class of the method.

    CA-ICRL has two: by reach, the default; and with an encoder for the other objectives, also when
    a setting is named (or nearly named) that reach has not, or votes that are learned.
    """
    check_method(name)
    kind, objective = KINDS[name], settings.get("objective")
    known = {field.name: field.name for field in dataclasses.fields(kind)}
    encoder = {field.name for field in dataclasses.fields(CAICRL)}

    def of_the_encoder(setting: str) -> bool:
        meant = setting in known or nearest(setting.lower(), known)
        return setting not in known and (setting in encoder or not meant)

    learned = settings.get("votes") in LEARNED_VOTES
    beyond = objective is None and (learned or any(map(of_the_encoder, settings)))
    if kind is ReachCAICRL and (objective in OBJECTIVES or beyond):
        return CAICRL
    return kind


def make_method(name: str, task: SimulatedTask, settings: dict[str, Any]) -> Method:
    """The method called `name` with its settings for the task, and `settings` in their place."""
    kind = kind_of(name, settings)
    fields = {field.name: field.name for field in dataclasses.fields(kind)}
    for setting in settings:
        if setting not in fields:
            raise ArgumentError(
                f"{name} has no setting {setting!r}; it has {', '.join(fields)}"
                f"{nearest(str(setting).lower(), fields)}"
            )
    base = {} if kind in (GACL, ReachCAICRL) else PRESETS.get(task.name, {})
    return kind(**{**base, **settings})


def forward_preset(kind: type[Method], task: SimulatedTask) -> PPO:
    """Settings of forward control for a kind of method on a task.

    Those of the task (`presets.preset`), but for the price. Steps are charged relative to each
    other (see `PPO.relative_costs`), so that it is a weight beside the reward's advantages. It is
    capped because the policy may never be quite as cheap as the experts. Where experts need a
    penalty (the pendulum, which is beyond its limit in a few steps), so do those who learn the
    rule.
    """
    base = presets.preset(task)
    price = Multiplier(start=1.0, rate=0.1, largest=2.0)
    if base.multiplier.kind == "penalty":
        price = base.multiplier
    if kind is ReachCAICRL:
        # Slow: a high price too early, and nothing else is learned than to keep the rule.
        price = Multiplier(kind="share", budget_per="worst", start=5.0, rate=0.03, largest=10.0)
        return dataclasses.replace(base, multiplier=price, intent=0.25, relative_costs=False)
    if kind is ICL:
        price = Multiplier(kind="penalty", start=2.0)
    return dataclasses.replace(base, multiplier=price)
