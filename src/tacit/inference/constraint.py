"""A constraint learned on a simulated task: ask it anything, save it to one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gymnasium
import jax
import numpy as np
from jaxtyping import Array, Float, Shaped

from tacit.errors import ArgumentError, StorageError
from tacit.inference.baselines.classifier_model import ClassifierModel
from tacit.inference.baselines.variational_model import VariationalModel
from tacit.inference.counts.model import check_confidence
from tacit.inference.encoder.belief_model import BeliefModel
from tacit.inference.encoder.memory import Evidence
from tacit.inference.inputs import Inputs
from tacit.inference.reach.model import ReachModel, Rule
from tacit.inference.stored_space import described_space, space_of
from tacit.runs.tree_file import read_stored, write_tree

KIND = "constraint"
ROWS_AT_ONCE = 8192
MODELS: dict[str, Any] = {
    "classifier": ClassifierModel,
    "variational": VariationalModel,
    "belief": BeliefModel,
    "reach": ReachModel,
}


class ConstraintModel(Protocol):
    """What a model must be able to say; pure functions of arrays."""

    inputs: Inputs

    def feasibility(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """How feasible each step is, in [0, 1]."""
        ...

    def cost(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """What each step costs, in [0, 1]."""
        ...

    def shape(self) -> dict[str, Any]:
        """What is needed to build a model like this one, JSON-able."""
        ...


@dataclass(frozen=True, eq=False)
class LearnedConstraint:
    """A rule over observations and actions.

    Fields:
        model: what was learned.
        confidence: the level it is read at unless another is asked for.
        action_space: of the task.
        any_confidence: whether other levels can be asked for.
        facts: JSON-able facts about where it came from.
        threshold: what is at least so feasible counts as feasible; below 1 only after
            `tacit.calibrate`, and then for this confidence alone.
    """

    model: ConstraintModel
    confidence: float
    action_space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
    any_confidence: bool
    facts: dict[str, Any]
    threshold: float = 1.0

    @property
    def over_time(self) -> bool:
        """Whether a step is judged with those before it (granularity `trajectory`)."""
        return isinstance(self.model, BeliefModel) and self.model.over_time

    @property
    def promises(self) -> bool:
        """Whether the confidence means anything to it."""
        return isinstance(self.model, BeliefModel | ReachModel)

    @property
    def observation_size(self) -> int:
        """Numbers in an observation."""
        return self.model.inputs.centre.shape[0]

    def feasibility(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> Float[np.ndarray, "..."]:
        """How feasible each step is at the confidence, in [0, 1].

        Observations [..., o] and actions [..., a] may have any leading axes; actions beyond their
        box are cut to it, as a simulator does. With granularity `trajectory` the last of these axes
        is time, and each step is judged with those before it.
        """
        answers = self.ask(feasibility_of, observations, actions, confidence)
        return answers if self.threshold == 1 else np.minimum(answers / self.threshold, 1)

    def cost(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> Float[np.ndarray, "..."]:
        """The cost of each step at the confidence, likewise.

        It lies in [0, 1]; with granularity `trajectory` it is what the step takes from the
        feasibility of its trajectory, and may be below 0 where it adds to it.
        """
        if self.threshold < 1:
            return 1 - self.feasibility(observations, actions, confidence)
        return self.ask(cost_of, observations, actions, confidence)

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int = 5) -> Evidence:
        """How many experts speak for and against each step, and by which of their own."""
        if not isinstance(self.model, BeliefModel | ReachModel):
            raise ArgumentError(
                "this constraint was not learned from votes of single experts, so that nobody can "
                "say who speaks for a step: method 'ca-icrl' keeps them"
            )
        flat, acted, shape = self.rows(observations, actions)
        flat, acted = self.in_time(flat, acted, shape)
        return self.model.evidence(flat, acted, most=most).arranged(shape)

    def rules(self, confidence: float | None = None) -> list[Rule]:
        """What is forbidden at the confidence, quantity by quantity, the strongest evidence first.

        Only sides that policies wanted to go to and experts did not: all that a person needs to
        read to know what the experts avoided.
        """
        if not isinstance(self.model, ReachModel):
            raise ArgumentError(
                "this constraint is a network, which nobody can read: method 'ca-icrl' with "
                "objective 'reach', the default, gives rules"
            )
        if self.threshold < 1:
            raise ArgumentError("this constraint was calibrated: ask the original for its rules")
        return self.model.rules(self.check(confidence))

    def ask(
        self,
        question: Any,
        observations: np.ndarray,
        actions: np.ndarray,
        confidence: float | None,
    ) -> np.ndarray:
        """Answers of the model, a few thousand steps at a time."""
        level = self.check(confidence)
        flat, acted, shape = self.rows(observations, actions)
        if not len(flat):
            return np.zeros(shape, np.float32)
        flat, acted = self.in_time(flat, acted, shape)
        answers = []
        at_once = max(1, ROWS_AT_ONCE // (flat.shape[1] if flat.ndim > 2 else 1))
        for begin in range(0, len(flat), at_once):
            parts = [values[begin : begin + at_once] for values in (flat, acted)]
            rows = len(parts[0])
            # Few shapes, so that questions of many sizes do not compile again and again.
            padded = 1 << (rows - 1).bit_length()
            seen, done = (
                np.pad(part, [(0, padded - rows)] + [(0, 0)] * (part.ndim - 1)) for part in parts
            )
            answers.append(np.asarray(question(self.model, seen, done, level))[:rows])
        return np.concatenate(answers).reshape(shape)

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
        """Steps as rows of float32 (whole numbers for discrete actions), and their arrangement."""
        seen, done = np.asarray(observations, np.float32), np.asarray(actions)
        if seen.ndim == 0 or seen.shape[-1] != self.observation_size:
            raise ArgumentError(
                f"observations: must have {self.observation_size} numbers in their last axis, not "
                f"the shape {list(seen.shape)}"
            )
        shape = seen.shape[:-1]
        if isinstance(self.action_space, gymnasium.spaces.Discrete):
            done = done[..., 0] if done.shape == (*shape, 1) else done
            size: tuple[int, ...] = ()
            if done.dtype.kind not in "iu":
                raise ArgumentError("actions: must be whole numbers")
            if ((done < 0) | (done >= self.action_space.n)).any():
                raise ArgumentError(f"actions: must lie in 0 to {self.action_space.n - 1}")
            kind: Any = np.int32
        else:
            size, kind = (int(np.prod(self.action_space.shape)),), np.float32
        if done.shape != (*shape, *size):
            raise ArgumentError(
                f"actions: must have the shape {[*shape, *size]} to go with the observations, not "
                f"{list(done.shape)}"
            )
        if not (np.isfinite(seen).all() and np.isfinite(done).all()):
            raise ArgumentError("observations and actions must be finite")
        if isinstance(self.action_space, gymnasium.spaces.Box):
            done = np.clip(done, self.action_space.low.ravel(), self.action_space.high.ravel())
        return seen.reshape(-1, seen.shape[-1]), done.reshape(-1, *size).astype(kind), shape

    def check(self, confidence: float | None) -> float:
        """The confidence to use; an error if it is none or the model cannot answer at it."""
        if confidence is None:
            return self.confidence
        check_confidence(confidence)
        if self.threshold < 1 and abs(confidence - self.confidence) > 1e-12:
            raise ArgumentError(f"this constraint was calibrated for {self.confidence} alone")
        if not self.any_confidence and abs(confidence - self.confidence) > 1e-12:
            raise ArgumentError(
                f"this constraint answers at one confidence only, {self.confidence}; one learned "
                "by method 'ca-icrl' answers at all, but for objective 'quantile'"
            )
        return float(confidence)

    def save(self, path: Path | str) -> Path:
        """Write the constraint to one file, which needs neither the data nor the task."""
        kinds = {kind: name for name, kind in MODELS.items()}
        header = {
            "kind": KIND,
            "model": kinds[type(self.model)],
            "shape": self.model.shape(),
            "confidence": self.confidence,
            "threshold": self.threshold,
            "any_confidence": self.any_confidence,
            "observation_size": self.observation_size,
            "action_space": described_space(self.action_space),
            "facts": self.facts,
        }
        return write_tree(Path(path), self.model, header)

    @classmethod
    def load(cls, path: Path | str) -> "LearnedConstraint":
        """Read a constraint that `save` wrote; nothing in the file can run code."""
        stored = read_stored(Path(path))
        header = stored.header
        if not isinstance(header, dict) or header.get("kind") != KIND:
            raise StorageError(f"{path}: holds no constraint")
        try:
            space = space_of(header["action_space"])
            size, kind = int(header["observation_size"]), MODELS[header["model"]]
            # Shapes alone: what a file claims must not decide how much memory is taken.
            like = jax.eval_shape(lambda: kind.blank(Inputs.blank(size, space), header["shape"]))
            check_confidence(header["confidence"])
            return cls(
                model=stored.tree(like),
                confidence=header["confidence"],
                action_space=space,
                any_confidence=bool(header["any_confidence"]),
                facts=dict(header["facts"]),
                threshold=checked_threshold(header.get("threshold", 1.0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArgumentError) as error:
            raise StorageError(
                f"{path}: the constraint is incomplete or damaged: {error}"
            ) from None


def checked_threshold(value: Any) -> float:
    """A threshold from a file, or an error."""
    if not isinstance(value, float | int) or not 0 < value <= 1:
        raise ArgumentError(f"threshold must lie in (0, 1], not {value!r}")
    return float(value)


@jax.jit
def feasibility_of(model: Any, observations: Array, actions: Array, confidence: float) -> Array:
    """`model.feasibility`, compiled."""
    return model.feasibility(observations, actions, confidence)


@jax.jit
def cost_of(model: Any, observations: Array, actions: Array, confidence: float) -> Array:
    """`model.cost`, compiled."""
    return model.cost(observations, actions, confidence)
