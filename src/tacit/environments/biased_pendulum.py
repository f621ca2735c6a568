"""A pole on a cart, paid for standing on the side where it must not go."""

import numpy as np
from jaxtyping import Bool, Float

from tacit.environments.mujoco_rules import MujocoRules, Noise, choose_variant


def biased_pendulum(
    *,
    limit: float = -0.015,
    horizon: int | None = None,
    noise_std: float = 0.2,
    noise_on: str = "velocity",
    noise_shared: bool = False,
    variant: str = "paper",
) -> MujocoRules:
    """Balance, best at x <= -0.01, but not at x < -0.015; see `bias_reward`.

    The variants "paper" and "benchmark" are the same here: 100 steps. For the other arguments
    see `blocked_locomotion`.
    """
    steps = choose_variant(variant, paper=100, benchmark=100)
    return MujocoRules(
        name="BiasedPendulum",
        model_file="inverted_pendulum.xml",
        frame_skip=2,
        reward=bias_reward,
        has_fallen=pole_has_fallen,
        start_positions=0.01,
        start_velocities=0.01,
        gaussian_start=False,
        limit=limit,
        forbidden="below",
        horizon=steps if horizon is None else horizon,
        noise=Noise(noise_std, noise_on, noise_shared),
    )


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
