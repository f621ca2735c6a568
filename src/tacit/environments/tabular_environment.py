"""A `TabularTask` as a Gymnasium environment, with pictures of its map."""

from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from tacit.environments.tabular import TabularTask
from tacit.environments.worlds import check_render_mode
from tacit.errors import ArgumentError, EpisodeError

PICTURE_SIDE, STRIP_LENGTH = 480, 984
SMALLEST_CELL, LARGEST_CELL = 12, 56
MARGIN = 8
PAPER = (246, 246, 243)
WALL = (74, 78, 86)
FREE = (255, 255, 255)
LINE = (216, 218, 222)
FORBIDDEN = (250, 221, 217)
HATCH = (226, 142, 134)
START = (151, 189, 226)
GOAL = (76, 164, 108)
AGENT = (31, 111, 190)
RIM = (255, 255, 255)


class TabularEnvironment(gymnasium.Env[np.int64, np.int64]):
    """One episode of a `TabularTask` at a time.

    Observation and action are the numbers of the state and of the action. The reward of a step is
    `rewards[s, a]` and its true cost, `info["cost"]`, is `costs[s, a]`, both of the state the step
    was taken *in*. An episode is truncated after `horizon` steps and never terminates before.

    Randomness comes from the environment's own generator, seeded by `reset(seed=...)`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, task: TabularTask, *, render_mode: str | None = None) -> None:
        check_render_mode(render_mode)
        self.task = task
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(task.number_of_states)
        self.action_space = gymnasium.spaces.Discrete(task.number_of_actions)
        self.state: int | None = None
        self.steps_taken = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start an episode in a state drawn from the task's `initial`."""
        super().reset(seed=seed, options=options)
        self.steps_taken = 0
        self.state = self.draw(self.task.initial)
        return np.int64(self.state), {}

    def step(self, action: np.int64 | int) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take `action`: next state, reward, terminated (never), truncated, {"cost": true cost}."""
        if self.state is None:
            raise EpisodeError("no episode is running: call reset() before step()")
        if self.steps_taken >= self.task.horizon:
            raise EpisodeError(
                f"the episode ended after its {self.task.horizon} steps: call reset() before step()"
            )
        if not self.action_space.contains(action):
            raise ArgumentError(
                f"action must be a whole number from 0 to {self.task.number_of_actions - 1}, "
                f"not {action!r}"
            )
        pair = self.state, int(action)
        reward, cost = float(self.task.rewards[pair]), float(self.task.costs[pair])
        self.state = self.draw(self.task.transitions[pair])
        self.steps_taken += 1
        truncated = self.steps_taken >= self.task.horizon
        return np.int64(self.state), reward, False, truncated, {"cost": cost}

    def draw(self, distribution: Float[np.ndarray, " S"]) -> int:
        """A state drawn from `distribution` with this environment's generator."""
        cumulative = np.cumsum(distribution)
        # Scaled by its end, so that rounding can never select a state of probability zero.
        place = self.np_random.random() * cumulative[-1]
        return int(np.searchsorted(cumulative, place, side="right"))

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The map with the agent on it, or None without a render mode."""
        if self.render_mode is None:
            return None
        if self.state is None:
            raise EpisodeError("there is nothing to draw yet: call reset() before render()")
        return draw_agent(self.task, self.state)


def cells_of(task: TabularTask) -> Int[np.ndarray, "S 2"]:
    """Row and column of every state, from zero; a task without positions is a strip."""
    if task.positions is None:
        columns = np.arange(task.number_of_states)
        return np.stack([np.zeros_like(columns), columns], axis=1)
    positions = np.asarray(task.positions)
    return positions - positions.min(axis=0)


def cell_side(task: TabularTask) -> int:
    """Pixels along one cell: an even number, so that videos get even sides."""
    rows, columns = cells_of(task).max(axis=0) + 1
    room = STRIP_LENGTH if min(rows, columns) == 1 else PICTURE_SIDE
    return int(np.clip(room // max(rows, columns), SMALLEST_CELL, LARGEST_CELL)) // 2 * 2


def goals_of(task: TabularTask) -> Bool[np.ndarray, " S"]:
    """Allowed states that no action leaves and where the reward is the highest of all."""
    states = np.arange(task.number_of_states)
    keeps = (task.transitions[states, :, states] == 1).all(axis=1)
    best = (task.rewards == task.rewards.max()).all(axis=1)
    return keeps & best & (task.costs <= 0).all(axis=1)


@lru_cache(maxsize=16)
def draw_map(task: TabularTask) -> UInt8[np.ndarray, "height width 3"]:
    """The map without the agent.

    White cells are free, hatched red ones forbidden (the paler, the fewer actions are forbidden
    there), dark ones have no state. A blue ring marks a start, a green square a goal.
    """
    side = cell_side(task)
    cells = cells_of(task)
    rows, columns = cells.max(axis=0) + 1
    picture = np.full((rows * side + 2 * MARGIN, columns * side + 2 * MARGIN, 3), PAPER, np.uint8)
    picture[MARGIN:-MARGIN, MARGIN:-MARGIN] = WALL
    kinds = kinds_of(task)
    tiles = {kind: draw_tile(side - 1, *kind) for kind in set(kinds)}
    for (top, left), kind in zip(MARGIN + cells * side, kinds, strict=True):
        picture[top : top + side + 1, left : left + side + 1] = LINE
        picture[top + 1 : top + side, left + 1 : left + side] = tiles[kind]
    return picture


def kinds_of(task: TabularTask) -> list[tuple[float, bool, bool]]:
    """What is drawn in each state's cell: share of forbidden actions, start, goal."""
    shares = (task.costs > 0).mean(axis=1)
    marks = (task.initial > 0).tolist(), goals_of(task).tolist()
    return list(zip(shares.tolist(), *marks, strict=True))


