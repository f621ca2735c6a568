"""A learned rule: ask it anything at any confidence, save it to one file."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

import tacit.inference.baselines.networks
import tacit.inference.counts.model
import tacit.inference.encoder.belief_model
import tacit.inference.reach.model  # noqa: F401  (these four make their models known)
from tacit.argument_checks import check_confidence
from tacit.errors import ArgumentError, StorageError, TacitError
from tacit.inference.constraint_model import (
    MODELS,
    ConstraintModel,
    Evidence,
    Spaces,
    check_named,
)
from tacit.runs.settings_file import installed_versions
from tacit.runs.tree_file import read_stored, write_tree

KIND = "constraint"
LARGEST_OBSERVATION = 1_000_000
"""What a damaged file claims must not decide how much memory is taken."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """A rule over observations and actions.

    Fields:
        model: what was learned.
        confidence: the level it is read at unless another is asked for.
        spaces: of observations and actions.
        any_confidence: whether other levels can be asked for.
        facts: JSON-able facts about where it came from.
        threshold: what is at least so feasible counts as feasible; below 1 only after
            `tacit.calibrate`, and then for this confidence alone.
        names: of the observed numbers.
    """

    model: ConstraintModel
    confidence: float
    spaces: Spaces
    any_confidence: bool
    facts: dict[str, Any] = field(default_factory=dict)
    threshold: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def over_time(self) -> bool:
        """Whether a step is judged with those before it (granularity `trajectory`)."""
        return self.model.over_time

    @property
    def promises(self) -> bool:
        """Whether the confidence means anything to the rule."""
        return self.model.promises

    def at(self, confidence: float) -> "Constraint":
        """The same rule, read at another confidence unless one is given."""
        return replace(self, confidence=self.check(confidence))

    def feasibility(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> Float[np.ndarray, "..."]:
        """How feasible each step is at the confidence, in [0, 1].

        Observations [..., o] and actions [..., a] may have any leading axes; actions beyond their
        box are cut to it, as a simulator does. On a table both are whole numbers [...]. With
        granularity `trajectory` the last of the leading axes is time, and each step is judged with
        those before it.
        """
        answers = self.ask("feasibility", observations, actions, confidence)
        return answers if self.threshold == 1 else np.minimum(answers / self.threshold, 1)

    def cost(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> Float[np.ndarray, "..."]:
        """What each step costs at the confidence; arguments as for `feasibility`.

        A cost lies in [0, 1]; with granularity `trajectory` it is what the step takes from the
        feasibility of its trajectory, and may be below 0 where it adds to it.
        """
        if self.threshold < 1:
            return 1 - self.feasibility(observations, actions, confidence)
        return self.ask("cost", observations, actions, confidence)

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int = 5) -> Evidence:
        """How many experts speak for and against each step, and by which of their own."""
        flat, acted, shape = self.rows(observations, actions)
        flat, acted = self.in_time(flat, acted, shape)
        return self.model.evidence(flat, acted, most=most).arranged(shape)

    def rules(self, confidence: float | None = None) -> list[Any]:
        """What is forbidden at the confidence, the strongest evidence first.

        Only what policies wanted to do and experts did not: all that a person needs to read to know
        what the experts avoided. `str(rule)` is a sentence.
        """
        if self.threshold < 1:
            raise ArgumentError("this constraint was calibrated: ask the original for its rules")
        return self.model.rules(self.check(confidence), self.names)

    def doubt(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> Float[np.ndarray, " m"]:
        """How much speaks against each of m steps; only the order of the numbers has a meaning."""
        flat, acted, _ = self.rows(observations, actions)
        return self.model.doubt(flat, acted, self.check(confidence))

    def ask(
        self,
        question: str,
        observations: np.ndarray,
        actions: np.ndarray,
        confidence: float | None,
    ) -> np.ndarray:
        """The model's answers in the arrangement of the steps."""
        level = self.check(confidence)
        flat, acted, shape = self.rows(observations, actions)
        if not len(flat):
            return np.zeros(shape, np.float32)
        flat, acted = self.in_time(flat, acted, shape)
        return self.model.answers(question, flat, acted, level).reshape(shape)

    def in_time(
        self, flat: np.ndarray, acted: np.ndarray, shape: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows as trajectories, where the model judges those."""
        if not self.over_time:
            return flat, acted
        length = shape[-1:] or (1,)
        seen, done = (values.reshape(-1, *length, *values.shape[1:]) for values in (flat, acted))
        return seen, done

    def rows(
        self, observations: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        """Steps as rows, and their arrangement; an error if they do not fit the spaces."""
        if isinstance(self.spaces.observation, gymnasium.spaces.Discrete):
            states, moves = (
                array[..., 0] if array.ndim > 1 and array.shape[-1] == 1 else array
                for array in (np.asarray(observations), np.asarray(actions))
            )
            states, moves = np.broadcast_arrays(
                numbered("states", states, self.spaces.observation),
                numbered("actions", moves, self.spaces.action),
            )
            return states.reshape(-1), moves.reshape(-1), states.shape
        seen = np.asarray(observations, np.float32)
        if seen.ndim == 0 or seen.shape[-1] != self.spaces.observation_size:
            raise ArgumentError(
                f"observations: must have {self.spaces.observation_size} numbers in their last "
                f"axis, not the shape {list(seen.shape)}"
            )
        shape = seen.shape[:-1]
        done = self.moves(np.asarray(actions), shape)
        if not (np.isfinite(seen).all() and np.isfinite(done).all()):
            raise ArgumentError("observations and actions must be finite")
        if isinstance(box := self.spaces.action, gymnasium.spaces.Box):
            done = np.clip(done, box.low.ravel(), box.high.ravel()).astype(np.float32)
        return seen.reshape(-1, seen.shape[-1]), done, shape

    def moves(self, actions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Actions as rows of the right size."""
        space = self.spaces.action
        size: tuple[int, ...] = ()
        if isinstance(space, gymnasium.spaces.Discrete):
            actions = actions[..., 0] if actions.shape == (*shape, 1) else actions
            actions = numbered("actions", actions, space)
        else:
            size = (int(np.prod(space.shape)),)
        if actions.shape != (*shape, *size):
            raise ArgumentError(
                f"actions: must have the shape {[*shape, *size]} to go with the observations, not "
                f"{list(actions.shape)}"
            )
        rows = actions.reshape(-1, *size)
        return rows.astype(np.int32) if isinstance(space, gymnasium.spaces.Discrete) else rows

    def check(self, confidence: float | None) -> float:
        """The confidence to use; an error if it is none or the model cannot answer at it."""
        if confidence is None:
            return self.confidence
        check_confidence(confidence)
        elsewhere = abs(confidence - self.confidence) > 1e-12
        if self.threshold < 1 and elsewhere:
            raise ArgumentError(f"this constraint was calibrated for {self.confidence} alone")
        if not self.any_confidence and elsewhere:
            raise ArgumentError(
                f"this constraint answers at one confidence only, {self.confidence}, for which it "
                f"was trained: infer again at {confidence}, or use a method that serves all of "
                "them, such as 'counts' and 'reach', the defaults"
            )
        return float(confidence)

    def save(self, path: Path | str) -> Path:
        """Write the constraint to one file, which needs neither the data nor the task."""
        check_named(self.model)
        header = {
            "kind": KIND,
            "model": type(self.model).name,
            "shape": self.model.shape(),
            "confidence": self.confidence,
            "threshold": self.threshold,
            "any_confidence": self.any_confidence,
            "observation_space": described(self.spaces.observation),
            "action_space": described(self.spaces.action),
            "names": list(self.names),
            "facts": self.facts,
            "tacit": installed_versions()["tacit"],
        }
        return write_tree(Path(path), self.model, header)

    @classmethod
    def load(cls, path: Path | str) -> "Constraint":
        """Read a constraint that `save` wrote; nothing in the file can run code."""
        stored = read_stored(Path(path))
        header = stored.header
        if not isinstance(header, dict) or header.get("kind") != KIND:
            raise StorageError(f"{path}: holds no constraint")
        try:
            name = header["model"]
            if name not in MODELS:
                raise ArgumentError(
                    f"its model is {name!r}, which is not known here (there are "
                    f"{', '.join(sorted(MODELS))}); import the module that defines it first"
                )
            spaces = Spaces(observations_of(header), read(header["action_space"]))
            check_confidence(header["confidence"])
            return cls(
                model=stored.tree(MODELS[name].pattern(spaces, header["shape"])),
                confidence=header["confidence"],
                spaces=spaces,
                any_confidence=bool(header["any_confidence"]),
                facts=dict(header["facts"]),
                threshold=checked_threshold(header.get("threshold", 1.0)),
                names=tuple(str(name) for name in header.get("names", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError, TacitError) as error:
            writer = header.get("tacit", "0.1.0 or earlier")
            raise StorageError(
                f"{path}: the constraint, written by tacit {writer}, is incomplete or damaged: "
                f"{error}"
            ) from None


def numbered(name: str, values: np.ndarray, space: gymnasium.Space[Any]) -> np.ndarray:
    """Whole numbers of states or actions, or an error that says which there are."""
    assert isinstance(space, gymnasium.spaces.Discrete)
    if values.dtype.kind not in "iu":
        raise ArgumentError(f"{name}: must be whole numbers, not {values.dtype}")
    if ((values < 0) | (values >= space.n)).any():
        raise ArgumentError(f"{name}: must lie in 0 to {space.n - 1}")
    return values


def described(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """A space as JSON, for files that need neither the data nor the task."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n)}
    assert isinstance(space, gymnasium.spaces.Box)
    # As text: JSON has no infinity.
    low, high = ([repr(float(bound)) for bound in side.ravel()] for side in (space.low, space.high))
    return {"kind": "box", "low": low, "high": high}


def read(description: dict[str, Any]) -> gymnasium.spaces.Box | gymnasium.spaces.Discrete:
    """The space that `described` described."""
    if description["kind"] == "discrete":
        return gymnasium.spaces.Discrete(description["n"])
    low, high = (
        np.array([float(bound) for bound in description[side]], np.float32)
        for side in ("low", "high")
    )
    return gymnasium.spaces.Box(low, high, dtype=np.float32)


def observations_of(
    header: dict[str, Any],
) -> gymnasium.spaces.Box | gymnasium.spaces.Discrete:
    """The observation space; tacit 0.1.0 wrote only how many numbers there are."""
    if "observation_space" in header:
        return read(header["observation_space"])
    size = int(header["observation_size"])
    if not 0 < size <= LARGEST_OBSERVATION:
        raise ArgumentError(f"an observation of {size} numbers cannot be")
    return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)


def checked_threshold(value: Any) -> float:
    """A threshold from a file, or an error."""
    if not isinstance(value, float | int) or not 0 < value <= 1:
        raise ArgumentError(f"threshold must lie in (0, 1], not {value!r}")
    return float(value)
