"""Many worlds of a JAX world under Gymnasium: episodes, what is told of their ends, seeds."""

from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from tacit.environments.jax_environment import JaxEnvironment, JaxVectorEnvironment
from tacit.environments.jax_world import JaxStep
from tacit.errors import ArgumentError, EpisodeError

WORLDS = 4


class WalkState(NamedTuple):
    place: jax.Array
    steps: jax.Array


@dataclass(frozen=True, eq=False)
class Walk:
    """A random walk that ends beyond 2, or after 6 steps; it costs to be on the left."""

    number_of_costs: int = 1
    name: str = "Walk"
    horizon: int | None = 6
    observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    @property
    def constraints(self):
        return ("left", "far left")[: self.number_of_costs]

    def reset(self, key):
        place = jax.random.uniform(key, (1,), jnp.float32, -1, 1)
        return WalkState(place, jnp.int32(0)), place

    def step(self, state, action, key):
        place = state.place + action + 0.5 * jax.random.normal(key, (1,), jnp.float32)
        place = jnp.clip(place, -9, 9)
        steps = state.steps + jnp.int32(1)
        costs = (place < jnp.array([0, -1])[: self.number_of_costs]).astype(jnp.float32)
        far = jnp.abs(place[0]) > 2
        return JaxStep(
            WalkState(place, steps), place, -jnp.abs(place[0]), costs, far, ~far & (steps >= 6)
        )


WALK, TWO_COSTS = Walk(), Walk(number_of_costs=2)
both = pytest.mark.parametrize("task", [WALK, TWO_COSTS], ids=["one cost", "two costs"])


@both
def test_every_world_goes_the_way_of_one_alone(task):
    vector, single = JaxVectorEnvironment(task, WORLDS), JaxEnvironment(task)
    starts, infos = vector.reset(seed=5)
    assert infos == {}
    random = np.random.default_rng(0)
    events = []
    for _ in range(25):
        actions = random.uniform(-1, 1, (WORLDS, 1)).astype(np.float32)
        events.append((actions, vector.step(actions)))
    ends = np.zeros(2, int)
    for world in range(WORLDS):
        np.testing.assert_allclose(single.reset(seed=5 + world)[0], starts[world], rtol=1e-5)
        for actions, (observations, rewards, terminated, truncated, infos) in events:
            arrived, reward, *ended, info = single.step(actions[world])
            assert reward == pytest.approx(rewards[world], rel=1e-4, abs=1e-5)
            assert ended == [terminated[world], truncated[world]]
            np.testing.assert_array_equal(infos["cost"][world], info["cost"])
            assert infos["_cost"].all()
            ends += ended
            if any(ended):
                np.testing.assert_allclose(infos["final_obs"][world], arrived, atol=1e-5)
                np.testing.assert_array_equal(infos["final_info"]["cost"][world], info["cost"])
                arrived, _ = single.reset()
            elif "final_obs" in infos:
                assert not infos["_final_obs"][world]
                assert not infos["_final_info"][world]
                assert infos["final_obs"][world] is None
            np.testing.assert_allclose(observations[world], arrived, atol=1e-5)
    assert (ends > 2).all()


@both
def test_spaces_and_shapes_are_those_of_gymnasium(task):
    vector = JaxVectorEnvironment(task, WORLDS)
    assert vector.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert vector.single_observation_space == task.observation_space
    assert vector.observation_space.shape == (WORLDS, 1)
    observations, _ = vector.reset(seed=0)
    assert vector.observation_space.contains(observations)
    observations, rewards, terminated, truncated, infos = vector.step(vector.action_space.sample())
    assert observations.dtype == rewards.dtype == np.float32
    assert rewards.shape == terminated.shape == truncated.shape == (WORLDS,)
    assert terminated.dtype == truncated.dtype == bool
    assert infos["cost"].shape == ((WORLDS,) if task is WALK else (WORLDS, 2))


def test_a_seed_starts_world_after_world_and_none_goes_on_drawing():
    vector = JaxVectorEnvironment(WALK, WORLDS)
    starts, _ = vector.reset(seed=7)
    np.testing.assert_array_equal(vector.reset(seed=[7, 8, 9, 10])[0], starts)
    np.testing.assert_array_equal(vector.reset(seed=8)[0][:3], starts[1:])
    again = vector.reset()[0]
    assert not np.array_equal(again, starts)
    assert not np.array_equal(again, vector.reset()[0])
    vector.reset(seed=8)
    np.testing.assert_array_equal(vector.reset()[0], again)


@pytest.mark.parametrize("seeds", [[1, 3, 4, 5], [1, 2, 3], [1, 2, 3, None]])
def test_seeds_that_do_not_follow_one_another_are_refused(seeds):
    vector = JaxVectorEnvironment(WALK, WORLDS)
    with pytest.raises(ArgumentError, match="seeds must follow one another, one for each world"):
        vector.reset(seed=seeds)


@pytest.mark.parametrize("seeds", [[], [None] * 4, [-1, 0, 1, 2], ["a"] * 4])
def test_seeds_that_are_no_seeds_are_refused(seeds):
    with pytest.raises(ArgumentError, match="seed must be a whole number of at least 0"):
        JaxVectorEnvironment(WALK, WORLDS).reset(seed=seeds)


def test_options_at_reset_are_refused():
    with pytest.raises(ArgumentError, match=r"take no options at reset, not \['scenario'\]"):
        JaxVectorEnvironment(WALK, WORLDS).reset(options={"scenario": 3})


def test_actions_are_checked():
    vector = JaxVectorEnvironment(WALK, WORLDS)
    vector.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"actions must be numbers of the shape \[4, 1\]"):
        vector.step(np.zeros((3, 1)))
    with pytest.raises(ArgumentError, match="the action of world 2 is not finite"):
        vector.step(np.float32([[0], [0], [np.nan], [0]]))


def test_steps_need_running_episodes():
    vector = JaxVectorEnvironment(WALK, WORLDS)
    with pytest.raises(EpisodeError, match="call reset"):
        vector.step(np.zeros((WORLDS, 1)))
    vector.reset(seed=0)
    vector.close()
    with pytest.raises(EpisodeError, match="call reset"):
        vector.step(np.zeros((WORLDS, 1)))


@pytest.mark.parametrize("number", [0, -1, 2.0, True])
def test_a_number_of_worlds_that_is_none_is_refused(number):
    with pytest.raises(ArgumentError, match="the number of worlds must be"):
        JaxVectorEnvironment(WALK, number)
