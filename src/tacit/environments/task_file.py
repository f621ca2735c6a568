"""A user's own task in an .npz file of plain arrays."""

from pathlib import Path
from typing import Any

import numpy as np

from tacit.environments.tabular import TabularTask
from tacit.errors import TaskError

NEEDED = ("transitions", "rewards", "costs", "initial", "horizon")
OPTIONAL = ("temperature", "budget", "positions")


def load_task(path: str | Path) -> TabularTask:
    """Read a `TabularTask` from arrays called as its arguments are.

    Write one with `numpy.savez(path, transitions=..., rewards=..., costs=..., initial=...,
    horizon=...)`; temperature, budget and positions may be there too.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: np.asarray(file[name]) for name in file.files}
    except FileNotFoundError:
        raise TaskError(f"{path}: there is no such file") from None
    except Exception as error:  # damage may surface anywhere in zip, zlib or the header's parser
        raise TaskError(
            f"{path}: not an .npz file of plain arrays ({type(error).__name__}: {error})"
        ) from None
    missing = [name for name in NEEDED if name not in arrays]
    unknown = [name for name in arrays if name not in (*NEEDED, *OPTIONAL)]
    if missing or unknown:
        problem = f"{missing[0]} is missing" if missing else f"{unknown[0]} is not known"
        raise TaskError(f"{path}: {problem}; a task has {', '.join((*NEEDED, *OPTIONAL))}")
    for name in ("horizon", "temperature", "budget"):
        if name in arrays:
            if arrays[name].size != 1:
                raise TaskError(f"{path}: {name} must be one number")
            arrays[name] = arrays[name].item()
    try:
        return TabularTask(**arrays, name=path.stem)
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from None
