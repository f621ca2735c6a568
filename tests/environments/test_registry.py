"""Names lead to tasks and to Gymnasium environments, and mistakes are answered in words."""

import importlib
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from tacit.environments import registry
from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.registry import (
    TASKS,
    known,
    make,
    register,
    register_environments,
)
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


@pytest.mark.parametrize("name", [name for name in TASKS if name not in TABULAR_TASKS])
def test_every_observed_number_of_every_task_has_a_name_of_its_own(name):
    task = make(name)
    names = task.observation_names
    assert len(names) == task.observation_space.shape[0]
    assert len(set(names)) == len(names)
    assert not any("observation" in each or "_" in each for each in names)


def test_the_registry_imports_no_simulator_and_no_jax():
    package = Path(registry.__file__).parent.parent
    program = (
        "import sys, types\n"
        "package = sys.modules['tacit'] = types.ModuleType('tacit')\n"
        f"package.__path__ = [{str(package)!r}]\n"
        "import tacit.environments.registry\n"
        "heavy = ('jax', 'mujoco', 'matplotlib', 'tacit.highway', 'tacit.environments.lab_tasks')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def steep(slope: float = 1.0, cost=None, *, length: int = 5) -> TabularTask:
    """A task of the user's own."""
    return chain(length=length, limit=0, reward_scale=slope)


def far(limit: float = -0.5) -> SimulatedTask:
    """A simulated task of the user's own."""
    return make("BlockedPoint", limit=limit)


def needs(limit) -> TabularTask:
    """A task with an option that must be given."""
    return chain(limit=limit)


@pytest.fixture
def registered():
    """`register`, forgotten after the test."""
    before = dict(registry.BUILDERS)
    yield register
    for name in set(registry.BUILDERS) - set(before):
        del registry.BUILDERS[name]
        del gymnasium.registry[f"tacit/{name}-v0"]


def test_a_registered_table_is_made_by_its_name_everywhere(registered):
    registered("Steep", steep)
    assert known("Steep")
    assert_same_task(make("steep", slope=2), chain(length=5, limit=0, reward_scale=2))
    environment = gymnasium.make("tacit/Steep-v0", length=7)
    assert environment.observation_space.n == 7
    batch = gymnasium.make_vec("tacit/Steep-v0", num_envs=2)
    assert batch.reset(seed=0)[0].shape == (2,)
    with pytest.raises(TaskError, match=r"there are Chain.*Steep"):
        make("nothing of that kind")


def test_a_registered_simulator_takes_its_name_and_options(registered):
    registered("Far", far)
    task = make("Far")
    assert (task.name, task.options) == ("Far", {"limit": -0.5})
    again = make(task.name, **task.options)
    np.testing.assert_array_equal(again.worlds(1).reset(0), task.worlds(1).reset(0))
    assert gymnasium.make("tacit/Far-v0").observation_space == task.observation_space
    assert gymnasium.make_vec("tacit/Far-v0", num_envs=3).reset(seed=0)[0].shape == (3, 2)
    with pytest.raises(TaskError, match="no option 'threads'"):
        gymnasium.make_vec("tacit/Far-v0", num_envs=3, threads=2)


def test_a_place_is_imported_when_its_task_is_made(registered, tmp_path, monkeypatch):
    (tmp_path / "lift_of_mine.py").write_text(
        "from tacit.environments.lab_tasks import chain\n\n\n"
        "def lift(floors: int = 5):\n    return chain(length=floors, limit=0)\n"
    )
    registered("Lift", "lift_of_mine:lift")
    registered("Lost", "lift_of_mine:stairs")
    assert "lift_of_mine" not in sys.modules
    with pytest.raises(TaskError, match=r"Lift is built by lift_of_mine:lift, which cannot be"):
        make("Lift")
    monkeypatch.syspath_prepend(tmp_path)
    assert make("Lift", floors=9).number_of_states == 9
    with pytest.raises(TaskError, match="cannot be imported"):
        make("Lost")
    del sys.modules["lift_of_mine"]


def test_options_of_a_registered_task_are_checked(registered):
    registered("Steep", steep)
    registered("Needs", needs)
    with pytest.raises(TaskError, match=r"Steep has no option 'slop'; .*mean slope\?"):
        make("Steep", slop=2)
    with pytest.raises(TaskError, match=r"option 'length' of Steep must be int, not 2\.5"):
        make("Steep", length=2.5)
    assert make("Steep", cost=print).horizon == 40
    with pytest.raises(TaskError, match="Needs needs the option 'limit'"):
        make("Needs")


def test_the_same_builder_may_be_registered_again_and_another_one_not(registered):
    registered("Steep", steep)
    registered("Steep", steep)
    registered("Steep", f"{__name__}:steep")
    with pytest.raises(TaskError, match=r"there is a task Steep already, built by .*:steep"):
        registered("Steep", far)
    with pytest.raises(TaskError, match="there is a task Chain already"):
        registered("chain", chain)
    registered("Nameless", lambda: chain())
    with pytest.raises(TaskError, match="there is a task Nameless already"):
        registered("Nameless", lambda: chain())


@pytest.mark.parametrize("name", ["", "two words", "tacit/Lift-v0", "a:b", "3D", None, "Tür"])
def test_the_name_of_a_task_is_a_word(name):
    with pytest.raises(TaskError, match="must be a word"):
        register(name, steep)


@pytest.mark.parametrize("build", ["steep", "tacit.", ":steep", "a:b:c", 3, None])
def test_a_builder_is_a_function_or_its_place(build):
    with pytest.raises(TaskError, match="build must"):
        register("Steep", build)
    assert not known("Steep")


def test_a_builder_returns_a_task(registered):
    registered("Odd", lambda: 3)
    with pytest.raises(TaskError, match=r"that builds Odd must return a TabularTask or.*not int"):
        make("Odd")


def test_names_are_known_as_they_are_spelled():
    assert known("Chain")
    assert not known("chain")
    assert not known("CartPole-v1")
