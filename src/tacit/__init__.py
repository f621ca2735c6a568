"""Learn the unwritten rules experts follow, at a confidence level you choose."""

from tacit.control.expert import Expert, collect, train_expert
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.registry import make
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import TacitError
from tacit.evaluation.conformal import calibrate
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.recovery import recovery
from tacit.evaluation.tradeoff import tradeoff
from tacit.inference import methods
from tacit.inference.confidence.quantile import beta_quantile
from tacit.inference.constraint import Constraint
from tacit.inference.counts.posterior import exact_posterior, limit_rules, subset_rules
from tacit.inference.infer import infer
from tacit.inference.method import Method
from tacit.inference.result import Result, load
from tacit.sufficiency.answer import Answer
from tacit.sufficiency.decision import sufficient
from tacit.use.cost_wrapper import CostWrapper
