"""All methods of tacit: importing this module makes them known by their names."""

from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.gacl import GACL
from tacit.inference.baselines.icl import ICL
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.counts.counts import Counts
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.encoder.method import CAICRL
from tacit.inference.method import METHODS, ExactMethod, Method, default_method, find_method
from tacit.inference.reach.method import Reach

__all__ = [
    "BC2L",
    "CAICRL",
    "GACL",
    "ICL",
    "ICRL",
    "METHODS",
    "VICRL",
    "Counts",
    "ExactMethod",
    "Likelihood",
    "Method",
    "Reach",
    "default_method",
    "find_method",
]
