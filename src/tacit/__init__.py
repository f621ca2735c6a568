"""Learn the unwritten rules experts follow, at a confidence level you choose."""

from importlib import import_module
from typing import Any

# Lets gymnasium.make("tacit/...") work. JAX is imported when a name below is first used.
import tacit.environments.registry  # noqa: F401

HOMES = {
    "errors": ("TacitError",),
    "environments.registry": ("make", "register"),
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
    "inference.counts.posterior": ("RuleFamily", "exact_posterior", "limit_rules", "subset_rules"),
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

__all__ = sorted([*HOME_OF, "methods"])  # pyright: ignore[reportUnsupportedDunderAll]


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
