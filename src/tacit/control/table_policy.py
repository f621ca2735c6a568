"""Policies of tables: probabilities of actions for every step, with the face of an agent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from tacit.control import actor
from tacit.control.actor import Actor
from tacit.errors import ArgumentError, StorageError
from tacit.runs.files import read_arrays, write_arrays

KIND = "table policy"
# Policies are planned in double precision, but may have been kept in single.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """Probabilities of every action in every state at every step of an episode.

    It has to know the step: hand the state that `predict` returns to the next call.

        action, step = policy.predict(observation, step)

    Fields:
        table: [H, S, A] probabilities, the first index being the step of the episode.
    """

    table: Float[np.ndarray, "H S A"]

    def __post_init__(self) -> None:
        table = np.asarray(self.table)
        if table.ndim != 3 or 0 in table.shape or table.dtype.kind != "f":
            raise ArgumentError(
                "the policy of a table must be an array [steps, states, actions] of "
                f"probabilities, not one of the shape {list(table.shape)} and type {table.dtype}"
            )
        # Written so that NaN fails too.
        if not ((table >= 0).all() and (np.abs(table.sum(axis=2) - 1) <= ROUNDING).all()):
            raise ArgumentError(
                "the policy of a table must hold probabilities: in each state, at each step, those "
                "of the actions must be at least 0 and add up to 1"
            )
        object.__setattr__(self, "table", table)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """The likeliest action, as agents of Stable-Baselines3 are asked for it.

        Arguments:
            observation: the number of a state, or [n] of them from worlds side by side.
            state: steps of the episode taken so far, one number or [n]; None for 0.
            episode_start: where this is true, the step is 0 whatever `state` says.
            deterministic: must be true.

        Returns:
            The action and the step to go on from, or [n] of each.
        """
        if not deterministic:
            raise ArgumentError(
                "predict takes the likeliest action (deterministic=True); draw random ones with a "
                "generator of your own from `table[step, state]`"
            )
        places = self.checked_states(observation)
        steps = fitted("state", 0 if state is None else state, places.shape)
        if steps.dtype.kind not in "iu":
            raise ArgumentError(f"state must be whole numbers, not {steps.dtype}")
        if episode_start is not None:
            steps = np.where(fitted("episode_start", episode_start, places.shape), 0, steps)
        if (steps < 0).any() or (steps >= len(self.table)).any():
            raise ArgumentError(
                f"this policy knows the steps 0 to {len(self.table) - 1} of an episode, not "
                f"{steps.max() if (steps >= 0).all() else steps.min()}; where a new episode "
                "begins, set episode_start"
            )
        actions = self.table[steps, places].argmax(axis=-1)
        return actions, steps + 1

    def checked_states(self, observation: Any) -> Int[np.ndarray, "*n"]:
        """States as numbers that the table has."""
        places = np.asarray(observation)
        number = self.table.shape[1]
        if places.ndim > 1 or places.dtype.kind not in "iu":
            raise ArgumentError(
                "observations of a table are numbers of states, one or [n] of them, not an array "
                f"of the shape {list(places.shape)} and type {places.dtype}"
            )
        if (places < 0).any() or (places >= number).any():
            raise ArgumentError(f"states of this policy have the numbers 0 to {number - 1}")
        return places

    def save(self, path: Path | str, facts: dict[str, Any] | None = None) -> Path:
        """Write the policy to one safetensors file, with JSON-able facts beside it."""
        return write_arrays(Path(path), {"table": self.table}, {**(facts or {}), "kind": KIND})

    @classmethod
    def load(cls, path: Path | str) -> "TablePolicy":
        """Read a policy that `save` wrote."""
        arrays, header = read_arrays(Path(path))
        if header.get("kind") != KIND:
            raise StorageError(f"{path}: holds no policy of a table")
        try:
            return cls(arrays["table"])
        except KeyError:
            raise StorageError(f"{path}: the policy is incomplete: the table is missing") from None
        except ArgumentError as error:
            raise StorageError(f"{path}: {error}") from None


def load_policy(path: Path | str) -> Actor | TablePolicy:
    """Read a policy that `Actor.save` or `TablePolicy.save` wrote."""
    kinds = {actor.KIND: Actor, KIND: TablePolicy}
    _, header = read_arrays(Path(path))
    if header.get("kind") not in kinds:
        raise StorageError(f"{path}: holds no policy")
    return kinds[header["kind"]].load(path)


def fitted(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """One value for each observation; a single one stands for all."""
    values = np.asarray(given)
    if values.size == 1:
        return np.broadcast_to(values.reshape(()), shape)
    if values.shape != shape:
        raise ArgumentError(
            f"{name} must be one value or {list(shape)} like the observations, not "
            f"{list(values.shape)}"
        )
    return values
