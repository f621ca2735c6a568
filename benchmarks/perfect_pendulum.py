"""What could a perfect controller do on the task "BiasedPendulum"?

    python benchmarks/perfect_pendulum.py [--size 1.0] [--episodes 6000] [--seed 0]

Solves it by dynamic programming, on a grid of `size` and a coarser one, and plays the controller
of the finer one in the task's own worlds. Three wishes, each with its own controller: "reward", the
most reward where an episode that ever violates counts as zero; "complete", the most episodes that
last to the end and never violate; "safe", the fewest that violate, falling being a way out.

A state is s = (x, theta, v, omega), with t steps taken and reward R collected. Physics takes it to
s' = f(s, u); the noise then moves the velocities only, so that s' decides about violating, falling:
    V_t(s, R) = max_u [0 if x' < limit; R + r(x') after a fall (or 0); else W_{t+1}(s', R + r(x'))],
    W_t(s, R) = E V_t(s + noise, R),    V_T(s, R) = R.

"complete" and "safe" start with R = 1 and r = 0: V is a probability. V is linear between the points
of a grid (few for R, as fractions of t) and worth nothing beyond; W has a finer grid. Extrapolated
are the two grids to spacing zero, for errors like its square and like itself (V jumps where
violating becomes inevitable). What was played is possible whatever the grid.
"""

import os
import time
from functools import partial
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from mujoco.batch import Batch
from rich.console import Console
from rich.table import Table
from scipy import sparse, special, stats

import tacit
from tacit.environments.mujoco_rules import load_model

LIMIT, FALLEN, HORIZON, NOISE, FRAME_SKIP, STRONGEST = -0.015, 0.2, 100, 0.2, 2, 3.0
X_MOST, X_SCALE, V_MOST, OMEGA_MOST = 0.9, 0.02, 2.5, 5.0
COARSE, TRIED = 0.75, np.linspace(-STRONGEST, STRONGEST, 61)


class Wish(NamedTuple):
    """What to maximise: levels of R (per step if it `collects`), and the part a fall leaves."""

    name: str
    fractions: tuple[float, ...]
    collects: bool
    kept: float

    def levels(self, step: Any) -> jax.Array:
        """The values of R on the grid after `step` steps."""
        return jnp.array(self.fractions) * (step if self.collects else 1)


WISHES = (
    Wish("reward", (0.1, 0.25, 0.5, 1.0), True, 1.0),
    Wish("complete", (1.0,), False, 0.0),
    Wish("safe", (1.0,), False, 1.0),
)


def spread(most: float, pairs: int, bend: float) -> np.ndarray:
    """Points from -most to most, zero among them, `bend` times denser there than at the ends."""
    scale = np.arccosh(bend)
    return most * np.sinh(scale * np.linspace(-1, 1, 2 * pairs + 1)) / np.sinh(scale)


