"""Names lead to tasks and to Gymnasium environments, and mistakes are answered in words."""

import importlib

import gymnasium
import numpy as np
import pytest

from tacit.environments import registry
from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.registry import TASKS, make, register_environments
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import TabularEnvironment
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, TaskError

TABULAR_TASKS = ("Chain", "GridWorld")


def assert_same_task(one, other):
    assert (one.name, one.horizon, one.budget) == (other.name, other.horizon, other.budget)
    for field in ("transitions", "rewards", "costs", "initial"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


@pytest.mark.parametrize("name", ["Chain", "chain", "CHAIN", "cHaIn"])
def test_names_match_in_any_case(name):
    assert_same_task(make(name), chain())


@pytest.mark.parametrize("name", TASKS)
def test_every_name_makes_a_task_without_options(name):
    assert isinstance(make(name), TabularTask if name in TABULAR_TASKS else SimulatedTask)


def test_options_reach_the_task():
    options = {"layout": "rooms", "slip": 0.2, "reward_scale": 3, "horizon": 11}
    assert_same_task(make("GridWorld", **options), grid_world(**options))
    assert make("Chain", length=np.int64(21), slip=np.float32(0.5)).number_of_states == 21


def test_a_map_may_be_drawn_with_a_tuple_or_a_list():
    rows = ["S.x", "..G"]
    assert_same_task(make("GridWorld", layout=rows), grid_world(tuple(rows)))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("Chian", "Chain"),
        ("grid_world", "GridWorld"),
        ("chains", "Chain"),
        ("BlockedAnts", "BlockedAnt"),
        ("tacit/BlockedWalk-v0", "BlockedWalker"),
    ],
)
def test_an_unknown_name_is_answered_with_all_names_and_the_nearest(name, nearest):
    with pytest.raises(TaskError) as caught:
        make(name)
    message = str(caught.value)
    assert repr(name) in message
    assert all(known in message for known in TASKS)
    assert f"did you mean {nearest}?" in message


@pytest.mark.parametrize("name", ["half-plane", "", 3, None])
def test_a_name_like_no_other_gets_no_guess(name):
    with pytest.raises(TaskError, match=f"there are {', '.join(TASKS)}$"):
        make(name)


def test_an_unknown_option_is_named_with_the_options_there_are():
    with pytest.raises(TaskError, match=r"GridWorld has no option 'layuot'.*slip.*mean layout\?"):
        make("gridworld", layuot="rooms")
    with pytest.raises(TaskError, match="Chain has no option 'layout'; it has length, limit"):
        make("Chain", layout="rooms")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("Chain", "length", "long"),
        ("Chain", "length", 41.5),
        ("Chain", "length", None),
        ("Chain", "horizon", True),
        ("Chain", "slip", "0.1"),
        ("Chain", "slip", 1j),
        ("GridWorld", "layout", 3),
        ("GridWorld", "layout", (1, 2)),
        ("GridWorld", "horizon", "short"),
        ("GridWorld", "budget", [0.1]),
    ],
)
def test_an_option_of_the_wrong_kind_is_named(name, option, value):
    with pytest.raises(TaskError, match=f"option '{option}' of {name} must be .*, not"):
        make(name, **{option: value})


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("Chain", {"slip": 2}, "slip must lie in"),
        ("Chain", {"length": 4}, "length must be odd"),
        ("GridWorld", {"layout": "labyrinth"}, "no layout 'labyrinth'"),
    ],
)
def test_an_option_out_of_range_is_named(name, options, match):
    with pytest.raises(TaskError, match=match):
        make(name, **options)


def test_registering_again_changes_nothing():
    before = {name: gymnasium.registry[f"tacit/{name}-v0"] for name in TASKS}
    register_environments()
    importlib.reload(registry)
    for name, spec in before.items():
        assert gymnasium.registry[f"tacit/{name}-v0"] is spec


@pytest.mark.parametrize("name", TABULAR_TASKS)
def test_gymnasium_makes_every_task_by_its_id(name):
    environment = gymnasium.make(f"tacit/{name}-v0")
    assert isinstance(environment.unwrapped, TabularEnvironment)
    assert_same_task(environment.unwrapped.task, make(name))


def test_gymnasium_passes_options_on():
    environment = gymnasium.make("tacit/GridWorld-v0", layout="rooms", slip=0.2, reward_scale=3)
    expected = grid_world("rooms", slip=0.2, reward_scale=3)
    assert_same_task(environment.unwrapped.task, expected)


def test_gymnasium_finds_the_ids_through_the_module_name():
    environment = gymnasium.make("tacit.environments.registry:tacit/Chain-v0", length=5, limit=0)
    assert environment.observation_space.n == 5


def test_mistakes_through_gymnasium_are_answered_in_words_too():
    with pytest.raises(TaskError, match="no option 'layuot'"):
        gymnasium.make("tacit/GridWorld-v0", layuot="rooms")
    with pytest.raises(TaskError, match="no layout 'labyrinth'"):
        gymnasium.make("tacit/GridWorld-v0", layout="labyrinth")
    with pytest.raises(ArgumentError, match="render_mode must be None or 'rgb_array'"):
        TabularEnvironment(chain(), render_mode="human")


@pytest.mark.parametrize("kind", ["id", "environment", "function"])
def test_any_other_gymnasium_environment_becomes_a_task(kind):
    forms = {
        "id": "CartPole-v1",
        "environment": gymnasium.make("CartPole-v1"),
        "function": lambda: gymnasium.make("CartPole-v1"),
    }
    task = make(forms[kind], cost=lambda observation, action, then: float(then[0] < 0))
    assert isinstance(task, SimulatedTask)
    assert task.worlds(2).reset(0).shape == (2, 4)


def test_a_specification_survives_as_text():
    spec = gymnasium.make("tacit/GridWorld-v0", layout="gate").spec
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert_same_task(again.unwrapped.task, grid_world("gate"))


def test_an_environment_may_be_given_a_name_of_its_own():
    task = make("CartPole-v1", cost=lambda *step: 0.0, name="my cart")
    assert task.name == "my cart"


def test_an_id_with_its_module_is_gymnasiums_to_find():
    task = make("gymnasium.envs.classic_control:CartPole-v1", cost=lambda *step: 0.0)
    assert task.horizon == 500
