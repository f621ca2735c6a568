"""What distinguishes one MuJoCo task from another: its robot, and its rules in one record."""

# MuJoCo's names are made in C++ and come without stubs.
# pyright: reportAttributeAccessIssue=false

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import gymnasium
import mujoco
import numpy as np
from jaxtyping import Bool, Float

from tacit.argument_checks import check_choice
from tacit.errors import TaskError

FOLDER = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
LARGEST_NOISE = 1e6
# Root joints by their axis, and what a free joint adds to qpos and to qvel.
AXIS_WORDS = {
    mujoco.mjtJoint.mjJNT_SLIDE: ("x", "y", "z"),
    mujoco.mjtJoint.mjJNT_HINGE: ("roll", "pitch", "yaw"),
}
FREE_POSITIONS = ("x", "y", "z", *(f"orientation {part}" for part in "wxyz"))
FREE_ROTATIONS = ("x", "y", "z", "roll", "pitch", "yaw")
Choice = TypeVar("Choice")
Reward = Callable[
    [Float[np.ndarray, " n"], Float[np.ndarray, "n s"], Float[np.ndarray, "n a"], float],
    Float[np.ndarray, " n"],
]


@dataclass(frozen=True)
class Noise:
    r"""Gaussian noise on the state that a control step leads to, written into the physics.

    The paper adds N(0, 0.2) to the state of every task. Added to all of qpos and qvel, nobody can
    act on it (the pendulum falls in a third of all single steps), so the default is

        \dot q' \leftarrow \dot q' + \eta,    \eta_j \sim N(0, std^2) independent.

    Fields:
        std: standard deviation; 0 is exactly the deterministic task.
        on: "velocity" adds it to qvel, "state" to qpos and qvel. The ant's orientation (the
            four numbers of a quaternion) is then scaled back to length one.
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
        start: qpos starts within this of the model's own, uniformly; so does qvel, or with this
            standard deviation where it is Gaussian.
        limit: where the forbidden side of x begins, in metres.
        horizon: steps after which an episode is cut short.
        noise: what is added to the state after each step.
        has_fallen: which of n states end the episode; None where none does.
        gaussian_start: whether the first velocities are drawn from a Gaussian.
        forbidden: "below" forbids x < limit, "above" forbids x > limit; x = limit is allowed.
        contact_forces: "none"; "zeros" appends one zero for each force, as all published results
            have it; "real" appends the forces themselves, clipped to [-1, 1], and charges for them.
        contact_weight: price of the sum of squares of real contact forces.
    """

    name: str
    model_file: str
    frame_skip: int
    reward: Reward
    start: float
    limit: float
    horizon: int
    noise: Noise
    has_fallen: Callable[[Float[np.ndarray, "n s"]], Bool[np.ndarray, " n"]] | None = None
    gaussian_start: bool = False
    forbidden: Literal["below", "above"] = "below"
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
    """The sum of squares of each row, added up in the same order however many rows there are."""
    return np.square(values).sum(axis=1)


def load_model(file_name: str, *, contact_forces: bool = False) -> mujoco.MjModel:
    """The model of one of Gymnasium's XML files, the same numbers as Gymnasium simulates.

    Two things differ from what `MjModel.from_xml_path` gives, neither of them a number of the
    physics: a simulation that diverges is left as it is instead of being reset silently, and
    with `contact_forces` a sensor makes every forward pass fill `cfrc_ext`.
    """
    description = mujoco.MjSpec.from_file(str(FOLDER / file_name))
    # MuJoCo deprecates this attribute with a warning; what it did is done by hand below.
    total_mass, description.compiler.settotalmass = description.compiler.settotalmass, -1
    if contact_forces:
        # Contact forces are only worked out where a sensor asks for accelerations.
        description.add_sensor(
            type=mujoco.mjtSensor.mjSENS_FRAMELINACC,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=description.worldbody.first_body().name,
        )
    model = description.compile()
    if total_mass > 0:
        mujoco.mj_setTotalmass(model, total_mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    return model


def quaternions_of(model: mujoco.MjModel) -> tuple[slice, ...]:
    """Where in `qpos` the orientations of free joints lie: after three coordinates."""
    free = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE].tolist()
    return tuple(slice(address + 3, address + 7) for address in free)


def spaces_of(
    model: mujoco.MjModel, contact_forces: str
) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Observations and actions of one world; see `MujocoRules` for `contact_forces`."""
    size = model.nq + model.nv + (0 if contact_forces == "none" else 6 * model.nbody)
    low, high = model.actuator_ctrlrange.astype(np.float32).T
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64),
        gymnasium.spaces.Box(low, high, dtype=np.float32),
    )


def observation_names(model: mujoco.MjModel, contact_forces: str) -> tuple[str, ...]:
    """A word for every number of an observation: qpos, then qvel, then contact forces if any.

    The joints of the first body are named by what they move ("x", "pitch"), all others as in the
    XML file ("hip 1"); the speed of a joint is called after its position ("x velocity").
    """
    joints = [model.joint(number) for number in range(model.njnt)]
    positions = [word for joint in joints for word in joint_words(joint, FREE_POSITIONS)]
    moved = [word for joint in joints for word in joint_words(joint, FREE_ROTATIONS)]
    names = (*positions, *(f"{word} velocity" for word in moved))
    if contact_forces == "none":
        return names
    bodies = [model.body(number).name or f"body {number}" for number in range(model.nbody)]
    forces = [f"contact {kind} {axis}" for kind in ("torque", "force") for axis in "xyz"]
    return (*names, *(f"{body.replace('_', ' ')} {force}" for body in bodies for force in forces))


def joint_words(joint: Any, free: tuple[str, ...]) -> tuple[str, ...]:
    """The words for one joint; `free` are those for a joint that lets the body fly."""
    kind = mujoco.mjtJoint(int(joint.type[0]))
    if kind == mujoco.mjtJoint.mjJNT_FREE:
        return free
    assert kind in AXIS_WORDS, "no task has a ball joint"
    if int(joint.bodyid[0]) == 1:
        return (AXIS_WORDS[kind][int(np.abs(joint.axis).argmax())],)
    return (joint.name.removesuffix("_joint").removesuffix("_rot").replace("_", " "),)
