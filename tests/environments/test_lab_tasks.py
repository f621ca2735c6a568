"""The chain and the grids are what their pictures and docstrings promise."""

import numpy as np
import pytest

from tacit.environments.lab_tasks import LAYOUTS, MOVES, chain, grid_world
from tacit.errors import TaskError

SMALL = ("S.x", ".#G")


def reachable(task, *, allowed_only):
    """The states that some actions lead to from the start."""
    found = np.zeros(task.number_of_states, dtype=bool)
    frontier = list(np.flatnonzero(task.initial))
    while frontier:
        state = frontier.pop()
        if found[state] or (allowed_only and not task.allowed[state]):
            continue
        found[state] = True
        frontier += list(np.flatnonzero(task.transitions[state].max(axis=0)))
    return found


def distances(links, here):
    """Steps from the states `here` to every state."""
    steps = np.where(here, 0, len(links) + 1)
    for step in range(1, len(links)):
        fresh = ((here @ links) > 0) & ~here
        steps[fresh] = step
        here = here | fresh
    return steps


def state_at(task, row, column):
    return int(np.flatnonzero((task.positions == (row, column)).all(axis=1))[0])


def goal_states(layout):
    cells = [symbol for line in layout for symbol in line if symbol != "#"]
    return np.flatnonzero(np.array(cells) == "G")


def test_there_are_four_layouts_or_more_with_walls_and_without_and_a_large_one():
    assert len(LAYOUTS) >= 4
    walled = ["#" in "".join(rows) for rows in LAYOUTS.values()]
    assert any(walled)
    assert not all(walled)
    assert any(len(rows) >= 20 and len(rows[0]) >= 20 for rows in LAYOUTS.values())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_a_task_about_states_with_something_forbidden(layout):
    task = grid_world(layout)
    text = "".join(LAYOUTS[layout])
    assert task.number_of_states == len(text) - text.count("#")
    assert task.rule_on == "state"
    assert (~task.allowed).sum() == text.count("x") > 0
    assert task.number_of_actions == len(task.actions) == len(MOVES)
    assert task.positions.shape == (task.number_of_states, 2)
    np.testing.assert_allclose(task.transitions.sum(axis=2), 1)
    assert (task.transitions >= 0).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_follow_the_drawing(layout):
    task = grid_world(layout)
    symbols = np.array([LAYOUTS[layout][row][column] for row, column in task.positions])
    assert len(set(map(tuple, task.positions))) == task.number_of_states
    np.testing.assert_array_equal(task.allowed, symbols != "x")
    np.testing.assert_array_equal(task.initial > 0, symbols == "S")
    assert "#" not in symbols


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_goal_can_be_reached_without_breaking_the_rule(layout):
    found = reachable(grid_world(layout, slip=0), allowed_only=True)
    assert found[goal_states(LAYOUTS[layout])].all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_state_can_be_reached_and_the_horizon_is_long_enough_for_the_goal(layout):
    task = grid_world(layout, slip=0)
    assert reachable(task, allowed_only=False).all()
    clean = task.transitions.max(axis=1) * task.allowed
    here = task.initial > 0
    for _ in range(task.horizon):
        here = here | ((here @ clean) > 0)
    assert here[goal_states(LAYOUTS[layout])].all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_rule_matters_because_a_shortest_way_would_break_it(layout):
    task = grid_world(layout, slip=0)
    links = task.transitions.max(axis=1)
    from_start = distances(links, task.initial > 0)
    goal = goal_states(LAYOUTS[layout])[0]
    to_goal = distances(links.T, np.arange(task.number_of_states) == goal)
    assert ((from_start + to_goal)[~task.allowed] == from_start[goal]).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_goal_keeps_whoever_arrives_and_alone_is_free_of_charge(layout):
    task = grid_world(layout, reward_scale=2.5)
    goals = goal_states(LAYOUTS[layout])
    assert (task.transitions[goals, :, goals] == 1).all()
    assert (task.rewards[goals] == 0).all()
    assert (np.delete(task.rewards, goals, axis=0) == -2.5).all()


