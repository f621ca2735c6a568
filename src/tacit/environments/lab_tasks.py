"""The built-in tabular tasks: a chain, and grids drawn as text."""

import numpy as np

from tacit.environments.tabular import TabularTask
from tacit.errors import TaskError

# S start, G goal, # wall (no state), x forbidden, . free.
LAYOUTS: dict[str, tuple[str, ...]] = {
    "open": (
        ".......",
        "..xxx..",
        "..xxx..",
        "S.xxx.G",
        "..x....",
        ".......",
        ".......",
    ),
    "gate": (
        "...#...",
        "...x...",
        "...#...",
        "S..x..G",
        "...#...",
        "...#...",
        ".......",
    ),
    "bridge": (
        "S......",
        ".......",
        "xxx.xxx",
        "xxx.xxx",
        "xxx.xxx",
        ".......",
        "......G",
    ),
    "rooms": (
        "....#....",
        ".S..x....",
        "....#....",
        "....#....",
        "##.####x#",
        "....#....",
        "....#....",
        "....x..G.",
        ".........",
    ),
    "maze": (
        "S..#.....",
        ".#.#.###.",
        ".#...#...",
        ".#####.#.",
        "...x...#.",
        ".#.###.#.",
        ".#...#.#.",
        ".###.#.#.",
        ".......xG",
    ),
    "warehouse": (
        "S...................",
        "....................",
        "..###..###xx###..##.",
        "..###..###xx###..##.",
        "....................",
        "....xxxx............",
        "..##xxxx###..###..#.",
        "..##....###..###..#.",
        "..##....###..###..#.",
        "..........xxxx......",
        "..........xxxx......",
        "..###..##.xxxx###...",
        "..###..##.....###...",
        "....................",
        "...xxx..............",
        "..#xxx###..##xx##...",
        "..#...###..##xx##...",
        "..#...###..##xx##...",
        "....................",
        "...................G",
    ),
}
MOVES = {"stay": (0, 0), "up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def chain(
    *,
    length: int = 41,
    limit: int = -7,
    slip: float = 0.1,
    horizon: int = 40,
    reward_scale: float = 1.0,
    budget: float = 0.02,
) -> TabularTask:
    """Walk on a line; the reward pulls to the left, the rule forbids positions below `limit`.

    Positions run from -(length - 1) / 2 to +(length - 1) / 2, the start is 0. The reward of a step
    is -position / 10 * reward_scale. With probability `slip` a step moves to a random side.
    """
    if length < 3 or length % 2 == 0:
        raise TaskError(f"length must be odd and at least 3, not {length}")
    check_probability("slip", slip)
    half = (length - 1) // 2
    if not -half < limit <= 0:
        raise TaskError(f"limit must lie in ({-half}, 0], not {limit}")
    position = np.arange(length) - half
    transitions = np.zeros((length, 3, length))
    states = np.arange(length)
    for action, move in enumerate((-1, 0, 1)):
        for target, probability in ((move, 1 - slip), (-1, slip / 2), (1, slip / 2)):
            transitions[states, action, np.clip(states + target, 0, length - 1)] += probability
    return TabularTask(
        transitions,
        rewards=-position / 10 * reward_scale,
        costs=(position < limit).astype(float),
        initial=position == 0,
        horizon=horizon,
        budget=budget,
        positions=np.stack([np.zeros_like(position), np.arange(length)], axis=1),
        actions=("left", "stay", "right"),
        name=f"chain x{reward_scale:g}",
    )


def grid_world(
    layout: str | tuple[str, ...] = "open",
    *,
    slip: float = 0.1,
    horizon: int | None = None,
    reward_scale: float = 1.0,
    budget: float = 0.02,
) -> TabularTask:
    """Walk to the goal; every step before it costs `reward_scale`, forbidden cells lie between.

    `layout` is a name from `LAYOUTS` or the rows of a map: S start, G goal, # wall, x forbidden,
    . free. With probability `slip` a step goes in a random one of the four directions. The goal
    is never left. The horizon is three times the map's longer side unless given.
    """
    check_probability("slip", slip)
    if isinstance(layout, str) and layout not in LAYOUTS:
        raise TaskError(f"there is no layout {layout!r}; there are {', '.join(LAYOUTS)}")
    name, rows = (layout, LAYOUTS[layout]) if isinstance(layout, str) else ("drawn", layout)
    cells = parse_map(rows)
    index = {cell: state for state, cell in enumerate(cells)}
    symbols = np.array(list(cells.values()))
    goals = np.flatnonzero(symbols == "G")
    transitions = np.zeros((len(cells), len(MOVES), len(cells)))
    for (row, column), state in index.items():
        landing = {
            move: index.get((row + down, column + right), state)
            for move, (down, right) in MOVES.items()
        }
        for action, move in enumerate(MOVES):
            transitions[state, action, landing[move]] += 1 - slip
            for side in ("up", "right", "down", "left"):
                transitions[state, action, landing[side]] += slip / 4
    transitions[goals] = 0
    transitions[goals, :, goals] = 1
    starts = (symbols == "S").astype(float)
    return TabularTask(
        transitions,
        rewards=np.where(symbols == "G", 0.0, -reward_scale),
        costs=(symbols == "x").astype(float),
        initial=starts / starts.sum(),
        horizon=3 * max(len(rows), len(rows[0])) if horizon is None else horizon,
        temperature=0.25,
        budget=budget,
        positions=np.array(list(cells)),
        actions=tuple(MOVES),
        name=f"grid {name} x{reward_scale:g}",
    )


def parse_map(rows: tuple[str, ...]) -> dict[tuple[int, int], str]:
    """(row, column) -> symbol for every cell that is not a wall, in reading order."""
    if not rows or any(len(row) != len(rows[0]) for row in rows) or not rows[0]:
        raise TaskError("the rows of a map must be there and of one length")
    unknown = sorted(set("".join(rows)) - set("SG#x."))
    if unknown:
        raise TaskError(f"a map has S, G, #, x and . only, not {unknown[0]!r}")
    text = "".join(rows)
    if "S" not in text or "G" not in text:
        raise TaskError("a map needs at least one start S and one goal G")
    return {
        (row, column): symbol
        for row, line in enumerate(rows)
        for column, symbol in enumerate(line)
        if symbol != "#"
    }


def check_probability(field: str, value: float) -> None:
    """Raise an error unless `value` lies in [0, 1]."""
    if not 0 <= value <= 1:
        raise TaskError(f"{field} must lie in [0, 1], not {value!r}")
