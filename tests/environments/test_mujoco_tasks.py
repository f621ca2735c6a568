"""The five MuJoCo tasks have the published numbers, and options that are checked."""

import numpy as np
import pytest

from tacit.environments.registry import make
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError

SIZES = {  # observation, action, largest action
    "BlockedHalfCheetah": (18, 6, 1),
    "BlockedAnt": (113, 8, 1),
    "BiasedPendulum": (4, 1, 3),
    "BlockedWalker": (18, 6, 1),
    "BlockedSwimmer": (10, 2, 1),
}
MUJOCO_TASKS = (
    "BlockedHalfCheetah",
    "BlockedAnt",
    "BiasedPendulum",
    "BlockedWalker",
    "BlockedSwimmer",
)
every_task = pytest.mark.parametrize("name", MUJOCO_TASKS)


@every_task
def test_spaces_are_the_published_ones(name):
    task = make(name)
    assert isinstance(task, SimulatedTask)
    observed, acted, largest = SIZES[name]
    assert task.observation_space.shape == (observed,)
    assert task.observation_space.dtype == np.float64
    assert not task.observation_space.is_bounded("below")
    assert task.action_space.shape == (acted,)
    assert task.action_space.dtype == np.float32
    assert (task.action_space.high == largest).all()
    assert (task.action_space.low == -largest).all()
    for made in (task.worlds(2, threads=1), task.environment()):
        assert made.observation_space == task.observation_space
        assert made.action_space == task.action_space
    assert task.worlds(2).reset(0).shape == (2, observed)
    assert task.constraints == ("x_position",)


def test_the_ants_contact_forces_can_be_left_out():
    for choice, size in (("zeros", 113), ("real", 113), ("none", 29)):
        task = make("BlockedAnt", contact_forces=choice)
        assert task.observation_space.shape == (size,)
        assert task.worlds(1).reset(0).shape == (1, size)


@pytest.mark.parametrize(
    ("name", "paper", "benchmark"),
    [
        ("BlockedHalfCheetah", 1000, 1000),
        ("BlockedAnt", 1000, 500),
        ("BiasedPendulum", 100, 100),
        ("BlockedWalker", 1000, 500),
        ("BlockedSwimmer", 1000, 500),
    ],
)
def test_episodes_are_as_long_as_published_or_as_asked_for(name, paper, benchmark):
    assert make(name).horizon == paper
    assert make(name, variant="benchmark").horizon == benchmark
    assert make(name, variant="benchmark", horizon=7).horizon == 7


@every_task
def test_a_task_remembers_all_its_options(name):
    task = make(name.upper(), noise_std=0.1, limit=-1)
    assert task.name == name
    assert task.options["noise_std"] == 0.1
    assert task.options["limit"] == -1
    assert task.options["noise_on"] == "velocity"
    again = make(task.name, **task.options)
    assert again.options == task.options
    step = [each.worlds(1).reset(3) for each in (task, again)]
    np.testing.assert_array_equal(*step)


@pytest.mark.parametrize("name", ["tacit/BlockedAnt-v0", "tacit/blockedant-v0", "blockedANT"])
def test_a_gymnasium_id_of_ours_is_a_name(name):
    assert make(name).name == "BlockedAnt"


def test_standing_still_costs_beyond_the_limit_only():
    for limit, cost in ((0.5, 1.0), (-0.5, 0.0)):
        worlds = make("BlockedWalker", limit=limit, noise_std=0.0).worlds(4)
        worlds.reset(0)
        assert (worlds.step(np.zeros((4, 6))).costs == cost).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"variant": "mine"}, "variant must be 'paper' or 'benchmark', not 'mine'"),
        ({"noise_on": "action"}, "noise_on must be 'velocity' or 'state', not 'action'"),
        ({"contact_forces": "some"}, "contact_forces must be 'zeros' or 'real' or 'none'"),
        ({"noise_std": -0.1}, "noise_std must lie in"),
        ({"noise_std": float("nan")}, "noise_std must lie in"),
        ({"noise_std": float("inf")}, "noise_std must lie in"),
        ({"horizon": 0}, "horizon must be at least one step, not 0"),
        ({"limit": float("inf")}, "limit must be a number of metres"),
        ({"noise_shared": "yes"}, "option 'noise_shared' of BlockedAnt must be bool"),
        ({"horizon": 1.5}, "option 'horizon' of BlockedAnt must be"),
        ({"contact_force": "real"}, r"no option 'contact_force'.*mean contact_forces\?"),
    ],
)
def test_options_that_cannot_work_are_named(options, match):
    with pytest.raises(TaskError, match=match):
        make("BlockedAnt", **options)


def test_numbers_are_named_as_they_are_observed():
    names = {name: make(name).observation_names for name in MUJOCO_TASKS}
    assert names["BiasedPendulum"] == ("x", "hinge", "x velocity", "hinge velocity")
    assert names["BlockedSwimmer"][:4] == ("x", "y", "yaw", "motor1")
    assert names["BlockedAnt"][:4] == ("x", "y", "z", "orientation w")
    assert names["BlockedAnt"].index("x velocity") == 15
    assert make("BlockedAnt", contact_forces="none").observation_names == names["BlockedAnt"][:29]
    assert all(each[0] == "x" for each in names.values())
