"""Pure-JAX tasks: the arrays of a tabular task, obeyed inside and outside of compiled loops."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

from tacit.environments.jax_environment import JaxEnvironment
from tacit.environments.jax_world import (
    JaxStep,
    JaxWorlds,
    advance_world,
    autoreset,
    start_world,
    world_keys,
)
from tacit.environments.lab_tasks import grid_world
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import TabularState, simulator_of, tabular_world
from tacit.errors import ArgumentError, EpisodeError, TaskError
from tacit.precision import double_precision


def random_task(horizon=6):
    random = np.random.default_rng(0)
    transitions = random.dirichlet(np.full(4, 0.5), (4, 3))
    transitions[0, 0] = [0.0, 0.5, 0.5, 0.0]
    return TabularTask(
        transitions,
        rewards=random.normal(size=(4, 3)),
        costs=random.integers(0, 2, (4, 3)) * 0.5,
        initial=[0.2, 0.0, 0.8, 0.0],
        horizon=horizon,
        name="random",
    )


class DriftState(NamedTuple):
    place: Any
    steps: Any
    key: Any


@dataclass(frozen=True, eq=False)
class Drift:
    """A point that drifts: continuous, ends when far out, two costs, a random key in its state.

    It is broken in one place: standing still on purpose gives NaN.
    """

    name: str = "Drift"
    horizon: int | None = 5
    constraints: tuple[str, ...] = ("left", "fast")
    number_of_costs: int = 2
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, key):
        key, now = jax.random.split(key)
        state = DriftState(jax.random.normal(now, (2,), jnp.float32), jnp.int32(0), key)
        return state, state.place

    def step(self, state, action, key):
        place = state.place + action + 0.5 * jax.random.normal(key, (2,), jnp.float32)
        arrived = DriftState(place, state.steps + jnp.int32(1), state.key)
        costs = jnp.array([place[0] < 0, jnp.abs(action).max() > 0.5]).astype(jnp.float32)
        return JaxStep(
            arrived,
            jnp.where((action == 0).all(), jnp.nan, place),
            place.sum(),
            costs,
            jnp.abs(place).max() > 3,
            arrived.steps >= 5,
        )


# Programs are compiled for a task and a number of worlds: the tests share what they can.
RANDOM, ROOMS = random_task(), grid_world("rooms")
SIMULATED, SIMULATED_ROOMS = simulator_of(RANDOM), simulator_of(ROOMS)
TABLE, DRIFT = SIMULATED.worlds(1).task, Drift()
both = pytest.mark.parametrize("task", [TABLE, DRIFT], ids=["table", "drift"])


def run(worlds, steps, random):
    """The steps of random actions."""
    events = []
    for _ in range(steps):
        if isinstance(worlds.action_space, gymnasium.spaces.Discrete):
            actions = random.integers(worlds.action_space.n, size=worlds.number)
        else:
            actions = random.normal(size=(worlds.number, 2)).astype(np.float32)
        events.append((actions, worlds.step(actions)))
    return events


def assert_equal(task, numbers, others):
    """XLA may round floats differently in programs of different shape; tables do not compute."""
    if task is DRIFT:
        np.testing.assert_allclose(numbers, others, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(numbers, others)


def assert_same(first, second):
    for (actions, step), (other_actions, other) in zip(first, second, strict=True):
        np.testing.assert_array_equal(actions, other_actions)
        for field, other_field in zip(step, other, strict=True):
            np.testing.assert_array_equal(field, other_field)


def test_next_states_are_as_frequent_as_the_transitions_say():
    task, compiled = RANDOM, TABLE
    keys = jax.random.split(jax.random.key(0), 20_000)

    @jax.jit
    def counts(place, action):
        state = TabularState(place, jnp.int32(0))
        moved = jax.vmap(lambda key: compiled.step(state, action, key).state.place)(keys)
        return jnp.bincount(moved, length=4)

    for place in range(4):
        for action in range(3):
            expected = task.transitions[place, action]
            found = np.array(counts(jnp.int32(place), jnp.int32(action)))
            possible = expected > 0
            assert found[~possible].sum() == 0
            chance = stats.chisquare(found[possible], expected[possible] * len(keys)).pvalue
            assert chance > 1e-4
    starts = np.bincount(jax.vmap(compiled.reset)(keys)[0].place, minlength=4)
    np.testing.assert_allclose(starts / len(keys), task.initial, atol=0.01)


@pytest.mark.parametrize(
    ("task", "stepped"), [(RANDOM, SIMULATED), (ROOMS, SIMULATED_ROOMS)], ids=["random", "rooms"]
)
def test_a_step_pays_and_costs_what_the_state_it_was_taken_in_says(task, stepped):
    worlds = stepped.worlds(4)
    before = worlds.reset(0)
    steps = 0
    for actions, step in run(worlds, 5 * task.horizon + 1, np.random.default_rng(0)):
        places = before[:, :-1].argmax(axis=1)
        arrived = step.arrived[:, :-1].argmax(axis=1)
        np.testing.assert_array_equal(before[:, :-1].sum(axis=1), 1)
        np.testing.assert_array_equal(step.rewards, task.rewards[places, actions].astype("f4"))
        np.testing.assert_array_equal(step.costs[:, 0], task.costs[places, actions].astype("f4"))
        assert (task.transitions[places, actions, arrived] > 0).all()
        np.testing.assert_array_equal(before[:, -1], np.float32(steps / task.horizon))
        steps = (steps + 1) % task.horizon
        assert (step.terminated == (steps == 0)).all()
        assert not step.truncated.any()
        if steps:
            np.testing.assert_array_equal(step.observations, step.arrived)
        else:
            np.testing.assert_array_equal(step.arrived[:, -1], 1)
            starts = step.observations[:, :-1].argmax(axis=1)
            assert (task.initial[starts] > 0).all()
        before = step.observations


def test_rounding_selects_no_impossible_state():
    """0.1 ten times is not one in floating point; the eleventh state stays out of reach."""
    transitions = np.tile(np.append(np.full(10, 0.1), 0.0), (11, 1, 1))
    compiled = tabular_world(
        TabularTask(transitions, np.zeros(11), np.zeros(11), transitions[0, 0], horizon=1)
    )
    cumulative = np.array(compiled.cumulative)
    assert (cumulative[..., 9] == 1).all()
    largest = np.nextafter(np.float32(1), np.float32(0))
    assert (cumulative <= largest).sum(axis=-1).max() == 9


@both
def test_a_thousand_worlds_equal_one_by_one(task):
    steps, number, some = 12, 1000, (0, 1, 517, 999)
    many = JaxWorlds(task, number)
    starts = many.reset(3)
    events = run(many, steps, np.random.default_rng(1))
    single = JaxWorlds(task, 1)
    for world in some:
        assert_equal(task, single.reset(3 + world)[0], starts[world])
        for actions, step in events:
            alone = single.step(actions[world : world + 1])
            for field, alone_field in zip(step, alone, strict=True):
                assert_equal(task, field[world], alone_field[0])
    assert sum(step.terminated.sum() for _, step in events) > 0
    if isinstance(task, Drift):
        assert sum(step.truncated.sum() for _, step in events) > 0


@both
def test_the_gymnasium_environment_equals_one_world(task):
    worlds, environment = JaxWorlds(task, 1), JaxEnvironment(task)
    before, _ = environment.reset(seed=9)
    assert_equal(task, worlds.reset(9)[0], before)
    for actions, step in run(worlds, 20, np.random.default_rng(2)):
        arrived, reward, terminated, truncated, info = environment.step(actions[0])
        assert_equal(task, step.arrived[0], arrived)
        assert_equal(task, step.rewards[0], reward)
        assert_equal(task, step.costs[0], info["cost"])
        assert (step.terminated[0], step.truncated[0]) == (terminated, truncated)
        before = environment.reset()[0] if terminated or truncated else arrived
        assert_equal(task, step.observations[0], before)


def test_a_compiled_loop_gives_the_numbers_of_the_worlds():
    task = TABLE
    worlds = JaxWorlds(task, 4)
    worlds.reset(0)
    events = run(worlds, 10, np.random.default_rng(0))
    actions = np.array([actions for actions, _ in events])

    @jax.jit
    @jax.vmap
    def whole_loop(key, actions):
        def body(standing, action):
            return advance_world(task, standing, action)

        return jax.lax.scan(body, start_world(task, key), actions)[1]

    taken = whole_loop(world_keys(0, 4), actions.swapaxes(0, 1))
    arrived = [step.arrived for _, step in events]
    np.testing.assert_array_equal(taken.observation.swapaxes(0, 1), arrived)


def test_autoreset_begins_the_next_episode_only_where_one_ended():
    task = DRIFT
    key, step_key = jax.random.split(jax.random.key(0))
    state, _ = task.reset(key)
    still, onwards, observation = autoreset(task)(state, jnp.full(2, 0.1), step_key)
    np.testing.assert_array_equal(observation, still.observation)
    assert onwards.steps == 1
    late = state._replace(steps=jnp.int32(4))
    over, onwards, observation = autoreset(task)(late, jnp.full(2, 0.1), step_key)
    assert over.truncated
    assert onwards.steps == 0
    np.testing.assert_array_equal(over.observation, still.observation)
    np.testing.assert_array_equal(observation, task.reset(jax.random.split(step_key)[1])[1])


@both
def test_restored_worlds_go_on_bit_for_bit(task):
    worlds = JaxWorlds(task, 4)
    assert worlds.resumable
    worlds.reset(1)
    last = run(worlds, 4, np.random.default_rng(0))[-1][1]
    kept = worlds.state()
    assert all(array.dtype.kind in "fiub" for array in kept.values())
    then = run(worlds, 20, np.random.default_rng(1))
    fresh = JaxWorlds(task, 4)
    np.testing.assert_array_equal(fresh.restore(kept), last.observations)
    assert_same(run(fresh, 20, np.random.default_rng(1)), then)
    worlds.restore(kept)
    assert_same(run(worlds, 20, np.random.default_rng(1)), then)


def test_the_precision_setting_of_jax_changes_nothing():
    def numbers():
        worlds = SIMULATED.worlds(4)
        worlds.reset(0)
        events = run(worlds, 15, np.random.default_rng(0))
        return events, worlds.state()

    single, state = numbers()
    with double_precision(True):
        double, other = numbers()
    assert_same(single, double)
    assert {k: v.dtype for k, v in state.items()} == {k: v.dtype for k, v in other.items()}


def test_seeds_beyond_32_bits_are_seeds_of_their_own():
    assert (world_keys(5, 2) == jax.random.split(jax.random.key(0), 2)).sum() == 0
    assert world_keys(5, 2)[1] == jax.random.key(6)
    assert world_keys(2**32 + 5, 1)[0] != jax.random.key(5)
    with pytest.raises(ArgumentError, match="below"):
        world_keys(2**64 - 1, 2)


def test_what_the_worlds_return_may_be_written_to():
    worlds = SIMULATED.worlds(4)
    worlds.reset(0)[:] = 0
    for field in worlds.step(np.zeros(4, int)):
        field[:] = 0
    assert worlds.state()["observations"].any()


def test_a_simulated_task_is_described():
    task = SIMULATED_ROOMS
    states = ROOMS.number_of_states
    assert task.observation_space.shape == (states + 1,)
    assert task.action_space == gymnasium.spaces.Discrete(ROOMS.number_of_actions)
    assert (task.horizon, task.constraints) == (ROOMS.horizon, ("cost",))
    assert task.observation_names == (*(f"state {place}" for place in range(states)), "time")
    assert ROOMS.observation_names == ("state",)
    assert simulator_of(task) is task
    worlds = task.worlds(4, threads=1)
    assert worlds.number_of_costs == 1
    assert all(worlds.observation_space.contains(row) for row in worlds.reset(0))


def test_its_environment_obeys_gymnasium_and_draws_pictures():
    task = SIMULATED
    check_env(task.environment(render_mode="rgb_array"), skip_render_check=True)
    environment = task.environment(render_mode="rgb_array")
    with pytest.raises(EpisodeError, match="nothing to draw"):
        environment.render()
    with pytest.raises(EpisodeError, match=r"reset\(\)"):
        environment.step(0)
    environment.reset(seed=0)
    for _ in range(6):
        environment.step(1)
    assert environment.render().ndim == 3
    with pytest.raises(EpisodeError, match=r"reset\(\)"):
        environment.step(0)
    environment.reset()
    given_up, _ = environment.reset()
    assert environment.observation_space.contains(given_up)
    assert task.environment().reset()[0].shape == (5,)
    assert task.environment().render() is None
    with pytest.raises(ArgumentError, match="render_mode"):
        task.environment(render_mode="human")


def test_calls_that_cannot_work_are_explained():
    worlds = SIMULATED.worlds(4)
    nothing = np.zeros(4, int)
    for call in (lambda: worlds.step(nothing), worlds.state):
        with pytest.raises(EpisodeError, match="reset"):
            call()
    worlds.reset(0)
    with pytest.raises(ArgumentError, match="world 1 is 3"):
        worlds.step(np.array([0, 3, 0, 0]))
    with pytest.raises(ArgumentError, match="seed"):
        worlds.reset(-1)
    with pytest.raises(ArgumentError, match="number of worlds"):
        SIMULATED.worlds(0)
    state = worlds.state()
    for wrong in (state["state.place"][:2], state["state.place"].astype(float)):
        with pytest.raises(ArgumentError, match=r"state\.place in this state.*not int32.*\[4\]"):
            worlds.restore({**state, "state.place": wrong})
    with pytest.raises(ArgumentError, match="holds"):
        worlds.restore({"keys": state["keys"]})
    worlds.close()
    with pytest.raises(EpisodeError, match="reset"):
        worlds.step(nothing)


def test_a_task_that_returns_nan_is_named():
    worlds = JaxWorlds(DRIFT, 4)
    worlds.reset(0)
    with pytest.raises(TaskError, match=r"world 2 of Drift returned the observation .*nan"):
        worlds.step(np.array([[1, 1], [1, 1], [0, 0], [1, 1]]))
    assert worlds.step(np.ones((4, 2))).arrived.shape == (4, 2)
