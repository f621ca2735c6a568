"""Recorded drivers as demonstrations: their actions, recovered from where they went.

The driving tasks move a point mass, so a path p_0 ... p_T and a first
velocity v_0 leave only the accelerations a_t open:

    p_t = p_0 + v_0 t dt + dt^2 sum_{k < t} (t - k - 1/2) a_k

Recordings are rounded to a centimetre, so solving this exactly would give wild accelerations.
Instead the smoothest ones are taken,

    min_a  sum_t |p_t(a) - p_t|^2 + w sum_t |a_t - a_{t-1}|^2,

with the largest weight w that keeps every p_t(a) within three centimetres, or the smallest tried.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.jax_world import JaxStep
from tacit.highway.driving import Highway
from tacit.highway.driving_step import STRONGEST, HighwayTask
from tacit.highway.observation import reasons_in
from tacit.highway.recording import RecordingError

CLOSE, FAITHFUL = 0.03, 0.05
"""Metres: what the fit aims at, and beyond which a driver is left out."""
WEIGHTS = np.logspace(0, -8, 9)
REFUSED = ("off_road", "collision")


class Recovered(NamedTuple):
    """Recorded drivers as demonstrations.

    Fields:
        trajectories: their episodes.
        scenarios: the scenario of each.
        error: the largest distance between a replayed and a recorded place, in metres.
        dropped: drivers left out, by reason.
    """

    trajectories: Trajectories
    scenarios: tuple[int, ...]
    error: float
    dropped: Mapping[str, int]


def recover_actions(
    path: Float[np.ndarray, "steps+1 2"], velocity: Float[np.ndarray, " 2"], dt: float
) -> Float[np.ndarray, "steps 2"]:
    """The actions, in units of the strongest acceleration, that follow `path`."""
    steps = len(path) - 1
    times = np.arange(1, steps + 1)
    lag = times[:, None] - np.arange(steps)[None] - 0.5
    moves = np.where(lag > 0, lag, 0.0) * dt**2
    wanted = path[1:].astype(float) - path[0] - np.outer(times * dt, velocity)
    change = np.diff(np.eye(steps), axis=0)
    products, smooth, right = moves.T @ moves, change.T @ change, moves.T @ wanted
    ridge = 1e-12 * np.eye(steps)

    def fit(weight: float) -> Float[np.ndarray, "steps 2"]:
        return scipy.linalg.solve(products + weight * dt * smooth + ridge, right, assume_a="pos")

    # The error grows with the weight, so the border is found by halving.
    low, high, best = 0, len(WEIGHTS) - 1, None
    while low < high:
        middle = (low + high) // 2
        accelerations = fit(WEIGHTS[middle])
        if np.abs(moves @ accelerations - wanted).max() <= CLOSE:
            high, best = middle, accelerations
        else:
            low = middle + 1
    best = fit(WEIGHTS[-1]) if best is None else best
    return np.clip(best / STRONGEST, -1, 1)


def drive(highway: Highway, progress: Any = None) -> Recovered:
    """Let every recorded driver of a task drive its own scenario again.

    Drivers who then leave the road or collide are left out: the size of the ego is not that of the
    recorded car. Drivers whose path cannot be followed within five centimetres are left out too:
    recordings hold jumps that no car can make.
    """
    longest = max(scenario.limit for scenario in highway.scenarios)
    actions = np.zeros((len(highway.scenarios), longest, 2), np.float32)
    for number, (scenario, path) in enumerate(zip(highway.scenarios, highway.paths, strict=True)):
        found = recover_actions(path, np.array(scenario.velocity), scenario.dt)[:longest]
        actions[number, : len(found)] = found
        if progress is not None:
            progress(number + 1, len(highway.scenarios))
    start, steps = replayed(highway.task, jnp.asarray(actions))
    return collected(highway, actions, np.asarray(start), jax.tree.map(np.asarray, steps))


@eqx.filter_jit
def replayed(
    task: HighwayTask, actions: Float[Array, "n T 2"]
) -> tuple[Float[Array, "n 74"], JaxStep]:
    """All scenarios with their actions: first observations, and steps with axes [T, n]."""
    states, start = jax.vmap(task.start)(jnp.arange(len(actions), dtype=jnp.int32))
    nothing = jax.random.key(0)

    def step(states: Any, taken: Array) -> tuple[Any, JaxStep]:
        stepped = jax.vmap(lambda state, action: task.step(state, action, nothing))(states, taken)
        return stepped.state, stepped

    return start, jax.lax.scan(step, states, jnp.moveaxis(actions, 1, 0))[1]


def collected(
    highway: Highway,
    actions: Float[np.ndarray, "n T 2"],
    start: Float[np.ndarray, "n 74"],
    steps: JaxStep,
) -> Recovered:
    """Cut the episodes at their ends, and leave out drivers that cannot be replayed."""
    ended = steps.terminated | steps.truncated
    lengths = ended.argmax(axis=0) + 1
    dropped: Counter[str] = Counter()
    kept, error = [], 0.0
    for number, length in enumerate(lengths.tolist()):
        path = highway.paths[number][1 : length + 1]
        away = float(np.hypot(*(steps.state.position[: len(path), number] - path).T).max())
        if away > FAITHFUL:
            dropped["recorded motion beyond 11.5 m/s^2"] += 1
            continue
        reason = reasons_in(np.asarray(steps.observation[length - 1, number]))[0]
        if reason in REFUSED:
            dropped[reason.replace("_", " ")] += 1
            continue
        kept.append(number)
        error = max(error, away)
    if not kept:
        raise RecordingError("no recorded driver can drive its own scenario again")
    longest = int(lengths[kept].max())
    observations = np.concatenate([start[None], steps.observation])[: longest + 1, kept]
    trajectories = Trajectories(
        observations=np.moveaxis(observations, 0, 1),
        actions=actions[kept, :longest],
        rewards=np.asarray(steps.reward)[:longest, kept].T,
        lengths=lengths[kept],
        costs=np.asarray(steps.costs)[:longest, kept].max(axis=-1).T,
        provenance={
            "task": highway.task.name,
            "options": dict(highway.options),
            "experts": "recorded drivers",
        },
    )
    return Recovered(trajectories, tuple(kept), error, dropped)
