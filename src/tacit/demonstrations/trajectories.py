"""What the experts did: episodes of different lengths as one immutable record of arrays."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64, Shaped
from numpy.typing import ArrayLike

from tacit.demonstrations import checks
from tacit.errors import ArgumentError, DemonstrationError

PathName = str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode without padding; observations have one row more than actions."""

    observations: Shaped[np.ndarray, "rows observation"]
    actions: Shaped[np.ndarray, "steps action"]
    rewards: Float[np.ndarray, " steps"]
    costs: Float[np.ndarray, " steps"] | None
    terminated: bool

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Trajectories:
    """Episodes as read-only arrays, padded with zeros beyond each episode's length.

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

    observations: Shaped[np.ndarray, "number rows observation"]
    actions: Shaped[np.ndarray, "number steps action"]
    rewards: Float[np.ndarray, "number steps"]
    lengths: Int64[np.ndarray, " number"]
    costs: Float[np.ndarray, "number steps"] | None
    terminated: Bool[np.ndarray, " number"]
    provenance: Mapping[str, Any]

    def __init__(
        self,
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        lengths: ArrayLike,
        costs: ArrayLike | None = None,
        terminated: ArrayLike | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        """Check every field and keep it read-only, cut to the longest episode.

        Arrays are copied, unless they are of the right kind and read-only: whoever has called
        `setflags(write=False)` has given them up, and large ones are not held twice.
        """
        rows = checks.episode_lengths(lengths)
        padded = checks.padded_field
        clean = {
            "observations": padded(observations, "observations", rows + 1, 3),
            "actions": padded(actions, "actions", rows, 3),
            "rewards": padded(rewards, "rewards", rows, 2),
            "lengths": checks.read_only(rows.copy()),
            "costs": None if costs is None else padded(costs, "costs", rows, 2),
            "terminated": checks.endings(terminated, rows.size),
            "provenance": checks.json_facts(provenance),
        }
        for name, value in clean.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_arrays(
        cls,
        observations: Sequence[Any] | np.ndarray,
        actions: Sequence[Any] | np.ndarray,
        rewards: Sequence[Any] | np.ndarray,
        costs: Sequence[Any] | np.ndarray | None = None,
        terminated: ArrayLike | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> "Trajectories":
        """Episodes of any lengths, one array each: observations [t+1, o], actions [t, a], ...

        One-dimensional integer observations or actions are discrete states or actions.
        """
        given = {"observations": observations, "actions": actions, "rewards": rewards}
        if costs is not None:
            given["costs"] = costs
        for field, values in given.items():
            if len(values) != len(rewards):
                raise DemonstrationError(
                    f"field '{field}': holds {len(values)} episodes, but 'rewards' holds "
                    f"{len(rewards)}"
                )
        if len(rewards) == 0:
            raise DemonstrationError("field 'rewards': there are no episodes; give at least one")
        rows: dict[str, list[np.ndarray]] = {field: [] for field in given}
        for index in range(len(rewards)):
            episode = checks.episode_arrays({name: given[name][index] for name in given}, index)
            for name, array in episode.items():
                rows[name].append(array)
        return cls(
            **{name: checks.pad(arrays, name) for name, arrays in rows.items()},
            lengths=np.array([len(array) for array in rows["rewards"]]),
            terminated=terminated,
            provenance=provenance,
        )

    def __len__(self) -> int:
        return self.lengths.size

    def __getitem__(self, index: int) -> Episode:
        index = range(len(self))[operator.index(index)]
        steps = self.lengths[index]
        return Episode(
            observations=self.observations[index, : steps + 1],
            actions=self.actions[index, :steps],
            rewards=self.rewards[index, :steps],
            costs=None if self.costs is None else self.costs[index, :steps],
            terminated=bool(self.terminated[index]),
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectories):
            return NotImplemented
        return all(same(getattr(self, name), getattr(other, name)) for name in ARRAY_FIELDS)

    __hash__ = None  # type: ignore[assignment]  # equal by content, too large to hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets worker processes and `copy` pass records on; nothing is written to disk this way."""
        arrays = [getattr(self, name) for name in ARRAY_FIELDS]
        return Trajectories, (*arrays, dict(self.provenance))

    def __repr__(self) -> str:
        observation, action = self.observations, self.actions
        return (
            f"Trajectories({len(self)} episodes, {self.steps} steps, "
            f"observations {observation.shape[2]} x {observation.dtype}, "
            f"actions {action.shape[2]} x {action.dtype}, "
            f"{'without' if self.costs is None else 'with'} costs)"
        )

    @property
    def steps(self) -> int:
        """The number of steps of all episodes together."""
        return int(self.lengths.sum())

    @property
    def returns(self) -> Float[np.ndarray, " number"]:
        """The sum of rewards of each episode."""
        return self.rewards.sum(axis=1)

    @property
    def violated(self) -> Bool[np.ndarray, " number"]:
        """Whether any step of the episode has a cost above zero."""
        if self.costs is None:
            raise DemonstrationError(
                "field 'costs': these trajectories have none, so whether they violate is unknown"
            )
        return np.any(self.costs > 0, axis=1)

    @property
    def mask(self) -> Bool[np.ndarray, "number steps"]:
        """True where there is a step, false where there is padding."""
        return np.arange(self.rewards.shape[1]) < self.lengths[:, None]

    def take(self, indices: ArrayLike) -> "Trajectories":
        """The episodes with these numbers, in this order."""
        return self.chosen(indices, self.provenance)

    def subset(self, number: int, *, seed: int) -> "Trajectories":
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

    def chosen(self, indices: ArrayLike, provenance: Mapping[str, Any]) -> "Trajectories":
        """The episodes with these numbers, with their own provenance."""
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
        return Trajectories(**kept, provenance=provenance)

    @classmethod
    def merge(cls, parts: Sequence["Trajectories"]) -> "Trajectories":
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
        """Write one HDF5 file (`.hdf5`, `.h5`), or else a folder that Minari opens."""
        from tacit.demonstrations.dataset_file import save

        save(self, path)

    @classmethod
    def load(cls, path: PathName) -> "Trajectories":
        """Read what `save` or Minari wrote: an HDF5 file or a data set folder."""
        from tacit.demonstrations.dataset_file import load

        return load(path)

    def to_npz(self, path: PathName) -> None:
        """Write the padded arrays under their field names."""
        from tacit.demonstrations.import_formats import write_npz

        write_npz(self, path)

    @classmethod
    def from_npz(cls, path: PathName) -> "Trajectories":
        """Read padded arrays with lengths, or flat ones with terminals and timeouts."""
        from tacit.demonstrations.import_formats import read_npz

        return read_npz(path)

    def to_csv(self, path: PathName) -> None:
        """Write one row per step and one per final observation."""
        from tacit.demonstrations.csv_table import write_csv

        write_csv(self, path)

    @classmethod
    def from_csv(cls, path: PathName, *, precision: type = np.float64) -> "Trajectories":
        """Read a table of steps; real numbers become `precision` (np.float32 or np.float64)."""
        from tacit.demonstrations.csv_table import read_csv

        return read_csv(path, precision)


ARRAY_FIELDS = ("observations", "actions", "rewards", "lengths", "costs", "terminated")


def same(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Both absent, or the same numbers of the same type."""
    if left is None or right is None:
        return left is right
    return left.dtype == right.dtype and np.array_equal(left, right)
