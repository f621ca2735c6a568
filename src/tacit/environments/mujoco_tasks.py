"""Robots that are paid for moving and may go only so far, and a pole that is paid for one side.

The easy way (backwards for the half-cheetah, the ant and the walker, forwards for the swimmer) is
the one that the limit blocks. Each function builds one task; its arguments are the options of
`tacit.make`. They share

    limit: where the forbidden side of x begins, in metres.
    horizon: steps of an episode; None takes the variant's.
    noise_std, noise_on, noise_shared: see `Noise`.
    variant: "paper" has the rewards of the paper's own code and its episodes of 1000 steps,
        "benchmark" those of the ICRL benchmark (Liu et al. 2023).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from tacit.environments.mujoco_environment import MujocoEnvironment, MujocoVectorEnvironment
from tacit.environments.mujoco_rules import (
    MujocoRules,
    Noise,
    choose_variant,
    load_model,
    observation_names,
    spaces_of,
    sum_of_squares,
)
from tacit.environments.mujoco_worlds import MujocoWorlds
from tacit.environments.task import SimulatedTask

ANT_EFFORT, ANT_CONTACT = 0.5, 5e-4


def blocked_half_cheetah(
    *,
    limit: float = -3.0,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> SimulatedTask:
    r"""Run either way, but not to x < -3: r = |x' - x|/dt - 0.05 \|a\|^2 (benchmark: 0.1)."""
    options = locals()
    effort, steps = choose_variant(variant, paper=(0.05, 1000), benchmark=(0.1, 1000))
    return robot_task(
        "BlockedHalfCheetah",
        options,
        model_file="half_cheetah.xml",
        frame_skip=5,
        reward=partial(speed_reward, alive=0.0, effort=effort),
        start=0.1,
        gaussian_start=True,
        steps=steps,
    )


def blocked_ant(
    *,
    limit: float = -3.0,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    contact_forces: str = "zeros",
    variant: str = "paper",
) -> SimulatedTask:
    r"""Be far from the origin, but not at x < -3; see `distance_reward`.

    `contact_forces` are the last 84 of 113 numbers observed: 6 for each of 14 bodies. MuJoCo has
    not filled them in for the code behind any published result, hence "zeros". With "real" they
    are the forces in the state that the step led to, before noise (Gymnasium's are those of the
    simulator's last inner stage), zero at the start of an episode as in Gymnasium, and cost
    5e-4 times their sum of squares. "none" leaves 29 numbers.
    """
    options = locals()
    healthy, steps = choose_variant(variant, paper=(2.0, 1000), benchmark=(1.0, 500))
    return robot_task(
        "BlockedAnt",
        options,
        model_file="ant.xml",
        frame_skip=5,
        reward=partial(distance_reward, healthy=healthy, effort=ANT_EFFORT),
        start=0.1,
        gaussian_start=True,
        steps=steps,
        contact_weight=ANT_CONTACT,
    )


