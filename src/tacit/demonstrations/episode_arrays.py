"""Episodes of different lengths as one immutable record of arrays: what every format reads."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int64, Shaped
from numpy.typing import ArrayLike

from tacit.demonstrations import checks
from tacit.errors import DemonstrationError

PathName = str | PathLike[str]
ARRAY_FIELDS = ("observations", "actions", "rewards", "lengths", "costs", "terminated")


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
class EpisodeArrays:
    """The arrays of `Trajectories`, which describes them, checked and read-only."""

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

        Arrays are copied, unless they are of the right kind and read-only: after
        `setflags(write=False)` they are taken over, so that large ones are not held twice.
        """
        rows = checks.episode_lengths(lengths)
        padded = checks.padded_field
        self.keep(
            {
                "observations": padded(observations, "observations", rows + 1, 3),
                "actions": padded(actions, "actions", rows, 3),
                "rewards": padded(rewards, "rewards", rows, 2),
                "lengths": checks.read_only(rows.copy()),
                "costs": None if costs is None else padded(costs, "costs", rows, 2),
                "terminated": checks.endings(terminated, rows.size),
                "provenance": checks.json_facts(provenance),
            }
        )

    def keep(self, fields: Mapping[str, Any]) -> None:
        """Take over fields that were checked already."""
        for name in (*ARRAY_FIELDS, "provenance"):
            object.__setattr__(self, name, fields.get(name))

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """A record of fields that were checked already, as those of another record were."""
        record = object.__new__(cls)
        record.keep(fields)
        return record

    @classmethod
    def from_arrays(
        cls,
        observations: Sequence[Any] | np.ndarray,
        actions: Sequence[Any] | np.ndarray,
        rewards: Sequence[Any] | np.ndarray,
        costs: Sequence[Any] | np.ndarray | None = None,
        terminated: ArrayLike | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Self:
        """Episodes of any lengths, one array each: observations [t+1, o], actions [t, a], ...

        One-dimensional integer observations or actions are discrete states or actions.
        """
        given = {"observations": observations, "actions": actions, "rewards": rewards}
        if costs is not None:
            given["costs"] = costs
        stacked = checks.stack_episodes(given)
        return cls.of(
            {
                **stacked,
                "terminated": checks.endings(terminated, len(stacked["lengths"])),
                "provenance": checks.json_facts(provenance),
            }
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
        if not isinstance(other, EpisodeArrays):
            return NotImplemented
        return all(same(getattr(self, name), getattr(other, name)) for name in ARRAY_FIELDS)

    __hash__ = None  # type: ignore[assignment]  # equal by content, too large to hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Let worker processes and `copy` pass records on; nothing is written to disk this way."""
        arrays = [getattr(self, name) for name in ARRAY_FIELDS]
        return type(self), (*arrays, dict(self.provenance))

    def __repr__(self) -> str:
        observation, action = self.observations, self.actions
        return (
            f"{type(self).__name__}({len(self)} episodes, {self.steps} steps, "
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


def same(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Whether both are absent, or hold the same numbers of the same type."""
    if left is None or right is None:
        return left is right
    return left.dtype == right.dtype and np.array_equal(left, right)
