"""Learn the unwritten rules experts follow, at a confidence level you choose."""

from tacit.control.expert import Expert, collect, train_expert
from tacit.control.multiplier import Multiplier
from tacit.control.ppo import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.jax_task import task_from_jax
from tacit.environments.jax_world import JaxStep
from tacit.environments.registry import make, register
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import TacitError
from tacit.evaluation.conformal import calibrate
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.recovery import recovery
from tacit.evaluation.tradeoff import tradeoff
from tacit.inference.confidence.quantile import beta_quantile
from tacit.inference.counts.posterior import exact_posterior, limit_rules, subset_rules
from tacit.inference.infer import infer
from tacit.inference.result import Result, load
from tacit.inference.simulated_result import SimulatedResult
from tacit.sufficiency.answer import Answer
from tacit.sufficiency.decision import sufficient
from tacit.use.cost_wrapper import CostWrapper

__all__ = [
    "PPO",
    "Answer",
    "CostWrapper",
    "Expert",
    "JaxStep",
    "Multiplier",
    "Result",
    "SimulatedResult",
    "SimulatedTask",
    "TabularTask",
    "TacitError",
    "Trajectories",
    "beta_quantile",
    "calibrate",
    "collect",
    "evaluate",
    "exact_posterior",
    "infer",
    "limit_rules",
    "load",
    "make",
    "recovery",
    "register",
    "subset_rules",
    "sufficient",
    "task_from_jax",
    "tradeoff",
    "train_expert",
]
