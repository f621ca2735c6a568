"""The demonstrations as constraint models read them: steps and windows drawn at random."""

import hashlib
from dataclasses import dataclass, replace

import gymnasium
import numpy as np
from jaxtyping import Float, Int, Shaped

from tacit.demonstrations import checks
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import simulator_of
from tacit.environments.task import SimulatedTask
from tacit.errors import DemonstrationError
from tacit.inference.counts.model import check_trajectories, visits_of
from tacit.inference.inputs import Steps

# Simulators report what they did in float32: a demonstrated action may be off by its rounding.
OUTSIDE = 1e-4


@dataclass(frozen=True, eq=False)
class ExpertSteps:
    """N demonstrations of a simulated task; large arrays are views, never copied.

    Fields:
        observations: [N, T+1, o].
        actions: [N, T, a], or [N, T] whole numbers where actions are discrete.
        lengths: [N] steps of each.
        ends: [N] running sum of the lengths.
        mean_return: of an episode.
    """

    observations: Float[np.ndarray, "N rows o"]
    actions: Shaped[np.ndarray, "N T ..."]
    lengths: Int[np.ndarray, " N"]
    ends: Int[np.ndarray, " N"]
    mean_return: float

    @classmethod
    def of(cls, task: SimulatedTask, demonstrations: Trajectories) -> "ExpertSteps":
        """The demonstrations, if they can be of this task; an error that says why not otherwise."""
        check_trajectories(demonstrations)
        check_observations(task, demonstrations)
        check_actions(task, demonstrations)
        actions = demonstrations.actions
        if isinstance(task.action_space, gymnasium.spaces.Discrete):
            actions = actions[:, :, 0]
        lengths = demonstrations.lengths
        return cls(
            observations=demonstrations.observations,
            actions=actions,
            lengths=lengths,
            ends=np.cumsum(lengths),
            mean_return=float(demonstrations.returns.mean()),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def draw(self, number: int, generator: np.random.Generator) -> Steps:
        """Steps drawn evenly from all steps of all experts, with replacement."""
        return self.at(*self.places(number, generator))

    def places(
        self, number: int, generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " B"], Int[np.ndarray, " B"]]:
        """Which expert and which step, drawn evenly from all steps."""
        flat = generator.integers(self.ends[-1], size=number)
        expert = np.searchsorted(self.ends, flat, side="right")
        return expert, flat - (self.ends[expert] - self.lengths[expert])

    def at(self, expert: np.ndarray, step: np.ndarray) -> Steps:
        """The steps at these places."""
        present = np.ones(expert.shape, bool)
        return Steps.on_host(self.observations[expert, step], self.actions[expert, step], present)

    def windows(self, number: int, width: int, generator: np.random.Generator) -> Steps:
        """[B, W] pieces of trajectories that begin at steps drawn evenly; padded at the end."""
        expert, begin = self.places(number, generator)
        step = begin[:, None] + np.arange(width)
        present = step < self.lengths[expert][:, None]
        step = np.minimum(step, self.lengths[expert][:, None] - 1)
        rows = expert[:, None], step
        return Steps.on_host(self.observations[rows], self.actions[rows], present)


def check_observations(task: SimulatedTask, demonstrations: Trajectories) -> None:
    """They must have as many numbers as the task's."""
    size, wanted = demonstrations.observations.shape[2], task.observation_space.shape[0]
    if size != wanted:
        raise DemonstrationError(
            f"observations: {task.name} has {wanted} numbers, the demonstrations have {size}; "
            "are these demonstrations of another task?"
        )


def check_actions(task: SimulatedTask, demonstrations: Trajectories) -> None:
    """They must be of the task's kind, size and range."""
    actions, space = demonstrations.actions, task.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        if actions.shape[2] != 1 or actions.dtype.kind not in "iu":
            raise DemonstrationError(
                f"actions: {task.name} has one whole number per step, but the demonstrations have "
                f"{actions.shape[2]} x {actions.dtype}"
            )
        low, high = np.array([0]), np.array([space.n - 1])
    else:
        wanted = int(np.prod(space.shape))
        if actions.shape[2] != wanted:
            raise DemonstrationError(
                f"actions: {task.name} has {wanted} numbers, the demonstrations have "
                f"{actions.shape[2]}; are these demonstrations of another task?"
            )
        room = OUTSIDE * (1 + np.abs(space.high.ravel()))
        low, high = space.low.ravel() - room, space.high.ravel() + room
    check_range(task.name, demonstrations, low, high)


def check_range(name: str, demonstrations: Trajectories, low: np.ndarray, high: np.ndarray) -> None:
    """Every action lies between `low` and `high`; some episodes at a time, to spare memory."""
    actions = demonstrations.actions
    for part in checks.blocks(actions):
        steps = np.arange(actions.shape[1]) < demonstrations.lengths[part, None]
        outside = ((actions[part] < low) | (actions[part] > high)) & steps[:, :, None]
        if not outside.any():
            continue
        row, step, place = np.argwhere(outside)[0]
        episode = part.start + row
        raise DemonstrationError(
            f"actions: number {place} at episode {episode}, step {step} is "
            f"{actions[episode, step, place]:g}, outside of {name}'s range, {low[place]:.4g} "
            f"to {high[place]:.4g}; cut them to the range (numpy.clip) if the simulator does so"
        )


def as_simulated(
    task: TabularTask | SimulatedTask, demonstrations: Trajectories
) -> tuple[SimulatedTask, Trajectories]:
    """A table as a simulator, and its demonstrations with what that shows: state and time.

    A simulated task and its demonstrations stay as they are. See
    `tacit.environments.tabular_world` for the observations.
    """
    if not isinstance(task, TabularTask):
        return task, demonstrations
    visits_of(task, demonstrations)
    states = demonstrations.observations[:, :, 0]
    rows = states.shape[1]
    observations = np.zeros((*states.shape, task.number_of_states + 1), np.float32)
    np.put_along_axis(observations, states[:, :, None], 1.0, axis=2)
    observations[:, :, -1] = np.arange(rows) / task.horizon
    beyond = np.arange(rows) > demonstrations.lengths[:, None]
    observations[beyond] = 0
    return simulator_of(task), replace(demonstrations, observations=observations)


def fingerprint(experts: ExpertSteps | Trajectories) -> str:
    """A sha256 of the demonstrations, so that a run is not continued with others."""
    digest = hashlib.sha256(np.ascontiguousarray(experts.lengths).tobytes())
    for array in (experts.observations, experts.actions):
        digest.update(f"{array.dtype} {array.shape}".encode())
        # Whole arrays at once would double the memory of 20,000 experts.
        for episode in array:
            digest.update(np.ascontiguousarray(episode).data)
    return digest.hexdigest()
