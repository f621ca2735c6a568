"""Turn users' values into clean, padded, read-only arrays, or say exactly what is wrong."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from tacit.errors import DemonstrationError

# A declared size beyond this is taken for a damaged or hostile file, not for demonstrations.
LARGEST_BYTES = 16 * 2**30
# Episodes are checked and copied in blocks of this size, so that nothing as large as all is made.
BLOCK_BYTES = 16 * 2**20


@contextmanager
def blame(source: object) -> Iterator[None]:
    """Put the name of the file in front of every `DemonstrationError` raised inside."""
    try:
        yield
    except DemonstrationError as error:
        raise DemonstrationError(f"{source}: {error}") from error.__cause__
    except MemoryError as error:
        raise DemonstrationError(
            f"{source}: declares more data than fits in memory; it is damaged or must be split"
        ) from error


def place(episode: int | None, field: str, step: int | None = None) -> str:
    """The words for a place in the data: `episode 3, field 'actions', step 7`."""
    parts = [] if episode is None else [f"episode {episode}"]
    parts.append(f"field '{field}'")
    if step is not None:
        parts.append(f"step {step}")
    return ", ".join(parts)


def numbers(values: Any, field: str, episode: int | None = None, real: bool = False) -> np.ndarray:
    """Values as int64, float32 or float64; `real` turns whole numbers into float64."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DemonstrationError(
            f"{place(episode, field)}: rows have different lengths; every row needs as many "
            "values as the first"
        ) from error
    if array.dtype.kind not in "biuf":
        raise DemonstrationError(
            f"{place(episode, field)}: holds {array.dtype}, not numbers; convert it to integers or "
            "to float32/float64"
        )
    if array.dtype.kind == "f":
        kept = np.dtype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    elif real:
        kept = np.dtype(np.float64)
    else:
        kept = np.dtype(np.int64)
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise DemonstrationError(f"{place(episode, field)}: an integer does not fit in int64")
    return array.astype(kept, copy=False)


def flags(values: Any, field: str, episode: int | None = None) -> np.ndarray:
    """Values as booleans; 0 and 1 are accepted."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise DemonstrationError(f"{place(episode, field)}: must hold true/false (or 0/1) only")
    return array.astype(bool)


def endings(values: Any, number: int) -> np.ndarray:
    """True for each episode that the task ended; without values, the time limit ended them all."""
    ended = flags(np.zeros(number, bool) if values is None else values, "terminated")
    if ended.shape != (number,):
        raise DemonstrationError(
            f"field 'terminated': has shape {ended.shape}, needs one value per episode: ({number},)"
        )
    return read_only(ended)


def episode_lengths(values: Any) -> np.ndarray:
    """Lengths [n] as int64: at least one episode, each of at least one step."""
    lengths = numbers(values, "lengths")
    if lengths.ndim != 1 or lengths.dtype.kind != "i":
        raise DemonstrationError(
            f"field 'lengths': needs a list of whole numbers, one per episode, not {lengths.dtype} "
            f"of shape {lengths.shape}"
        )
    if lengths.size == 0:
        raise DemonstrationError("field 'lengths': there are no episodes; give at least one")
    if (short := np.flatnonzero(lengths < 1)).size:
        raise DemonstrationError(
            f"{place(int(short[0]), 'lengths')}: is {lengths[short[0]]}; every episode needs at "
            "least one step, remove the others"
        )
    return lengths


def padded_field(values: Any, field: str, rows: np.ndarray, dimensions: int) -> np.ndarray:
    """Values [n, T, ...] cut to the longest episode, finite, zero beyond `rows`, read-only.

    A copy, unless they are so already and the caller has given them up.
    """
    array = numbers(values, field, real=dimensions == 2)
    if array.ndim != dimensions or 0 in array.shape[2:]:
        shape = "[episodes, steps, size]" if dimensions == 3 else "[episodes, steps]"
        raise DemonstrationError(
            f"field '{field}': has shape {array.shape}, needs {shape}; for episodes of different "
            "lengths use Trajectories.from_arrays"
        )
    if array.shape[0] != rows.size:
        raise DemonstrationError(
            f"field '{field}': holds {array.shape[0]} episodes, but 'lengths' holds {rows.size}"
        )
    if (missing := np.flatnonzero(rows > array.shape[1])).size:
        raise DemonstrationError(
            f"{place(int(missing[0]), field)}: needs {rows[missing[0]]} rows, has {array.shape[1]}"
            + row_advice(field)
        )
    if not (array.shape[1] == rows.max() and given_up(array) and zero_beyond(array, rows)):
        array = zero_padded(array, rows)
    refuse_infinite(array, field)
    return read_only(array)


def given_up(array: np.ndarray) -> bool:
    """Whether the array, and the one that it is a view of, are read-only and own their memory."""
    if type(array) is not np.ndarray or not array.flags.c_contiguous or array.flags.writeable:
        return False
    if array.flags.owndata:
        return True
    # Memory of others (files, other libraries) may change whatever the flags say; and a part of
    # a large array is copied, so that the rest can be freed.
    base = array.base
    return isinstance(base, np.ndarray) and base.nbytes == array.nbytes and given_up(base)


def blocks(array: np.ndarray) -> Iterator[slice]:
    """All episodes of [n, T, ...], a few megabytes at a time."""
    bytes_each = array.itemsize * math.prod(array.shape[1:])
    number = max(1, BLOCK_BYTES // max(1, bytes_each))
    return (slice(begin, begin + number) for begin in range(0, len(array), number))


def zero_beyond(array: np.ndarray, rows: np.ndarray) -> bool:
    """Whether every bit beyond the episodes is 0, as in a copy."""
    if (rows == array.shape[1]).all():
        return True
    column = np.arange(array.shape[1])
    padding = (array[part][column >= rows[part, None]] for part in blocks(array))
    return not any(values.view(np.uint8).any() for values in padding)


def zero_padded(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A copy of [n, T, ...] cut to the longest episode, with zeros beyond the others."""
    array = array[:, : rows.max()]
    column = np.arange(array.shape[1])
    result = np.zeros_like(array, order="C", subok=False)
    for part in blocks(array):
        inside = column < rows[part, None]
        result[part][inside] = array[part][inside]
    return result


