"""What can go wrong, said in words: what, where, and what to do about it.

The command line prints the message of a `TacitError` without a traceback and exits with 2.
"""


class TacitError(Exception):
    """Every error that tacit raises on purpose."""


class ArgumentError(TacitError, ValueError):
    """An argument has a value that cannot work."""


class TaskError(TacitError, ValueError):
    """The description of a task contradicts itself."""


class DemonstrationError(TacitError, ValueError):
    """Demonstrations that cannot be used; the message names file, episode and field."""


class StorageError(TacitError, OSError):
    """A file or folder that cannot be written, or that does not hold what it should."""


class EpisodeError(TacitError, RuntimeError):
    """A step was asked for where there is no running episode."""


class DivergenceError(TacitError, ArithmeticError):
    """Training ran into numbers that are not finite; the message names quantity and step."""