def blur(points: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The matrix that takes values at `points` to their means under noise around each of `at`."""
    far = (at[:, None] - points) / NOISE
    # E max(0, z + noise - point): its second differences are the means of the linear hats.
    excess = NOISE * (far * special.ndtr(far) + np.exp(-(far**2) / 2) / np.sqrt(2 * np.pi))
    passed = -np.diff(excess) / np.diff(points)
    return -np.diff(passed, prepend=1.0, append=0.0).astype(np.float32)


def simulate(states: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """f: where the task's own physics takes each state (x, theta, v, omega), without noise."""
    batch = Batch(load_model("inverted_pendulum.xml"), len(states), 1)
    batch.reset()
    batch.state[:, 1:5] = states
    batch.bind("ctrl")[:] = controls[:, None]
    batch.step(nstep=FRAME_SKIP)
    return batch.state[:, 1:5].copy()


def place(points: np.ndarray, values: Any) -> tuple[Any, Any]:
    """The number of the point below each value, and how far it is on the way to the next."""
    grid = jnp.asarray(points)
    below = jnp.clip(jnp.searchsorted(grid, values, side="right") - 1, 0, len(grid) - 2)
    return below, (values - grid[below]) / (grid[below + 1] - grid[below])


def payment(x: jax.Array) -> jax.Array:
    """What the task pays for arriving at x."""
    return 0.1 + 0.9 * jnp.clip(x / -0.01, 0.0, 1.0)


def corners(places: Any) -> Any:
    """The weight and the index of each corner of the cells that hold some `places`."""
    for corner in np.ndindex((2,) * len(places)):
        weight, index = 1.0, ()
        for high, (below, way) in zip(corner, places, strict=True):
            weight, index = weight * (way if high else 1 - way), (*index, below + high)
        yield weight, index


def at_level(columns: jax.Array, collected: jax.Array, levels: jax.Array) -> jax.Array:
    """Interpolate the last axis of `columns`, which holds one value per level of R."""
    value = columns[..., 0]
    for i in range(len(levels) - 1):
        way = (collected - levels[i]) / (levels[i + 1] - levels[i])
        value += jnp.clip(way, 0.0, 1.0) * (columns[..., i + 1] - columns[..., i])
    return value


@partial(jax.jit, static_argnames="wish", donate_argnames="best")
def improve(best, columns, shift, fell, x, step, wish: Wish):
    """Raise V to what one control gives, from W in the `columns` (x, level of R) it leads to."""
    arrived = x + shift[:, None]
    far = jnp.log1p(jnp.maximum(arrived - LIMIT, 0.0) / X_SCALE) / np.log1p(X_MOST / X_SCALE)
    below = jnp.clip((far * (len(x) - 1)).astype(int), 0, len(x) - 2)
    way = jnp.clip((arrived - x[below]) / (x[below + 1] - x[below]), 0.0, 1.0)
    low, high = (jnp.take_along_axis(columns, below[..., None] + i, axis=1) for i in (0, 1))
    mixed = (low + way[..., None] * (high - low))[:, :, None, :]
    collected = wish.levels(step) + (payment(arrived)[..., None] if wish.collects else 0.0)
    value = at_level(mixed, collected, wish.levels(step + 1))
    value = jnp.where(fell[:, None, None], wish.kept * collected, value)
    inside = (arrived >= LIMIT) & (arrived <= x[-1])
    return jnp.maximum(best, inside[..., None] * value)


@partial(jax.jit, static_argnames="wish")
def choose(ends, rewards, w, axes, step, wish: Wish):
    """The best control for each state and its value; f is a parabola through its three `ends`."""
    (least, middle, greatest), part = (end[:, None] for end in ends), TRIED[:, None] / STRONGEST
    after = middle + part * (greatest - least) / 2 + part**2 * ((greatest + least) / 2 - middle)
    v, omega, theta, x = (after[..., i] for i in (2, 3, 1, 0))
    collected = rewards[:, None] + payment(x) if wish.collects else jnp.ones(x.shape)
    places = [place(points, part) for points, part in zip(axes, (v, omega, theta, x), strict=True)]
    columns = jnp.zeros((*x.shape, w.shape[-1]))
    for weight, index in corners(places):
        columns += weight[..., None] * w[index]
    value = at_level(columns, collected, wish.levels(step + 1))
    value = jnp.where(jnp.abs(theta) > FALLEN, wish.kept * collected, value)
    fast = (jnp.abs(v) > V_MOST) | (jnp.abs(omega) > OMEGA_MOST)
    value = jnp.where(fast | (x < LIMIT) | (x > axes[3][-1]), 0.0, value)
    return jnp.asarray(TRIED)[value.argmax(axis=1)], value.max(axis=1)


class Programme:
    """The physics on a grid, and the programme that runs on it."""

    def __init__(self, size: float) -> None:
        theta = np.linspace(-FALLEN, FALLEN, 2 * round(10 * size) + 1)
        v, fine_v = (spread(V_MOST, round(n * size), 5.0) for n in (20, 32))
        omega, fine_omega = (spread(OMEGA_MOST, round(n * size), 4.0) for n in (16, 36))
        far = np.linspace(0, np.log1p(X_MOST / X_SCALE), round(32 * size))
        self.x = (LIMIT + X_SCALE * np.expm1(far)).astype(np.float32)
        self.axes = (fine_v, fine_omega, theta, self.x)
        self.blurs = blur(v, fine_v), blur(omega, fine_omega)
        points = np.stack(np.meshgrid([0.0], v, omega, theta, indexing="ij"), axis=-1)
        states, self.rows = points.reshape(-1, 4)[:, [0, 3, 1, 2]], points.size // 4
        controls = np.linspace(-STRONGEST, STRONGEST, 2 * round(12 * size) + 1)
        self.moves = [self.move(simulate(states, np.full(self.rows, u))) for u in controls]

    def move(self, after: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """For one control: the matrix that looks W up where it leads, the shift in x, the falls."""
        fast = (np.abs(after[:, 2:]) > (V_MOST, OMEGA_MOST)).any(axis=1)
        fell = np.abs(after[:, 1]) > FALLEN
        shape = tuple(map(len, self.axes[:3]))
        places = [place(*pair) for pair in zip(self.axes[:3], after[:, [2, 3, 1]].T, strict=True)]
        look_up = sparse.csr_array((self.rows, np.prod(shape)), dtype=np.float32)
        for weight, index in corners(places):
            weight = np.where(fell | fast, 0.0, weight).astype(np.float32)
            entries = (weight, np.ravel_multi_index(index, shape), np.arange(self.rows + 1))
            look_up += sparse.csr_array(entries, shape=look_up.shape)
        return look_up, after[:, 0].astype(np.float32), fell & ~fast

    def blurred(self, values: np.ndarray) -> np.ndarray:
        """W on its finer grid, from V."""
        over_v, over_omega = self.blurs
        half = over_v @ values.reshape(over_v.shape[1], -1)
        w = over_omega @ half.reshape(len(over_v), over_omega.shape[1], -1)
        return w.reshape(*map(len, self.axes), -1)

    def solve(self, wish: Wish) -> list[np.ndarray]:
        """V after 0, 1, ..., HORIZON steps; its axes are (v, omega, theta), x, level of R."""
        shape = (self.rows, len(self.x), len(wish.fractions))
        solution = [np.broadcast_to(np.asarray(wish.levels(HORIZON)), shape)]
        for step in reversed(range(HORIZON)):
            w, best = self.blurred(solution[-1]).reshape(-1, shape[1] * shape[2]), jnp.zeros(shape)
            for look_up, *led in self.moves:
                best = improve(best, (look_up @ w).reshape(shape), *led, self.x, step, wish)
            solution.append(np.asarray(best))
        return solution[::-1]

    def play(self, wish: Wish, solution: list[np.ndarray], number: int, seed: int) -> dict:
        """One episode in each of `number` worlds; "value" is what the programme expects."""
        worlds = tacit.make("BiasedPendulum").worlds(number, threads=1)
        states, alive = worlds.reset(seed), np.ones(number, bool)
        violated, fell = np.zeros((2, number), bool)
        value, rewards, lengths = np.zeros((3, number))
        for step in range(HORIZON):
            ends = [simulate(states, np.full(number, u)) for u in (-STRONGEST, 0.0, STRONGEST)]
            w = self.blurred(solution[step + 1])
            controls, expected = choose(ends, rewards, w, self.axes, step, wish)
            value = value if step else np.asarray(expected)
            taken = worlds.step(np.asarray(controls)[:, None])
            states, lengths = taken.observations, lengths + alive
            rewards = rewards + alive * taken.rewards
            violated |= alive & (taken.costs[:, 0] > 0)
            fell |= alive & taken.terminated
            alive &= ~(taken.terminated | taken.truncated)
        played = {"complete": ~(fell | violated), "feasible reward": rewards * ~violated}
        return played | {"violated": violated, "fell": fell, "steps": lengths, "value": value}


def interval(values: np.ndarray) -> str:
    """A mean with its 95 % interval: exact for yes and no, normal for numbers."""
    if values.dtype == bool:
        share = stats.binomtest(int(values.sum()), len(values)).proportion_ci()
        return f"{100 * values.mean():.2f} % [{100 * share.low:.2f}, {100 * share.high:.2f}]"
    return f"{values.mean():.2f} +- {1.96 * values.std() / np.sqrt(len(values)):.2f}"


def main(size: float = 1.0, episodes: int = 6000, seed: int = 0) -> None:
    """Solve and play all three wishes and print what came of it."""
    started, columns = time.perf_counter(), []
    table = Table("", *(wish.name for wish in WISHES), title="A perfect controller")
    programmes = Programme(COARSE * size), Programme(size)
    for wish in WISHES:
        few, many = (each.play(wish, each.solve(wish), episodes, seed) for each in programmes)
        low, high = (float(played.pop("value").mean()) for played in (few, many))
        rows = {"expected, coarse": f"{low:.4f}", "expected, fine": f"{high:.4f}"}
        limits = [high + (high - low) / (COARSE**-order - 1) for order in (2, 1)]
        rows["extrapolated"] = " to ".join(f"{limit:.4f}" for limit in limits)
        columns.append(rows | {f"played, {name}": interval(many[name]) for name in many})
        print(f"{wish.name}: done after {time.perf_counter() - started:.0f} s")
    for name in columns[0]:
        table.add_row(name, *(rows[name] for rows in columns))
    Console(width=120).print(table)


if __name__ == "__main__":
    tyro.cli(main)
