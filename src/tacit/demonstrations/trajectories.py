"""What the experts did: episodes to choose from, to put together, to load and to save."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tacit.demonstrations import checks
from tacit.demonstrations.episode_arrays import ARRAY_FIELDS, EpisodeArrays, PathName
from tacit.demonstrations.import_formats import read_csv, read_npz, write_csv, write_npz
from tacit.demonstrations.minari_file import (
    FILE_SUFFIXES,
    read_minari,
    refuse_foreign_folder,
    write_minari,
)
from tacit.errors import ArgumentError, DemonstrationError, StorageError

ENDINGS = (*FILE_SUFFIXES, ".npz", ".csv")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Trajectories(EpisodeArrays):
    """What the experts did, as read-only arrays, padded with zeros beyond each episode's length.

        demonstrations = Trajectories.load("experts.hdf5")
        few = demonstrations.subset(10, seed=0)

    T is the length of the longest episode and observations have T+1 rows: one before each action
    and the final one. Whole numbers (tabular states and actions) are kept as int64 with a last
    dimension of 1, real ones as float32 or float64. Two records are equal when their numbers are;
    where they came from (`provenance`) does not matter.

    Attributes:
        observations: [n, T+1, o].
        actions: [n, T, a].
        rewards: [n, T].
        lengths: [n], the number of steps of each episode, at least 1.
        costs: [n, T], the true cost of each step, or None when it is unknown.
        terminated: [n], whether the task ended the episode (true) or the time limit (false).
        provenance: JSON-able facts: task, seed, settings, versions ...
    """

    def take(self, indices: ArrayLike) -> Self:
        """The episodes with these numbers, in this order."""
        return self.chosen(indices, self.provenance)

    def subset(self, number: int, *, seed: int) -> Self:
        """`number` random episodes; a smaller subset of one seed is the start of a larger one."""
        if not 1 <= number <= len(self):
            raise ArgumentError(
                f"number: is {number}; there are {len(self)} episodes, ask for 1 to {len(self)}"
            )
        if seed < 0:
            raise ArgumentError(f"seed: is {seed}; use a whole number from 0 on")
        order = np.random.default_rng(seed).permutation(len(self))
        drawn = {"number": int(number), "seed": int(seed), "of": len(self)}
        earlier = list(self.provenance.get("subsets", []))
        return self.chosen(order[:number], {**self.provenance, "subsets": [*earlier, drawn]})

    def chosen(self, indices: ArrayLike, provenance: Mapping[str, Any]) -> Self:
        """The episodes with these numbers, with another provenance."""
        where = np.asarray(indices)
        if where.ndim != 1 or where.size == 0 or where.dtype.kind not in "iu":
            raise ArgumentError("indices: needs a non-empty list of episode numbers")
        if where.min() < -len(self) or where.max() >= len(self):
            raise ArgumentError(f"indices: there are only episodes 0 to {len(self) - 1}")
        steps = int(self.lengths[where].max())
        kept: dict[str, Any] = {}
        for name in ARRAY_FIELDS:
            array = getattr(self, name)
            if array is not None:
                rows = slice(steps + (name == "observations")) if array.ndim > 1 else ...
                kept[name] = checks.read_only(array[where, rows])
        return type(self)(**kept, provenance=provenance)

    @classmethod
    def merge(cls, parts: Sequence["Trajectories"]) -> Self:
        """All episodes of several records, in order; sizes and number types must agree."""
        if not parts:
            raise ArgumentError("parts: there is nothing to merge; give at least one record")
        if len({part.costs is None for part in parts}) > 1:
            raise DemonstrationError("field 'costs': some parts have costs and some do not")
        arrays: dict[str, Any] = {}
        for name in ("observations", "actions", "rewards", "costs"):
            if getattr(parts[0], name) is not None:
                rows = [row for part in parts for row in getattr(part, name)]
                arrays[name] = checks.pad(rows, name)
        origins = [dict(part.provenance) for part in parts]
        alike = all(origin == origins[0] for origin in origins)
        return cls(
            **arrays,
            lengths=np.concatenate([part.lengths for part in parts]),
            terminated=np.concatenate([part.terminated for part in parts]),
            provenance=origins[0] if alike else {"merged": origins},
        )

    def __add__(self, other: "Trajectories") -> "Trajectories":
        if not isinstance(other, Trajectories):
            return NotImplemented
        return Trajectories.merge([self, other])

    def save(self, path: PathName) -> None:
        """Write the format that the ending tells.

        `.hdf5` and `.h5` are one file in Minari's layout, `.npz` an archive, `.csv` a table; a name
        without an ending becomes a folder that Minari opens.
        """
        path = Path(path)
        check_ending(path)
        writers = {".npz": write_npz, ".csv": write_csv}
        writers.get(path.suffix, write_minari)(self, path)

    @classmethod
    def load(cls, path: PathName) -> Self:
        """Read the format that the ending tells: what `save` or Minari wrote, whole or not at all.

        `.npz` and `.csv` are read as by `from_npz` and `from_csv`; everything else is an HDF5 file
        or a folder in Minari's layout.
        """
        path = Path(path)
        readers = {".npz": cls.from_npz, ".csv": cls.from_csv}
        if path.suffix in readers:
            return readers[path.suffix](path)
        return cls.of(vars(read_minari(path)))

    def to_npz(self, path: PathName) -> None:
        """Write the padded arrays under their field names."""
        write_npz(self, path)

    @classmethod
    def from_npz(cls, path: PathName) -> Self:
        """Read padded arrays with lengths, or flat ones with terminals and timeouts."""
        return cls.of(vars(read_npz(path)))

    def to_csv(self, path: PathName) -> None:
        """Write one row per step and one per final observation."""
        write_csv(self, path)

    @classmethod
    def from_csv(cls, path: PathName, *, precision: type = np.float64) -> Self:
        """Read a table of steps; real numbers become `precision` (np.float32 or np.float64)."""
        return cls.of(vars(read_csv(path, precision)))


def check_ending(path: Path) -> None:
    """Refuse an ending that names another format than those that `Trajectories.save` writes."""
    if path.suffix not in ENDINGS and path.suffix[1:].isalpha():
        raise ArgumentError(
            f"{path}: the ending must be .hdf5, .npz, .csv, or none for a folder in Minari's layout"
        )


def check_destination(path: Path) -> None:
    """Raise an error now if `Trajectories.save` could not write there after long work."""
    check_ending(path)
    if path.suffix not in ENDINGS:
        refuse_foreign_folder(path, path / "data")
    elif path.is_dir():
        raise StorageError(f"{path}: is a folder; choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error})") from error
    if not os.access(path.parent, os.W_OK):
        raise StorageError(f"{path}: {path.parent} cannot be written to; check its permissions")
