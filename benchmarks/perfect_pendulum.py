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
from dataclasses import dataclass
from functools import partial
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import scipy.sparse
from mujoco.batch import Batch
from scipy.special import ndtr

import tacit
from tacit.environments.mujoco_models import load_model

LIMIT, FALLEN, HORIZON, NOISE, FRAME_SKIP = -0.015, 0.2, 100, 0.2, 2
CONTROL_MOST = 3.0
X_MOST, X_SCALE = 0.9, 0.02
TRIED = jnp.linspace(-CONTROL_MOST, CONTROL_MOST, 61)


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

    def __init__(self, size: float, **C) -> None:
        def count(points: float) -> int:
            return round(points * size)

        self.x_count = C.get("x") or count(44)
        self.x_rate = np.log1p(X_MOST / X_SCALE) / (self.x_count - 1)
        self.x = LIMIT + X_SCALE * np.expm1(self.x_rate * np.arange(self.x_count))
        self.theta = np.linspace(-FALLEN, FALLEN, 2 * ((C.get("theta") or count(24)) // 2) + 1)
        self.v, self.fine_v = (spread(2.5, n, 5.0) for n in (C.get("v") or count(30), C.get("fv") or count(64)))
        self.omega, self.fine_omega = (spread(5.0, n, 4.0) for n in (C.get("o") or count(44), C.get("fo") or count(100)))
        self.controls = np.linspace(-CONTROL_MOST, CONTROL_MOST, 2 * ((C.get("u") or count(12)) // 2) + 1)
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


def reward(x: jax.Array) -> jax.Array:
    """What the task pays for arriving at x."""
    return 0.1 + 0.9 * jnp.clip(x / -0.01, 0.0, 1.0)


def place(points: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The point below each value, and how far it is on the way to the next; clipped to the ends."""
    below = jnp.clip(jnp.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
    way = (values - points[below]) / (points[below + 1] - points[below])
    return below, jnp.clip(way, 0.0, 1.0)


def at_level(columns: jax.Array, collected: jax.Array, levels: jax.Array) -> jax.Array:
    """Interpolate the last axis of `columns`, which holds one value per level of R."""
    value = columns[..., 0]
    for level in range(len(levels) - 1):
        way = (collected - levels[level]) / (levels[level + 1] - levels[level])
        value += jnp.clip(way, 0.0, 1.0) * (columns[..., level + 1] - columns[..., level])
    return value


@partial(jax.jit, static_argnames=("collects", "kept"), donate_argnames="best")
def improve(best, columns, shift, fell, x, levels, next_levels, *, collects, kept):
    """Raise V to what one control gives, where that is more.

    `columns` holds W at the (theta, v, omega) where the control leads, for every x and level of R;
    `shift` is how far x moves, `fell` where the pole fell.
    """
    arrived = x + shift[:, None]
    far = jnp.log1p(jnp.maximum(arrived - LIMIT, 0.0) / X_SCALE) * (len(x) - 1)
    below = jnp.clip((far / np.log1p(X_MOST / X_SCALE)).astype(int), 0, len(x) - 2)
    way = jnp.clip((arrived - x[below]) / (x[below + 1] - x[below]), 0.0, 1.0)
    low, high = (jnp.take_along_axis(columns, below[..., None] + i, axis=1) for i in (0, 1))
    mixed = (low + way[..., None] * (high - low))[:, :, None, :]
    collected = levels + (reward(arrived)[..., None] if collects else 0.0)
    value = jnp.where(
        fell[:, None, None], kept * collected, at_level(mixed, collected, next_levels)
    )
    outside = (arrived < LIMIT) | (arrived > x[-1])
    return jnp.maximum(best, jnp.where(outside[..., None], 0.0, value))


@partial(jax.jit, static_argnames=("collects", "kept"))
def choose(states, ends, collected, w, axes, next_levels, *, collects, kept):
    """The best of `TRIED` controls in each state, and its value.

    `ends` holds f of the state for the least, the middle and the greatest control; between
    them f is very nearly a parabola.
    """
    least, middle, greatest = (end[:, None] for end in ends)
    part = (TRIED / CONTROL_MOST)[:, None]
    after = middle + part * (greatest - least) / 2 + part**2 * ((greatest + least) / 2 - middle)
    collected = collected[:, None] + (reward(after[..., 0]) if collects else 0.0)
    places = [place(points, after[..., i]) for points, i in zip(axes, (2, 3, 1, 0), strict=True)]
    columns = jnp.zeros((*after.shape[:2], w.shape[-1]))
    for corner in np.ndindex(2, 2, 2, 2):
        weight, index = jnp.ones(after.shape[:2]), ()
        for high, (below, way) in zip(corner, places, strict=True):
            weight *= way if high else 1 - way
            index += (below + high,)
        columns += weight[..., None] * w[index]
    value = at_level(columns, collected, next_levels)
    value = jnp.where(jnp.abs(after[..., 1]) > FALLEN, kept * collected, value)
    v, omega, _, x = (
        (after[..., i] < points[0]) | (after[..., i] > points[-1])
        for points, i in zip(axes, (2, 3, 1, 0), strict=True)
    )
    value = jnp.where(v | omega | x, 0.0, value)
    best = value.argmax(axis=1)
    return TRIED[best], jnp.take_along_axis(value, best[:, None], axis=1)[:, 0]


class Programme:
    """The physics on the grid, and the programme that runs on it."""

    def __init__(self, size: float, **C) -> None:
        self.axes = axes = Axes(size, **C)
        self.shape = (len(axes.v), len(axes.omega), len(axes.theta))
        self.fine_shape = (len(axes.fine_v), len(axes.fine_omega), len(axes.theta))
        v, omega, theta = (
            part.ravel() for part in np.meshgrid(axes.v, axes.omega, axes.theta, indexing="ij")
        )
        starts = np.stack([np.zeros_like(v), theta, v, omega], axis=1)
        self.moves = [self.move(simulate(starts, np.full(len(v), u))) for u in axes.controls]

    def move(self, after: np.ndarray) -> tuple[Any, jax.Array, jax.Array]:
        """For one control: the matrix that looks W up where it leads, the shift in x, the falls."""
        fell = np.abs(after[:, 1]) > FALLEN
        left = (np.abs(after[:, 2:]) > (self.axes.v[-1], self.axes.omega[-1])).any(axis=1)
        points = (self.axes.fine_v, self.axes.fine_omega, self.axes.theta)
        places = [
            [np.asarray(part) for part in place(jnp.asarray(grid), jnp.asarray(after[:, i]))]
            for grid, i in zip(points, (2, 3, 1), strict=True)
        ]
        weights, columns = [], []
        for corner in np.ndindex(2, 2, 2):
            sides = list(zip(corner, places, strict=True))
            weight = np.prod([way if high else 1 - way for high, (_, way) in sides], axis=0)
            weights.append(np.where(fell | left, 0.0, weight))
            index = tuple(below + high for high, (below, _) in sides)
            columns.append(np.ravel_multi_index(index, self.fine_shape))
        rows = np.tile(np.arange(len(after)), 8)
        entries = (np.concatenate(weights).astype(np.float32), (rows, np.concatenate(columns)))
        size = (len(after), int(np.prod(self.fine_shape)))
        look_up = scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=size))
        return look_up, jnp.asarray(after[:, 0], jnp.float32), jnp.asarray(fell & ~left)

    def blurred(self, values: np.ndarray) -> np.ndarray:
        """W on its fine grid, from V on the coarse one."""
        axes = self.axes
        over_v = axes.blur_v.astype(np.float32) @ values.reshape(len(axes.v), -1)
        over_v = over_v.reshape(len(axes.fine_v), len(axes.omega), -1)
        return axes.blur_omega.astype(np.float32) @ over_v

    def solve(self, wish: Wish) -> list[np.ndarray]:
        """V after 0, 1, ..., HORIZON steps; its axes are (v, omega, theta), x, level of R."""
        shape = (int(np.prod(self.shape)), self.axes.x_count, len(wish.fractions))
        solution = [np.broadcast_to(wish.levels(HORIZON).astype(np.float32), shape)]
        for step in reversed(range(HORIZON)):
            w = self.blurred(solution[-1]).reshape(int(np.prod(self.fine_shape)), -1)
            best = jnp.zeros(shape)
            for look_up, shift, fell in self.moves:
                best = improve(
                    best,
                    (look_up @ w).reshape(shape),
                    shift,
                    fell,
                    self.axes.x,
                    wish.levels(step),
                    wish.levels(step + 1),
                    collects=wish.collects,
                    kept=wish.kept_in_a_fall,
                )
            solution.append(np.asarray(best))
        return solution[::-1]

    def play(self, wish: Wish, solution: list[np.ndarray], number: int, seed: int) -> dict:
        """One episode in each of `number` worlds of the task; see `Result`."""
        worlds = tacit.make("BiasedPendulum").worlds(number, threads=1)
        states = worlds.reset(seed)
        axes = (self.axes.fine_v, self.axes.fine_omega, self.axes.theta, self.axes.x)
        alive, violated = np.ones(number, bool), np.zeros(number, bool)
        rewards, lengths, fell = np.zeros(number), np.zeros(number), np.zeros(number, bool)
        promised = np.zeros(number)
        for step in range(HORIZON):
            w = self.blurred(solution[step + 1]).reshape(*self.fine_shape, self.axes.x_count, -1)
            ends = [simulate(states, np.full(number, u)) for u in (-CONTROL_MOST, 0, CONTROL_MOST)]
            controls, values = choose(
                states,
                ends,
                rewards if wish.collects else np.ones(number),
                w,
                axes,
                wish.levels(step + 1),
                collects=wish.collects,
                kept=wish.kept_in_a_fall,
            )
            promised = promised if step else np.asarray(values)
            taken = worlds.step(np.asarray(controls)[:, None])
            states = taken.observations
            rewards += alive * taken.rewards
            lengths += alive
            violated |= alive & (taken.costs[:, 0] > 0)
            fell |= alive & taken.terminated
            alive &= ~(taken.terminated | taken.truncated)
        return {
            "promised": promised,
            "feasible": rewards * ~violated,
            "violated": violated,
            "fell": fell,
            "lengths": lengths,
            "complete": (lengths == HORIZON) & ~fell & ~violated,
            "rewards": rewards,
        }
