"""The robots: MuJoCo models compiled from the XML files that Gymnasium ships."""

# MuJoCo's names are made in C++ and come without stubs.
# pyright: reportAttributeAccessIssue=false

from pathlib import Path

import gymnasium
import mujoco
import numpy as np

FOLDER = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


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
    """Where in `qpos` the orientations of free and ball joints lie."""
    offsets = {mujoco.mjtJoint.mjJNT_FREE: 3, mujoco.mjtJoint.mjJNT_BALL: 0}
    starts = [
        int(address) + offsets[mujoco.mjtJoint(kind)]
        for kind, address in zip(model.jnt_type, model.jnt_qposadr, strict=True)
        if mujoco.mjtJoint(kind) in offsets
    ]
    return tuple(slice(start, start + 4) for start in starts)


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
