"""Learn the unwritten rules experts follow, at a confidence level you choose."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Also lets gymnasium.make("tacit/...") work; JAX is imported when a name below is first used.
from tacit.environments.registry import make, register
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit import methods
    from tacit.control.expert import Expert, collect, train_expert
    from tacit.control.multiplier import Multiplier
    from tacit.control.settings import PPO
    from tacit.demonstrations.trajectories import Trajectories
    from tacit.environments.jax_task import task_from_jax
    from tacit.environments.jax_world import JaxStep
    from tacit.environments.tabular import TabularTask
    from tacit.environments.task import SimulatedTask
    from tacit.evaluation.calibration import calibration_error
    from tacit.evaluation.conformal import calibrate
    from tacit.evaluation.evaluate import Evaluation, evaluate
    from tacit.evaluation.recovery import recovery, transfer
    from tacit.evaluation.tradeoff import tradeoff
    from tacit.inference.confidence.quantile import beta_quantile
    from tacit.inference.constraint import Constraint
    from tacit.inference.constraint_model import ConstraintModel
    from tacit.inference.counts.posterior import (
        RuleFamily,
        exact_posterior,
        limit_rules,
        subset_rules,
    )
    from tacit.inference.encoder.encoders import Encoder
    from tacit.inference.infer import infer
    from tacit.inference.method import Method
    from tacit.inference.result import Result, load
    from tacit.sufficiency.answer import Answer
    from tacit.sufficiency.decision import sufficient
    from tacit.use.cost_wrapper import CostWrapper

HOMES = {
    "environments.tabular": ("TabularTask",),
    "environments.task": ("SimulatedTask",),
    "environments.jax_world": ("JaxStep",),
    "environments.jax_task": ("task_from_jax",),
    "demonstrations.trajectories": ("Trajectories",),
    "control.settings": ("PPO",),
    "control.multiplier": ("Multiplier",),
    "control.expert": ("Expert", "collect", "train_expert"),
    "inference.confidence.quantile": ("beta_quantile",),
    "inference.constraint_model": ("ConstraintModel",),
    "inference.constraint": ("Constraint",),
    "inference.encoder.encoders": ("Encoder",),
    "inference.method": ("Method",),
    "inference.result": ("Result", "load"),
    "inference.infer": ("infer",),
    "inference.counts.posterior": (
        "RuleFamily",
        "exact_posterior",
        "limit_rules",
        "subset_rules",
    ),
    "use.cost_wrapper": ("CostWrapper",),
    "evaluation.evaluate": ("Evaluation", "evaluate"),
    "evaluation.conformal": ("calibrate",),
    "evaluation.calibration": ("calibration_error",),
    "evaluation.recovery": ("recovery", "transfer"),
    "evaluation.tradeoff": ("tradeoff",),
    "sufficiency.answer": ("Answer",),
    "sufficiency.decision": ("sufficient",),
}
"""Where the public names live, in the order in which data flows."""

HOME_OF = {name: home for home, names in HOMES.items() for name in names}

__all__ = [
    "PPO",
    "Answer",
    "Constraint",
    "ConstraintModel",
    "CostWrapper",
    "Encoder",
    "Evaluation",
    "Expert",
    "JaxStep",
    "Method",
    "Multiplier",
    "Result",
    "RuleFamily",
    "SimulatedTask",
    "TabularTask",
    "TacitError",
    "Trajectories",
    "beta_quantile",
    "calibrate",
    "calibration_error",
    "collect",
    "evaluate",
    "exact_posterior",
    "infer",
    "limit_rules",
    "load",
    "make",
    "methods",
    "recovery",
    "register",
    "subset_rules",
    "sufficient",
    "task_from_jax",
    "tradeoff",
    "train_expert",
    "transfer",
]


def __getattr__(name: str) -> Any:
    """The public name, imported when it is first used."""
    if name == "methods":
        return import_module("tacit.methods")
    if name not in HOME_OF:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(f"tacit.{HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