def row_advice(field: str) -> str:
    """What to do about a wrong number of rows."""
    if field == "observations":
        return (
            "; observations need one row more than actions: one before each action and the final "
            "one. If the final one was not recorded, drop the last action, reward and cost"
        )
    return "; every step needs one row"


def refuse_infinite(array: np.ndarray, field: str) -> None:
    """Name the first episode and step of [n, T, ...] where a value is NaN or infinite."""
    if array.dtype.kind != "f":
        return
    for part in blocks(array):
        finite = np.isfinite(array[part])
        if not finite.all():
            bad = np.argwhere(~finite)[0]
            episode = part.start + int(bad[0])
            raise DemonstrationError(
                f"{place(episode, field, int(bad[1]))}: is {array[part][tuple(bad)]}; "
                "repair the recording or leave this episode out"
            )


def check_episode(values: Mapping[str, Any], episode: int) -> dict[str, np.ndarray]:
    """The fields of one episode with the right number of dimensions and rows."""
    arrays: dict[str, np.ndarray] = {}
    for field, value in values.items():
        real = field in ("rewards", "costs")
        array = numbers(value, field, episode, real)
        if not real and array.ndim == 1 and array.dtype.kind == "i":
            array = array[:, None]
        if array.ndim != (1 if real else 2):
            needed = "[steps]" if real else "[rows, size]"
            raise DemonstrationError(
                f"{place(episode, field)}: has shape {array.shape}, needs {needed}; reshape it"
            )
        if 0 in array.shape[1:]:
            raise DemonstrationError(
                f"{place(episode, field)}: has shape {array.shape}; every row needs at least one "
                "value"
            )
        arrays[field] = array
    steps = len(arrays["rewards"])
    if steps == 0:
        raise DemonstrationError(
            f"{place(episode, 'rewards')}: has no steps; every episode needs at least one, leave "
            "empty ones out"
        )
    for field, array in arrays.items():
        needed = steps + (field == "observations")
        if len(array) != needed:
            raise DemonstrationError(
                f"{place(episode, field)}: has {len(array)} rows, {steps} rewards need {needed}"
                + row_advice(field)
            )
    return arrays


def stack_episodes(given: Mapping[str, Sequence[Any] | np.ndarray]) -> dict[str, np.ndarray]:
    """Fields of a record, and its `lengths`, from one array for each episode and field."""
    number = len(given["rewards"])
    for field, values in given.items():
        if len(values) != number:
            raise DemonstrationError(
                f"field '{field}': holds {len(values)} episodes, but 'rewards' holds {number}"
            )
    if number == 0:
        raise DemonstrationError("field 'rewards': there are no episodes; give at least one")
    rows: dict[str, list[np.ndarray]] = {field: [] for field in given}
    for index in range(number):
        episode = check_episode({field: given[field][index] for field in given}, index)
        for field, array in episode.items():
            rows[field].append(array)
    stacked = {field: pad(arrays, field) for field, arrays in rows.items()}
    for field, array in stacked.items():
        refuse_infinite(array, field)
    return {**stacked, "lengths": read_only(np.array([len(one) for one in rows["rewards"]]))}


def pad(episodes: Sequence[np.ndarray], field: str) -> np.ndarray:
    """Stack arrays [t_i, ...] of equal dtype and row size into zero-padded [n, max t_i, ...].

    The result is read-only, so that a record takes it over without another copy.
    """
    first = episodes[0]
    for index, episode in enumerate(episodes):
        if episode.shape[1:] != first.shape[1:] or episode.dtype != first.dtype:
            raise DemonstrationError(
                f"{place(index, field)}: rows are {episode.dtype} of shape {episode.shape[1:]}, "
                f"but episode 0 has {first.dtype} of shape {first.shape[1:]}; make them alike"
            )
    shape = (len(episodes), max(map(len, episodes)), *first.shape[1:])
    if np.prod(shape, dtype=object) * first.itemsize > LARGEST_BYTES:
        raise DemonstrationError(
            f"field '{field}': padded to {shape} it needs more than {LARGEST_BYTES >> 30} GiB; "
            "cut the longest episodes or use fewer"
        )
    result = np.zeros(shape, first.dtype)
    for row, episode in zip(result, episodes, strict=True):
        row[: len(episode)] = episode
    return read_only(result)


def read_only(array: np.ndarray) -> np.ndarray:
    """Make the array read-only, and return it."""
    array.setflags(write=False)
    return array


def json_facts(facts: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A read-only copy of facts that JSON can hold (no NaN, no arrays, words as keys)."""
    try:
        return MappingProxyType(json.loads(json.dumps(dict(facts or {}), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise DemonstrationError(
            f"field 'provenance': cannot be written as JSON ({error}); use words, numbers and lists"
        ) from error