def draw_tile(side: int, share: float, start: bool, goal: bool) -> UInt8[np.ndarray, "side side 3"]:
    """The inside of one cell, between its grid lines."""
    tile = np.full((side, side, 3), FREE, np.uint8)
    if share > 0:
        tile = blend(tile, np.full((side, side), share), FORBIDDEN)
        tile = blend(tile, share * hatch_cover(side), HATCH)
    if goal:
        tile = blend(tile, square_cover(side, 0.6 * side), GOAL)
    if start:
        ring = disc_cover(side, 0.36 * side) - disc_cover(side, 0.36 * side - max(side / 16, 1))
        tile = blend(tile, ring, START)
    return tile


def draw_agent(task: TabularTask, state: int) -> UInt8[np.ndarray, "height width 3"]:
    """The map with a blue disc in the cell of `state`."""
    side = cell_side(task)
    row, column = cells_of(task)[state]
    top, left = MARGIN + row * side, MARGIN + column * side
    picture = draw_map(task).copy()
    cell = picture[top + 1 : top + side, left + 1 : left + side]
    rimmed = blend(cell, disc_cover(side - 1, 0.34 * side), RIM)
    cell[:] = blend(rimmed, disc_cover(side - 1, 0.34 * side - max(side / 24, 1)), AGENT)
    return picture


def disc_cover(side: int, radius: float) -> Float[np.ndarray, "side side"]:
    """How much of each pixel a centred disc covers, for smooth edges."""
    offset = np.arange(side) - (side - 1) / 2
    return np.clip(radius + 0.5 - np.hypot(offset[:, None], offset[None, :]), 0, 1)


def square_cover(side: int, width: float) -> Float[np.ndarray, "side side"]:
    """How much of each pixel a centred square covers."""
    offset = np.abs(np.arange(side) - (side - 1) / 2)
    inside = np.clip(width / 2 + 0.5 - offset, 0, 1)
    return np.minimum(inside[:, None], inside[None, :])


def hatch_cover(side: int) -> Float[np.ndarray, "side side"]:
    """How much of each pixel the diagonal stripes cover; they run on in the next cell."""
    stripes = max(side // 12, 2)
    period = (side + 1) / stripes
    down, right = np.indices((side, side))
    distance = np.abs((down + right) % period - period / 2)
    return np.clip(1.2 - distance, 0, 1)


def blend(
    picture: UInt8[np.ndarray, "height width 3"],
    cover: Float[np.ndarray, "height width"],
    colour: tuple[int, int, int],
) -> UInt8[np.ndarray, "height width 3"]:
    """`picture` with `colour` laid over it, as opaque as `cover` says."""
    opacity = cover[:, :, None]
    return np.rint(picture * (1 - opacity) + opacity * np.array(colour)).astype(np.uint8)
