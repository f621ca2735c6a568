"""The methods by their names: `tacit.methods.VICRL(learning_rate=1e-3)`.

Also what a method of your own needs to say what it has learned and how it judges a rollout.
"""

from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.gacl import GACL
from tacit.inference.baselines.icl import ICL
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.counts.counts import Counts
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.encoder.method import CAICRL
from tacit.inference.method import (
    DEFAULTS,
    METHODS,
    ExactMethod,
    Judged,
    Learned,
    Method,
    Moment,
    Round,
    chosen_method,
    default_method,
    find_method,
)
from tacit.inference.reach.method import Reach

__all__ = [
    "BC2L",
    "CAICRL",
    "DEFAULTS",
    "GACL",
    "ICL",
    "ICRL",
    "METHODS",
    "VICRL",
    "Counts",
    "ExactMethod",
    "Judged",
    "Learned",
    "Likelihood",
    "Method",
    "Moment",
    "Reach",
    "Round",
    "chosen_method",
    "default_method",
    "find_method",
]
