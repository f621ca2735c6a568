"""What distinguishes one MuJoCo task from another, in one record."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from tacit.argument_checks import check_choice
from tacit.errors import TaskError

LARGEST_NOISE = 1e6
Choice = TypeVar("Choice")
Reward = Callable[
    [
        Float[np.ndarray, " n"],
        Float[np.ndarray, "n s"],
        Float[np.ndarray, "n a"],
        float,
    ],
    Float[np.ndarray, " n"],
]


@dataclass(frozen=True)
class Noise:
    r"""Gaussian noise on the state that a control step leads to, written into the physics.

    The paper adds N(0, 0.2) to the state of every task. Literally on all of qpos and qvel this
    cannot be played (the pendulum falls in a third of all single steps), so the default is

        \dot q' \leftarrow \dot q' + \eta,    \eta_j \sim N(0, std^2) independent.

    Fields:
        std: standard deviation; 0 is exactly the deterministic task.
        on: "velocity" adds it to qvel, "state" to qpos and qvel. An orientation that was moved
            (the four numbers of the ant's quaternion) is scaled back to length one.
        shared: the benchmark's noise: one draw for all of qpos and another for all of qvel.
    """

    std: float = 0.2
    on: str = "velocity"
    shared: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.std <= LARGEST_NOISE:
            raise TaskError(f"noise_std must lie in [0, {LARGEST_NOISE:g}], not {self.std}")
        check_choice("noise_on", self.on, ("velocity", "state"), TaskError)

    def width(self, positions: int, velocities: int) -> int:
        """How many numbers are drawn for each step of a world."""
        if self.on == "state":
            return 2 if self.shared else positions + velocities
        return 1 if self.shared else velocities


@dataclass(frozen=True)
class MujocoRules:
    """Everything that makes a MuJoCo task; `MujocoWorlds` plays by it.

    "Before" and "after" are around the simulator call; the reward never sees the noise, while
    the true cost and the end of an episode look at the state with its noise.

    Fields:
        name: of the task.
        model_file: of the robot, among Gymnasium's XML files.
        frame_skip: simulator steps in one control step.
        reward: `reward(x before, state after, clipped actions, seconds)` for n worlds at once.
        has_fallen: which of n states end the episode; None where none does.
        start_positions: qpos starts within this of the model's own, uniformly.
        start_velocities: the same for qvel, or the standard deviation where they are Gaussian.
        gaussian_start: whether the first velocities are drawn from a Gaussian.
        limit: where the forbidden side of x begins, in metres.
        forbidden: "below" forbids x < limit, "above" forbids x > limit; x = limit is allowed.
        horizon: steps after which an episode is cut short.
        noise: what is added to the state after each step.
        contact_forces: "none"; "zeros" appends one zero for each force, as all published results
            have it; "real" appends the forces themselves, clipped to [-1, 1], and charges for them.
        contact_weight: price of the sum of squares of real contact forces.
    """

    name: str
    model_file: str
    frame_skip: int
    reward: Reward
    has_fallen: Callable[[Float[np.ndarray, "n s"]], Bool[np.ndarray, " n"]] | None
    start_positions: float
    start_velocities: float
    gaussian_start: bool
    limit: float
    forbidden: Literal["below", "above"]
    horizon: int
    noise: Noise
    contact_forces: str = "none"
    contact_weight: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.limit):
            raise TaskError(f"limit must be a number of metres, not {self.limit}")
        if self.horizon < 1:
            raise TaskError(f"horizon must be at least one step, not {self.horizon}")
        check_choice("contact_forces", self.contact_forces, ("zeros", "real", "none"), TaskError)


def choose_variant(variant: str, *, paper: Choice, benchmark: Choice) -> Choice:
    """The numbers of the paper's own code, or those of the benchmark it builds on."""
    check_choice("variant", variant, ("paper", "benchmark"), TaskError)
    return paper if variant == "paper" else benchmark


def sum_of_squares(values: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Of each row; rows are summed in the same order however many there are."""
    return np.square(values).sum(axis=1)
