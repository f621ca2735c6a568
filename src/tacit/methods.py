"""The methods by their names: `tacit.methods.VICRL(learning_rate=1e-3)`."""

from tacit.inference.method import METHODS, ExactMethod, Method
from tacit.inference.methods import (
    BC2L,
    CAICRL,
    GACL,
    ICL,
    ICRL,
    VICRL,
    Counts,
    Likelihood,
    Reach,
    default_method,
    find_method,
)

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
