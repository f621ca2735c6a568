"""Robots that are paid for moving, and may go only so far: half-cheetah, ant, walker, swimmer.

The easy way (backwards for the half-cheetah and the walker, forwards for the swimmer) is the one
that the limit blocks. Each function returns the rules of one task; its arguments are the options
of `tacit.make`. They share

    limit: where the forbidden side of x begins, in metres.
    horizon: steps of an episode; None takes the variant's.
    noise_std, noise_on, noise_shared: see `Noise`.
    variant: "paper" has the rewards of the paper's own code and its episodes of 1000 steps,
        "benchmark" those of the ICRL benchmark (Liu et al. 2023).
"""

from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from tacit.environments.mujoco_rules import MujocoRules, Noise, choose_variant, sum_of_squares

ANT_EFFORT, ANT_CONTACT = 0.5, 5e-4


def blocked_half_cheetah(
    *,
    limit: float = -3.0,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> MujocoRules:
    r"""Run either way, but not to x < -3: r = |x' - x|/dt - 0.05 \|a\|^2 (benchmark: 0.1)."""
    effort, steps = choose_variant(variant, paper=(0.05, 1000), benchmark=(0.1, 1000))
    return MujocoRules(
        name="BlockedHalfCheetah",
        model_file="half_cheetah.xml",
        frame_skip=5,
        reward=partial(speed_reward, alive=0.0, effort=effort),
        has_fallen=None,
        start_positions=0.1,
        start_velocities=0.1,
        gaussian_start=True,
        limit=limit,
        forbidden="below",
        horizon=steps if horizon is None else horizon,
        noise=Noise(noise_std, noise_on, noise_shared),
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
) -> MujocoRules:
    r"""Be far from the origin, but not at x < -3; see `distance_reward`.

    `contact_forces` are the last 84 of 113 numbers observed: 6 for each of 14 bodies. MuJoCo has
    not filled them in for the code behind any published result, hence "zeros". With "real" they
    are the forces in the state that the step led to, before noise (Gymnasium's are those of the
    simulator's last inner stage), zero at the start of an episode as in Gymnasium, and cost
    5e-4 times their sum of squares. "none" leaves 29 numbers.
    """
    healthy, steps = choose_variant(variant, paper=(2.0, 1000), benchmark=(1.0, 500))
    return MujocoRules(
        name="BlockedAnt",
        model_file="ant.xml",
        frame_skip=5,
        reward=partial(distance_reward, healthy=healthy, effort=ANT_EFFORT),
        has_fallen=None,
        start_positions=0.1,
        start_velocities=0.1,
        gaussian_start=True,
        limit=limit,
        forbidden="below",
        horizon=steps if horizon is None else horizon,
        noise=Noise(noise_std, noise_on, noise_shared),
        contact_forces=contact_forces,
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
) -> MujocoRules:
    r"""Walk either way without falling, but not to x < -3.

    r = |x' - x|/dt + 1 - 0.0005 \|a\|^2 (benchmark: 0.001, 500 steps).
    """
    effort, steps = choose_variant(variant, paper=(0.0005, 1000), benchmark=(0.001, 500))
    return MujocoRules(
        name="BlockedWalker",
        model_file="walker2d.xml",
        frame_skip=4,
        reward=partial(speed_reward, alive=1.0, effort=effort),
        has_fallen=walker_has_fallen,
        start_positions=0.005,
        start_velocities=0.005,
        gaussian_start=False,
        limit=limit,
        forbidden="below",
        horizon=steps if horizon is None else horizon,
        noise=Noise(noise_std, noise_on, noise_shared),
    )


def blocked_swimmer(
    *,
    limit: float = 0.5,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> MujocoRules:
    r"""Swim either way, but not to x > 0.5.

    r = |x' - x|/dt - 0.00005 \|a\|^2 (benchmark: 0.0001, 500 steps).
    """
    effort, steps = choose_variant(variant, paper=(0.00005, 1000), benchmark=(0.0001, 500))
    return MujocoRules(
        name="BlockedSwimmer",
        model_file="swimmer.xml",
        frame_skip=4,
        reward=partial(speed_reward, alive=0.0, effort=effort),
        has_fallen=None,
        start_positions=0.1,
        start_velocities=0.1,
        gaussian_start=False,
        limit=limit,
        forbidden="above",
        horizon=steps if horizon is None else horizon,
        noise=Noise(noise_std, noise_on, noise_shared),
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