def blocked_walker(
    *,
    limit: float = -3.0,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> SimulatedTask:
    r"""Walk either way without falling, but not to x < -3.

    r = |x' - x|/dt + 1 - 0.0005 \|a\|^2 (benchmark: 0.001, 500 steps).
    """
    options = locals()
    effort, steps = choose_variant(variant, paper=(0.0005, 1000), benchmark=(0.001, 500))
    return robot_task(
        "BlockedWalker",
        options,
        model_file="walker2d.xml",
        frame_skip=4,
        reward=partial(speed_reward, alive=1.0, effort=effort),
        has_fallen=walker_has_fallen,
        start=0.005,
        steps=steps,
    )


def blocked_swimmer(
    *,
    limit: float = 0.5,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> SimulatedTask:
    r"""Swim either way, but not to x > 0.5.

    r = |x' - x|/dt - 0.00005 \|a\|^2 (benchmark: 0.0001, 500 steps).
    """
    options = locals()
    effort, steps = choose_variant(variant, paper=(0.00005, 1000), benchmark=(0.0001, 500))
    return robot_task(
        "BlockedSwimmer",
        options,
        model_file="swimmer.xml",
        frame_skip=4,
        reward=partial(speed_reward, alive=0.0, effort=effort),
        start=0.1,
        forbidden="above",
        steps=steps,
    )


def biased_pendulum(
    *,
    limit: float = -0.015,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> SimulatedTask:
    """Balance a pole, best at x <= -0.01, but not at x < -0.015; see `bias_reward`.

    The variants "paper" and "benchmark" are the same here: 100 steps.
    """
    options = locals()
    return robot_task(
        "BiasedPendulum",
        options,
        model_file="inverted_pendulum.xml",
        frame_skip=2,
        reward=bias_reward,
        has_fallen=pole_has_fallen,
        start=0.01,
        steps=choose_variant(variant, paper=100, benchmark=100),
    )


def robot_task(name: str, options: Mapping[str, Any], *, steps: int, **robot: Any) -> SimulatedTask:
    """The task of one robot: `options` are those of the functions above.

    `steps` is the horizon where they name none, `robot` the fields of `MujocoRules` that they do
    not set.
    """
    rules = MujocoRules(
        name=name,
        limit=options["limit"],
        horizon=steps if options["horizon"] is None else options["horizon"],
        noise=Noise(options["noise_std"], options["noise_on"], options["noise_shared"]),
        contact_forces=options.get("contact_forces", "none"),
        **robot,
    )
    model = load_model(rules.model_file)
    observation_space, action_space = spaces_of(model, rules.contact_forces)
    return SimulatedTask(
        name=name,
        options={**options, "horizon": rules.horizon},
        observation_space=observation_space,
        action_space=action_space,
        horizon=rules.horizon,
        constraints=("x_position",),
        make_worlds=partial(MujocoWorlds, rules),
        make_environment=lambda render_mode: MujocoEnvironment(rules, render_mode=render_mode),
        make_vector=partial(MujocoVectorEnvironment, rules),
        observation_names=observation_names(model, rules.contact_forces),
    )


def speed_reward(
    x_before: Float[np.ndarray, " n"],
    after: Float[np.ndarray, "n s"],
    actions: Float[np.ndarray, "n a"],
    seconds: float,
    *,
    alive: float,
    effort: float,
) -> Float[np.ndarray, " n"]:
    r"""|x' - x| / dt + alive - effort \sum_j a_j^2: backwards pays as well as forwards."""
    rewards = np.abs(after[:, 0] - x_before)
    rewards /= seconds
    rewards += alive
    rewards -= effort * sum_of_squares(actions)
    return rewards


def distance_reward(
    x_before: Float[np.ndarray, " n"],
    after: Float[np.ndarray, "n s"],
    actions: Float[np.ndarray, "n a"],
    seconds: float,
    *,
    healthy: float,
    effort: float,
) -> Float[np.ndarray, " n"]:
    r"""\sqrt{x'^2 + y'^2} + healthy [0.2 <= z' <= 1] - effort \sum_j a_j^2.

    x', y', z' are the torso's place in qpos. Distance from the origin, not speed, is what pays:
    returns grow with the square of time.
    """
    height = after[:, 2]
    rewards = np.sqrt(sum_of_squares(after[:, :2]))
    rewards += healthy * ((height >= 0.2) & (height <= 1.0))
    rewards -= effort * sum_of_squares(actions)
    return rewards


def walker_has_fallen(states: Float[np.ndarray, "n s"]) -> Bool[np.ndarray, " n"]:
    """The torso's height has left (0.8, 2.0), or its angle (-1, 1)."""
    height, angle = states[:, 1], states[:, 2]
    return (height <= 0.8) | (height >= 2.0) | (np.abs(angle) >= 1.0)


def bias_reward(
    x_before: Float[np.ndarray, " n"],
    after: Float[np.ndarray, "n s"],
    actions: Float[np.ndarray, "n a"],
    seconds: float,
) -> Float[np.ndarray, " n"]:
    r"""0.1 for x' >= 0, 1 for x' <= -0.01, and 0.1 + 0.9 (-x' / 0.01) in between."""
    return 0.1 + 0.9 * np.clip(after[:, 0] / -0.01, 0.0, 1.0)


def pole_has_fallen(states: Float[np.ndarray, "n s"]) -> Bool[np.ndarray, " n"]:
    """The pole leans by more than 0.2 rad."""
    return np.abs(states[:, 1]) > 0.2
