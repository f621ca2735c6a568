"""The methods by their names: what `tacit.infer(..., method=...)` takes."""

from tacit.argument_checks import nearest
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.inference.baselines.bc2l import BC2L as BC2L
from tacit.inference.baselines.gacl import GACL as GACL
from tacit.inference.baselines.icl import ICL as ICL
from tacit.inference.baselines.icrl import ICRL as ICRL
from tacit.inference.baselines.vicrl import VICRL as VICRL
from tacit.inference.counts.counts import Counts
from tacit.inference.encoder.method import CAICRL as CAICRL
from tacit.inference.method import METHODS, NamedMethod
from tacit.inference.reach.method import Reach

DEFAULTS: tuple[type[NamedMethod], ...] = (Counts, Reach)
"""The first one that fits the task is the default."""


def default_method(task: TabularTask | SimulatedTask) -> type[NamedMethod]:
    """The method that runs on `task` when none is named: `counts` on tables, else `reach`."""
    return next(kind for kind in DEFAULTS if kind.fits(task))


def find_method(name: object) -> type[NamedMethod]:
    """The class of the method called `name`, or an error with the nearest name."""
    if not isinstance(name, str) or name not in METHODS:
        hint = nearest(str(name).lower(), {known: known for known in METHODS})
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {name!r}{hint}")
    return METHODS[name]


def chosen_method(
    method: NamedMethod | str | None, task: TabularTask | SimulatedTask
) -> NamedMethod:
    """The method to run on `task`: the object itself, a name's preset, or the default's."""
    if not isinstance(method, NamedMethod):
        kind = default_method(task) if method is None else find_method(method)
        method = kind.preset(task) if kind.fits(task) else refused(kind, task)
    return method if type(method).fits(task) else refused(type(method), task)


def refused(kind: type[NamedMethod], task: TabularTask | SimulatedTask) -> NamedMethod:
    """Raise an error: the method cannot learn on the task."""
    raise ArgumentError(
        f"method {kind.name!r} computes on the arrays of a table, which {task.name} does not have; "
        f"{default_method(task).name!r} is of the same family and learns by acting"
    )
