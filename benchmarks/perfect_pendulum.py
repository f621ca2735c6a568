"""What could a perfect controller do on the task "BiasedPendulum"?

    python benchmarks/perfect_pendulum.py [--size 1.0] [--episodes 4096]

Solves the task by dynamic programming and plays the controller that comes out of it in the task's
own worlds. Three wishes, each with a controller of its own:

    reward    the most reward per episode, where an episode that ever violates counts as zero;
    complete  the most episodes that last to the end and never violate;
    safe      the fewest violating episodes, where letting the pole fall is a way out.

Method. A state is (x, theta, v, omega), with t steps taken and R reward collected. The physics of
a step is deterministic and known by simulating it: s' = f(s, u). Then noise moves the two
velocities only, so that violating and falling are decided by s' alone, and

    V_t(s, R) = max_u  0                          where x' < limit,
                       R + r(x')                  where the pole fell (nothing, if "complete"),
                       W_{t+1}(s', R + r(x'))     else,
    W_t(s, R) = E V_t(s + noise, R),              V_T(s, R) = R.

"complete" and "safe" start with R = 1 and r = 0, which makes V a probability.

V lives on a grid, finest near the limit and near rest, with levels of R that are fractions of t.
The noise is integrated exactly over the function that is linear between the points of this grid;
W, which is smooth in v and omega, lives on a finer one there. The physics does not depend on x,
so f is simulated for (theta, v, omega, u) only.
"""

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import scipy.sparse
import tyro
from mujoco.batch import Batch
from rich.console import Console
from rich.table import Table
from scipy.special import ndtr

import tacit
from tacit.environments.mujoco_models import load_model

LIMIT, FALLEN, HORIZON, NOISE, FRAME_SKIP = -0.015, 0.2, 100, 0.2, 2
CONTROL_MOST = 3.0
X_FIRST, X_GROWTH = 0.25e-1, 0.6


@dataclass(frozen=True)
class Wish:
    """What to maximise: whether reward is collected, and what a fall leaves of R."""

    name: str
    fractions: tuple[float, ...]
    collects: bool
    kept_in_a_fall: float

    def levels(self, step: int) -> np.ndarray:
        """The values of R on the grid after `step` steps."""
        return np.array(self.fractions) * (step if self.collects else 1.0)


WISHES = (
    Wish("reward", (0.1, 0.25, 0.4, 0.65, 1.0), True, 1.0),
    Wish("complete", (1.0,), False, 0.0),
    Wish("safe", (1.0,), False, 1.0),
)


def spread(most: float, count: int, bend: float) -> np.ndarray:
    """An odd number of points from -most to most, `bend` times denser at zero than at the ends."""
    places = np.linspace(-1, 1, 2 * (count // 2) + 1) * np.arccosh(bend)
    return most * np.sinh(places) / np.sinh(np.arccosh(bend))


class Axes:
    """The points of the grid along x, theta, v and omega, and those of W along v and omega."""

    def __init__(self, size: float) -> None:
        def count(points: float) -> int:
            return round(points * size)

        self.x_count = count(44)
        self.x_rate = np.log1p(0.6 / 0.02) / (self.x_count - 1)
        self.x = LIMIT + 0.02 * np.expm1(self.x_rate * np.arange(self.x_count))
        self.theta = np.linspace(-FALLEN, FALLEN, 2 * (count(24) // 2) + 1)
        self.v, self.fine_v = (spread(2.0, count(n), 4.0) for n in (26, 56))
        self.omega, self.fine_omega = (spread(5.0, count(n), 4.0) for n in (44, 100))
        self.controls = np.linspace(-CONTROL_MOST, CONTROL_MOST, 2 * (count(12) // 2) + 1)
        self.blur_v = blur(self.v, self.fine_v)
        self.blur_omega = blur(self.omega, self.fine_omega)


def blur(points: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The matrix that takes values at `points` to their mean under noise around each of `at`.

    Values are linear between the points and constant beyond them.
    """

    def mean_excess(edges: np.ndarray) -> np.ndarray:
        """E max(0, z + noise - edge) for each z in `at` and each edge."""
        far = (at[:, None] - edges) / NOISE
        return NOISE * (far * ndtr(far) + np.exp(-(far**2) / 2) / np.sqrt(2 * np.pi))

    slopes = np.diff(mean_excess(points), axis=1) / -np.diff(points)
    return -np.diff(np.pad(slopes, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))), axis=1)


def simulate(states: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """f: where the task's own physics takes each state (x, theta, v, omega), without noise."""
    number = len(states)
    batch = Batch(load_model("inverted_pendulum.xml"), number, 1)
    batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
    batch.state[:, 1:5] = states
    batch.bind("ctrl")[:] = controls[:, None]
    batch.step(nstep=FRAME_SKIP, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
    return batch.state[:, 1:5].copy()
