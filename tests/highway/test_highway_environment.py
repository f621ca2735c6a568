"""The driving tasks under Gymnasium: one car, many cars, and the same episodes in both."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tacit.environments.registry import make
from tacit.errors import ArgumentError, EpisodeError
from tacit.highway.driving import Selection, load_scenarios
from tacit.highway.highway_environment import HighwayVectorEnvironment, describe
from tacit.highway.observation import FEATURES
from tacit.highway.recorded_drivers import recover_actions

OPTIONS = {"constraint": "both", "split": "all", "window": 12.0, "gap": 60.0, "speed": 36.5}
WORLDS = 5


@pytest.fixture(scope="module")
def task(recorded_traffic):
    return make("HighwayDistance", recordings=str(recorded_traffic), **OPTIONS)


@pytest.fixture
def environment(task):
    return task.environment()


@pytest.mark.filterwarnings("ignore:.*A Box observation space .* value is -?infinity")
def test_gymnasium_finds_no_fault(task):
    check_env(task.environment(), skip_render_check=True)


def test_it_has_a_gymnasium_id_and_shows_its_scenarios(recorded_traffic):
    environment = gymnasium.make(
        "tacit/HighwayDistance-v0", recordings=str(recorded_traffic), **OPTIONS
    )
    scenarios = environment.unwrapped.scenarios
    assert len(scenarios) == 8
    observation, info = environment.reset(options={"scenario": 3})
    assert environment.observation_space.contains(observation)
    assert info["scenario"] == 3
    assert environment.step(environment.action_space.sample())[4]["scenario"] == 3


def test_a_chosen_scenario_starts_where_it_says(environment):
    for number, scenario in enumerate(environment.scenarios):
        observation, info = environment.reset(options={"scenario": np.int64(number)})
        assert (info["scenario"], info["ego_id"]) == (number, scenario.ego)
        np.testing.assert_allclose(observation[6:8], scenario.velocity, atol=1e-6)
        assert observation[11] == scenario.limit
        assert observation[22] == pytest.approx(scenario.start_gap, abs=1e-4)
        assert info["initial_cost"] == bool(scenario.violates)
        assert info["cost"].tolist() == [
            rule in scenario.violates for rule in ("distance", "velocity")
        ]
        assert info["reason"] is None
        assert not info["is_success"]
    broken = {rule for scenario in environment.scenarios for rule in scenario.violates}
    assert broken == {"distance", "velocity"}


@pytest.mark.parametrize("wrong", [-1, 8, 1.5, "1", None])
def test_an_unknown_scenario_is_a_plain_error(environment, wrong):
    with pytest.raises(ArgumentError, match="must be a whole number from 0 to 7, not"):
        environment.reset(options={"scenario": wrong})


def test_an_unknown_option_is_a_plain_error(environment):
    with pytest.raises(ArgumentError, match="knows the option 'scenario' only, not 'scenarios'"):
        environment.reset(options={"scenarios": 1})


def test_without_options_scenarios_are_drawn_by_the_seed(environment):
    def drawn(seed):
        return environment.reset(seed=seed)[1]["scenario"]

    numbers = [drawn(seed) for seed in range(40)]
    assert numbers == [drawn(seed) for seed in range(40)]
    assert len(set(numbers)) >= 6
    assert len({environment.reset(options={})[1]["scenario"] for _ in range(40)}) >= 6


def test_a_recorded_driver_reaches_its_goal(task, recorded_traffic):
    """Its path is followed by the accelerations that were recovered from it."""
    play = load_scenarios(str(recorded_traffic), Selection(window=12.0, split="all"))
    environment = task.environment()
    for number, (scenario, path) in enumerate(zip(environment.scenarios, play.paths, strict=True)):
        environment.reset(options={"scenario": number})
        ended, total = False, 0.0
        for step, action in enumerate(
            recover_actions(path, np.array(scenario.velocity), scenario.dt)
        ):
            _, reward, terminated, truncated, info = environment.step(action.astype(np.float32))
            place = np.asarray(environment.state.position)
            assert np.hypot(*(place - path[step + 1])) < 0.05
            total, ended = total + reward, terminated or truncated
            if ended:
                break
        assert ended
        assert info["reason"] == "goal_reached"
        assert info["is_success"]
        assert total in (40, 50)


def test_the_first_reason_that_holds_is_told(task):
    scenario = task.environment().scenarios[0]

    def told(*names):
        observation = np.zeros(len(FEATURES), np.float32)
        observation[[FEATURES.index(name) for name in names]] = 1
        info = describe(task.jax_world, scenario, 0, observation, np.zeros(2, np.float32))
        return info["reason"], info["is_success"]

    assert told() == (None, False)
    assert told("time_out") == ("time_out", False)
    assert told("goal_reached", "time_out") == ("goal_reached", True)
    assert told("collision", "goal_reached") == ("collision", False)
    assert told("off_road", "collision", "goal_reached", "time_out") == ("off_road", False)


def test_info_tells_both_costs_whatever_the_constraint(task):
    scenario = task.environment().scenarios[0]
    observation = np.zeros(len(FEATURES), np.float32)
    observation[[6, 7, 22]] = 30, 25, 59
    only = dataclasses.replace(task.jax_world, constraints=("velocity",))
    info = describe(only, scenario, 0, observation, np.ones(1, np.float32))
    assert (info["cost"], info["cost_distance"], info["cost_velocity"]) == (1.0, 1.0, 1.0)
    assert isinstance(info["cost"], float)
    observation[[6, 7, 22]] = 30, 0, 60
    info = describe(only, scenario, 0, observation, np.zeros(1, np.float32))
    assert (info["cost"], info["cost_distance"], info["cost_velocity"]) == (0.0, 0.0, 0.0)


def test_steps_need_a_running_episode(environment):
    with pytest.raises(EpisodeError, match=r"call reset\(\) first"):
        environment.step(np.zeros(2))


def test_pictures_need_a_mode_and_an_episode(task):
    with pytest.raises(ArgumentError, match="render_mode must be None or 'rgb_array', not 'human'"):
        task.environment(render_mode="human")
    quiet = task.environment()
    quiet.reset(seed=0)
    assert quiet.render() is None
    with pytest.raises(EpisodeError, match="nothing to draw"):
        task.environment(render_mode="rgb_array").render()


@pytest.fixture(scope="module")
def many(task):
    """(actions, result) of the first steps of some worlds, and where they started."""
    vector = task.make_vector(WORLDS)
    starts, _ = vector.reset(seed=11)
    random = np.random.default_rng(3)
    events = []
    for _ in range(300):
        actions = random.uniform(-1, 1, (WORLDS, 2)).astype(np.float32) * np.float32([1, 0.3])
        events.append((actions, vector.step(actions)))
    return starts, events


def test_every_world_of_many_drives_as_one_alone(task, many):
    starts, events = many
    environment = task.environment()
    ends = 0
    for world in range(WORLDS):
        observation, _ = environment.reset(seed=11 + world)
        np.testing.assert_allclose(observation, starts[world], rtol=1e-4, atol=1e-3)
        for actions, (observations, rewards, terminated, truncated, infos) in events:
            alone, reward, *ended, info = environment.step(actions[world])
            assert reward == rewards[world]
            assert ended == [terminated[world], truncated[world]]
            np.testing.assert_array_equal(info["cost"], infos["cost"][world])
            if any(ended):
                ends += 1
                assert infos["_final_obs"][world]
                final = infos["final_obs"][world]
                np.testing.assert_allclose(alone, final, rtol=1e-4, atol=1e-3)
                last = {name: infos["final_info"][name][world] for name in info}
                np.testing.assert_array_equal(last.pop("cost"), info.pop("cost"))
                assert last == info
                alone, _ = environment.reset()
            np.testing.assert_allclose(alone, observations[world], rtol=1e-4, atol=1e-3)
    assert ends >= WORLDS


def test_worlds_without_an_end_have_no_final_observation(many):
    _, events = many
    for _, (_, _, terminated, truncated, infos) in events:
        ended = terminated | truncated
        np.testing.assert_array_equal(infos.get("_final_obs", np.zeros(WORLDS, bool)), ended)
        assert infos["cost"].shape == (WORLDS, 2)


def test_gymnasium_makes_many_worlds_at_once(recorded_traffic):
    vector = gymnasium.make_vec(
        "tacit/HighwayDistance-v0", WORLDS, recordings=str(recorded_traffic), **OPTIONS
    )
    assert isinstance(vector.unwrapped, HighwayVectorEnvironment)
    assert len(vector.unwrapped.scenarios) == 8
    assert vector.num_envs == WORLDS
    assert vector.observation_space.shape == (WORLDS, 74)
    vector.close()
