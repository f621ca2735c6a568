"""Walking through a task obeys its arrays, Gymnasium's rules and the seed."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tacit.environments.registry  # noqa: F401
from tacit.environments.lab_tasks import LAYOUTS, chain, grid_world
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import (
    AGENT,
    MARGIN,
    WALL,
    TabularEnvironment,
    cell_side,
    cells_of,
)
from tacit.errors import ArgumentError, EpisodeError, TacitError

TASKS = {layout: lambda layout=layout: grid_world(layout) for layout in LAYOUTS} | {"chain": chain}


def random_task(seed=0, horizon=6):
    random = np.random.default_rng(seed)
    transitions = random.dirichlet(np.full(4, 0.5), (4, 3))
    transitions[0, 0] = [0.0, 0.5, 0.5, 0.0]
    return TabularTask(
        transitions,
        rewards=random.normal(size=(4, 3)),
        costs=random.integers(0, 2, (4, 3)) * 0.5,
        initial=[0.2, 0.0, 0.8, 0.0],
        horizon=horizon,
    )


def walk(environment, seed, steps=200):
    """Everything that happens in `steps` random steps."""
    random = np.random.default_rng(1)
    events = [environment.reset(seed=seed)]
    for _ in range(steps):
        events.append(environment.step(random.integers(environment.action_space.n)))
        if events[-1][3]:
            events.append(environment.reset())
    return events


def cell_of(picture, task, state):
    side = cell_side(task)
    top, left = MARGIN + cells_of(task)[state] * side
    return picture[top + 1 : top + side, left + 1 : left + side].astype(int)


@pytest.mark.parametrize(
    ("name", "options"),
    [("Chain", {}), *(("GridWorld", {"layout": layout}) for layout in LAYOUTS)],
)
def test_gymnasium_s_checker_is_content(name, options):
    environment = gymnasium.make(f"tacit/{name}-v0", render_mode="rgb_array", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(environment.unwrapped)


def test_the_same_seed_gives_the_same_walk_and_another_seed_another():
    one, other = TabularEnvironment(random_task()), TabularEnvironment(random_task())
    assert walk(one, seed=3) == walk(other, seed=3) == walk(one, seed=3)
    assert walk(one, seed=3) != walk(one, seed=4)


def test_global_random_numbers_and_other_environments_do_not_interfere():
    lonely = walk(TabularEnvironment(random_task()), seed=5)
    noisy, neighbour = TabularEnvironment(random_task()), TabularEnvironment(random_task())
    random = np.random.default_rng(1)
    neighbour.reset(seed=5)
    events = [noisy.reset(seed=5)]
    while len(events) < 5:
        neighbour.reset()
        neighbour.step(0)
        events.append(noisy.step(random.integers(3)))
    assert events == lonely[:5]


def test_a_step_pays_and_costs_what_its_state_and_action_say():
    task = random_task()
    environment = TabularEnvironment(task)
    random = np.random.default_rng(0)
    state, info = environment.reset(seed=0)
    assert info == {}
    for step in range(task.horizon):
        action = random.integers(task.number_of_actions)
        successor, reward, terminated, truncated, info = environment.step(action)
        assert reward == task.rewards[state, action]
        assert info == {"cost": task.costs[state, action]}
        assert type(reward) is type(info["cost"]) is float
        assert task.transitions[state, action, successor] > 0
        assert terminated is False
        assert truncated is (step == task.horizon - 1)
        state = successor


def test_absorbing_states_do_not_end_the_episode():
    environment = TabularEnvironment(grid_world(("SG",), slip=0, horizon=5))
    environment.reset(seed=0)
    ends = [environment.step(2)[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]


def test_frequencies_match_the_transitions():
    """4,000 draws per pair: no cell further than 5 standard errors (12 rows of 4) from its own."""
    task = random_task()
    environment = TabularEnvironment(task)
    environment.reset(seed=0)
    draws = 4000
    for pair in np.ndindex(task.number_of_states, task.number_of_actions):
        counts = np.zeros(task.number_of_states)
        for _ in range(draws):
            environment.state, environment.steps_taken = pair[0], 0
            counts[environment.step(pair[1])[0]] += 1
        expected = task.transitions[pair]
        error = np.sqrt(expected * (1 - expected) / draws)
        assert (np.abs(counts / draws - expected) <= 5 * error).all()


def test_frequencies_match_the_initial_distribution():
    task = random_task()
    environment = TabularEnvironment(task)
    environment.reset(seed=0)
    starts = np.bincount([environment.reset()[0] for _ in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(starts, task.initial, atol=5 * np.sqrt(0.2 * 0.8 / 4000))
    assert starts[1] == starts[3] == 0


@pytest.mark.parametrize("place", [0.0, np.nextafter(1.0, 0.0)])
def test_a_state_of_probability_zero_is_never_drawn(place, monkeypatch):
    environment = TabularEnvironment(random_task())

    class Extreme:
        def random(self):
            return place

    monkeypatch.setattr(environment, "_np_random", Extreme())
    for distribution in ([0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, *[0.1] * 10, 0], [0, *[1 / 7] * 7, 0]):
        assert distribution[environment.draw(np.array(distribution))] > 0


@pytest.mark.parametrize("action", [-1, 3, 1.0, "left", None, np.array([0, 1])])
def test_an_action_that_does_not_exist_is_refused(action):
    environment = TabularEnvironment(random_task())
    environment.reset(seed=0)
    with pytest.raises(ArgumentError, match="action must be a whole number from 0 to 2, not"):
        environment.step(action)


def test_a_step_outside_an_episode_is_refused():
    environment = TabularEnvironment(random_task(horizon=1), render_mode="rgb_array")
    with pytest.raises(EpisodeError, match=r"call reset\(\) before step") as caught:
        environment.step(0)
    assert isinstance(caught.value, TacitError)
    with pytest.raises(EpisodeError, match=r"call reset\(\) before render"):
        environment.render()
    environment.reset(seed=0)
    environment.step(0)
    with pytest.raises(EpisodeError, match=r"ended after its 1 steps: call reset\(\)"):
        environment.step(0)
    environment.reset()
    environment.step(0)


def test_without_a_render_mode_nothing_is_drawn_and_others_are_refused():
    environment = TabularEnvironment(random_task())
    environment.reset(seed=0)
    assert environment.render() is None
    with pytest.raises(ArgumentError, match="not 'human'"):
        TabularEnvironment(random_task(), render_mode="human")
    assert environment.metadata["render_fps"] > 0


@pytest.mark.parametrize("name", TASKS)
def test_the_picture_shows_walls_forbidden_cells_and_the_agent(name):
    task = TASKS[name]()
    environment = TabularEnvironment(task, render_mode="rgb_array")
    start, _ = environment.reset(seed=0)
    picture = environment.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert all(side % 2 == 0 for side in picture.shape[:2])
    assert len(np.unique(picture[MARGIN:-MARGIN, MARGIN:-MARGIN].reshape(-1, 3), axis=0)) > 3
    middle = (cell_side(task) - 1) // 2
    for state in range(task.number_of_states):
        cell = cell_of(picture, task, state)
        if state != start:
            redness = (cell[:, :, 0] - cell[:, :, 2]).mean()
            assert (redness > 20) == (not task.allowed[state])
        assert (tuple(cell[middle, middle]) == AGENT) == (state == start)
    walls = (picture == WALL).all(axis=2).any()
    assert walls == (name in LAYOUTS and "#" in "".join(LAYOUTS[name]))


def test_the_picture_follows_the_agent_and_leaves_nothing_behind():
    environment = TabularEnvironment(grid_world(("S..G",), slip=0), render_mode="rgb_array")
    environment.reset(seed=0)
    task = environment.task
    before = environment.render()
    kept = before.copy()
    environment.step(task.actions.index("right"))
    after = environment.render()
    for state in (0, 1):
        assert (cell_of(before, task, state) != cell_of(after, task, state)).any()
    for state in (2, 3):
        np.testing.assert_array_equal(cell_of(before, task, state), cell_of(after, task, state))
    environment.step(task.actions.index("left"))
    np.testing.assert_array_equal(environment.render(), kept)
    np.testing.assert_array_equal(before, kept)


def test_a_task_without_positions_is_a_strip_and_pairs_are_paler_than_states():
    costs = np.zeros((4, 2))
    costs[1, 0] = costs[2] = 1
    still = np.tile(np.eye(4)[:, None], (1, 2, 1))
    task = TabularTask(still, np.arange(4.0), costs, np.eye(4)[0], 3)
    environment = TabularEnvironment(task, render_mode="rgb_array")
    environment.reset(seed=0)
    picture = environment.render()
    side = cell_side(task)
    assert picture.shape == (side + 2 * MARGIN, 4 * side + 2 * MARGIN, 3)
    free, pair, state = (255 - cell_of(picture, task, cell)[:, :, 2].mean() for cell in (0, 1, 2))
    assert free < pair < state


def test_positions_may_start_anywhere():
    plain = grid_world(("S.", "xG"))
    fields = ("transitions", "rewards", "costs", "initial", "horizon")
    arrays = {field: getattr(plain, field) for field in fields}
    moved = TabularTask(**arrays, positions=plain.positions + np.array([-3, 7]))
    pictures = []
    for task in (plain, moved):
        environment = TabularEnvironment(task, render_mode="rgb_array")
        environment.reset(seed=0)
        pictures.append(environment.render())
    np.testing.assert_array_equal(*pictures)


def test_gymnasium_collects_pictures_in_a_list():
    environment = gymnasium.make("tacit/GridWorld-v0", render_mode="rgb_array_list")
    environment.reset(seed=0)
    environment.step(0)
    assert len(environment.render()) == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_batch_of_environments_equals_single_ones_bit_for_bit(mode):
    options = {"layout": "open", "horizon": 5, "slip": 0.4}
    # A fork of a process that runs JAX's threads is unsafe, and Python says so.
    apart = {"vector_kwargs": {"context": "spawn"}} if mode == "async" else {}
    batch = gymnasium.make_vec(
        "tacit/GridWorld-v0", num_envs=3, vectorization_mode=mode, **apart, **options
    )
    singles = [gymnasium.make("tacit/GridWorld-v0", **options) for _ in range(3)]
    random = np.random.default_rng(0)
    states, _ = batch.reset(seed=[10, 11, 12])
    expected = [single.reset(seed=10 + row)[0] for row, single in enumerate(singles)]
    np.testing.assert_array_equal(states, expected)
    for _ in range(5):
        actions = random.integers(5, size=3)
        states, rewards, terminated, truncated, info = batch.step(actions)
        steps = [single.step(action) for single, action in zip(singles, actions, strict=True)]
        np.testing.assert_array_equal(states, [step[0] for step in steps])
        np.testing.assert_array_equal(rewards, [step[1] for step in steps])
        np.testing.assert_array_equal(truncated, [step[3] for step in steps])
        np.testing.assert_array_equal(info["cost"], [step[4]["cost"] for step in steps])
        assert not terminated.any()
    assert truncated.all()
    batch.close()


def test_a_batch_goes_on_after_its_episodes_end():
    batch = gymnasium.make_vec("tacit/Chain-v0", num_envs=3, horizon=4)
    batch.reset(seed=0)
    ends = [batch.step(np.zeros(3, dtype=int))[3].all() for _ in range(12)]
    assert sum(ends) >= 2
    batch.close()
