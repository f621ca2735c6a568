"""The methods by their names: `tacit.methods.VICRL(learning_rate=1e-3)`."""

from tacit.inference.methods import *  # noqa: F403
from tacit.inference.methods import __all__ as __all__