def test_moves_go_where_they_say_and_walls_and_edges_stop_them():
    task = grid_world(SMALL, slip=0)
    start = state_at(task, 0, 0)
    landing = {"stay": (0, 0), "up": (0, 0), "left": (0, 0), "right": (0, 1), "down": (1, 0)}
    for action, move in enumerate(task.actions):
        assert task.transitions[start, action, state_at(task, *landing[move])] == 1
    below_is_wall = state_at(task, 0, 1)
    assert task.transitions[below_is_wall, task.actions.index("down"), below_is_wall] == 1


def test_slipping_goes_each_way_equally_often():
    task = grid_world(SMALL, slip=0.2)
    start, right = state_at(task, 0, 0), list(MOVES).index("right")
    row = task.transitions[start, right]
    assert row[start] == pytest.approx(0.1)
    assert row[state_at(task, 0, 1)] == pytest.approx(0.85)
    assert row[state_at(task, 1, 0)] == pytest.approx(0.05)


def test_starts_share_the_first_state_equally():
    task = grid_world(("S.S", "xG."))
    np.testing.assert_array_equal(np.sort(task.initial)[-2:], [0.5, 0.5])


def test_options_reach_the_grid():
    task = grid_world("open", horizon=9, budget=0.3, reward_scale=4)
    assert (task.horizon, task.budget) == (9, 0.3)
    assert task.rewards.min() == -4


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ((), "rows of a map"),
        (("",), "rows of a map"),
        (
            (
                "S.G",
                "..",
            ),
            "one length",
        ),
        (("S.G", ".?."), r"not '\?'"),
        (("..G", "..."), "start S"),
        (("S..", "..."), "goal G"),
    ],
)
def test_a_bad_map_is_refused_in_words(rows, match):
    with pytest.raises(TaskError, match=match):
        grid_world(rows)


def test_an_unknown_layout_is_refused_with_the_names_there_are():
    with pytest.raises(TaskError, match=r"no layout 'labyrinth'.*open.*warehouse"):
        grid_world("labyrinth")


@pytest.mark.parametrize("build", [chain, grid_world])
@pytest.mark.parametrize("slip", [-0.1, 1.1, float("nan")])
def test_a_slip_that_is_no_probability_is_refused(build, slip):
    with pytest.raises(TaskError, match="slip must lie in"):
        build(slip=slip)


@pytest.mark.parametrize(("length", "limit"), [(41, -7), (3, 0), (11, -4)])
def test_the_chain_forbids_the_positions_below_the_limit(length, limit):
    task = chain(length=length, limit=limit)
    position = np.arange(length) - length // 2
    np.testing.assert_array_equal(task.allowed, position >= limit)
    np.testing.assert_array_equal(task.initial, position == 0)
    np.testing.assert_allclose(task.transitions.sum(axis=2), 1)
    assert (np.diff(task.rewards[:, 0]) < 0).all()
    assert task.rule_on == "state"


def test_the_chain_moves_by_one_slips_to_both_sides_and_stops_at_its_ends():
    task = chain(length=5, limit=-1, slip=0.2)
    left, stay, right = range(3)
    np.testing.assert_allclose(task.transitions[2, left], [0, 0.9, 0, 0.1, 0])
    np.testing.assert_allclose(task.transitions[2, stay], [0, 0.1, 0.8, 0.1, 0])
    np.testing.assert_allclose(task.transitions[2, right], [0, 0.1, 0, 0.9, 0])
    np.testing.assert_allclose(task.transitions[0, left], [0.9, 0.1, 0, 0, 0])
    np.testing.assert_allclose(task.transitions[4, right], [0, 0, 0, 0.1, 0.9])


def test_options_reach_the_chain():
    plain, scaled = chain(), chain(reward_scale=3, horizon=12, budget=0.5)
    np.testing.assert_allclose(scaled.rewards, 3 * plain.rewards)
    assert (scaled.horizon, scaled.budget) == (12, 0.5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"length": 4}, "length must be odd"),
        ({"length": 1}, "length must be odd and at least 3"),
        ({"length": 11, "limit": -5}, "limit must lie in"),
        ({"limit": 1}, "limit must lie in"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_a_chain_that_cannot_be_is_refused(options, match):
    with pytest.raises(TaskError, match=match):
        chain(**options)
