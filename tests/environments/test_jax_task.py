"""A world written in JAX becomes a task, or one is told in words what is wrong with it."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tacit
from tacit.environments.jax_task import task_from_jax
from tacit.environments.jax_world import JaxStep
from tacit.errors import ArgumentError, TaskError

LINE = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
PUSH = gymnasium.spaces.Box(-1, 1, (2,), np.float32)


class Slide:
    """A point that is pushed about; it costs to be on the left."""

    observation_space = LINE
    action_space = PUSH
    horizon = 5

    def reset(self, key):
        place = jax.random.uniform(key, (2,), jnp.float32, -1, 1)
        return {"place": place, "steps": jnp.int32(0)}, place

    def step(self, state, action, key):
        place = jnp.clip(state["place"] + action, -9, 9)
        steps = state["steps"] + 1
        return JaxStep(
            {"place": place, "steps": steps},
            place,
            -place[1],
            (place[:1] < 0).astype(jnp.float32),
            jnp.zeros((), bool),
            steps >= self.horizon,
        )


def changed(**fields):
    """`Slide` with other attributes; a function that changes a step is called `after`."""
    after = fields.pop("after", None)

    class Changed(Slide):
        def step(self, state, action, key):
            stepped = super().step(state, action, key)
            return after(stepped) if after else stepped

    world = Changed()
    for name, value in fields.items():
        setattr(world, name, value)
    return world


def refused(world):
    """What is said of a world that cannot become a task."""
    with pytest.raises(TaskError) as caught:
        task_from_jax(world, name="Odd")
    message = str(caught.value)
    assert "Odd" in message
    assert "\n" not in message
    return message


def test_a_world_becomes_a_task_with_what_it_left_out():
    task = task_from_jax(Slide())
    assert (task.name, task.horizon, task.constraints) == ("Slide", 5, ("cost",))
    assert task.observation_names == ("observation 0", "observation 1")
    assert (task.observation_space, task.action_space) == (LINE, PUSH)
    assert task.options == {}
    assert task.jax_world is not None


def test_what_the_world_says_of_itself_is_kept():
    world = changed(name="Ice", constraints=("left",), observation_names=("x", "y"))
    task = task_from_jax(world, options={"grip": 0.1})
    assert task.jax_world is world
    assert (task.name, task.constraints, task.observation_names) == ("Ice", ("left",), ("x", "y"))
    assert task.options == {"grip": 0.1}
    assert task_from_jax(world, name="Snow").name == "Snow"


def test_costs_without_names_are_numbered():
    two = changed(after=lambda step: step._replace(costs=jnp.zeros(2)))
    none = changed(after=lambda step: step._replace(costs=jnp.zeros(0)))
    assert task_from_jax(two).constraints == ("cost 0", "cost 1")
    assert task_from_jax(none).constraints == ()
    assert task_from_jax(two).worlds(3).number_of_costs == 2


def test_its_worlds_and_environments_give_the_same_episodes():
    task = task_from_jax(Slide())
    assert task.make_vector is not None
    worlds, vector, single = task.worlds(3), task.make_vector(3), task.environment()
    first = worlds.reset(4)
    np.testing.assert_array_equal(vector.reset(seed=4)[0], first)
    np.testing.assert_array_equal(single.reset(seed=5)[0], first[1])
    random = np.random.default_rng(0)
    for _ in range(5):
        actions = random.uniform(-1, 1, (3, 2)).astype(np.float32)
        step, (_, rewards, *_, infos) = worlds.step(actions), vector.step(actions)
        arrived, reward, _, truncated, info = single.step(actions[1])
        np.testing.assert_array_equal(step.rewards, rewards)
        np.testing.assert_array_equal(step.costs[:, 0], infos["cost"])
        np.testing.assert_allclose(arrived, step.arrived[1], rtol=1e-6)
        assert (reward, info["cost"]) == pytest.approx((step.rewards[1], step.costs[1, 0]))
    assert truncated
    check_env(task.environment(), skip_render_check=True)


def test_it_draws_no_pictures():
    with pytest.raises(ArgumentError, match="Slide draws no pictures"):
        task_from_jax(Slide()).environment(render_mode="rgb_array")


@dataclass
class Unhashable(Slide):
    """A dataclass that compares by value cannot be hashed."""

    start: Any = field(default_factory=lambda: np.zeros(2))


class Tables(eqx.Module):
    """A module with an array, and attributes that an `equinox.Module` may have."""

    pull: jax.Array

    @property
    def observation_space(self):
        return LINE

    @property
    def action_space(self):
        return PUSH

    @property
    def horizon(self):
        return 3

    def reset(self, key):
        return jnp.int32(0), self.pull

    def step(self, state, action, key):
        ended = state >= 2
        costs = jnp.zeros(1, jnp.float32)
        return JaxStep(state + 1, self.pull + action, self.pull[0], costs, ended, ~ended)


@pytest.mark.parametrize(
    "world",
    [
        Unhashable(),
        Tables(jnp.ones(2)),
        SimpleNamespace(
            reset=Slide().reset,
            step=Slide().step,
            observation_space=LINE,
            action_space=PUSH,
            horizon=5,
        ),
    ],
    ids=["unhashable", "equinox", "functions"],
)
def test_a_world_may_be_any_object(world):
    worlds = task_from_jax(world).worlds(2)
    worlds.reset(0)
    assert worlds.step(np.zeros((2, 2))).rewards.shape == (2,)


def test_arrays_of_a_module_are_arguments_of_its_programs_also_under_another_name():
    world = task_from_jax(Tables(jnp.ones(2)), name="Pull").jax_world
    assert [leaf.shape for leaf in jax.tree.leaves(eqx.filter(world, eqx.is_array))] != []


@pytest.mark.parametrize("part", ["reset", "step", "observation_space", "action_space", "horizon"])
def test_what_is_missing_is_named(part):
    parts = {name: getattr(Slide(), name) for name in dir(Slide) if not name.startswith("_")}
    del parts[part]
    assert f"Odd has no {part}" in refused(SimpleNamespace(**parts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observation_space": gymnasium.spaces.Discrete(3)}, "must be a flat box of floats"),
        ({"observation_space": gymnasium.spaces.Box(0, 1, (2, 2))}, "must be a flat box of floats"),
        ({"observation_space": gymnasium.spaces.Box(-9, 9, (3,))}, "float32 of the shape [3]"),
        ({"observation_space": gymnasium.spaces.Box(-9, 9, (2,), float)}, "says float64"),
        ({"action_space": gymnasium.spaces.Discrete(3, start=1)}, "Discrete from 0"),
        ({"action_space": gymnasium.spaces.MultiBinary(2)}, "Discrete from 0"),
        ({"horizon": 0}, "whole number of at least 1, or None, not 0"),
        ({"horizon": 2.5}, "not 2.5"),
        ({"constraints": ("left", "right")}, "has 2 constraints"),
        ({"observation_names": ("x",)}, "must be 2 words"),
        ({"reset": lambda key: jnp.zeros(2)}, "must return (state, observation)"),
        ({"reset": lambda key: (0, jnp.zeros(3))}, "that reset of Odd returns is float32"),
    ],
)
def test_a_wrong_attribute_is_named(change, message):
    assert message in refused(changed(**change))


def state_with(**changes):
    return lambda step: step._replace(state={**step.state, **changes})


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (tuple, "must return a tacit.JaxStep, not tuple"),
        (lambda step: step.observation, "must return a tacit.JaxStep, not float32"),
        (lambda step: step._replace(observation=step.observation[:1]), "of the shape [1], but"),
        (lambda step: step._replace(observation=jnp.int32([1, 2])), "is int32 of the shape [2]"),
        (lambda step: step._replace(observation=(0.0, 0.0)), "is tuple"),
        (lambda step: step._replace(reward=step.observation), "reward of a step of Odd must be"),
        (lambda step: step._replace(reward=1), "must be one float, not int32"),
        (lambda step: step._replace(costs=step.costs[0]), "must be a row of floats"),
        (lambda step: step._replace(costs=step.costs > 0), "not bool of the shape [1]"),
        (lambda step: step._replace(terminated=step.costs), "terminated of a step of Odd"),
        (lambda step: step._replace(truncated=0.0), "truncated of a step of Odd must be one bool"),
        (state_with(steps=jnp.float32(0)), "state['steps'] of Odd must keep its shape and type"),
        (state_with(place=jnp.zeros(3)), "step float32 of the shape [3]"),
        (state_with(more=0), "must keep its structure"),
    ],
)
def test_a_wrong_part_of_a_step_is_named(after, message):
    assert message in refused(changed(after=after))


def test_an_error_inside_of_the_world_says_where_it_happened():
    def broken(step):
        raise KeyError("speed")

    with pytest.raises(KeyError) as caught:
        task_from_jax(changed(after=broken), name="Odd")
    assert any("step of Odd" in note for note in caught.value.__notes__)


def test_experts_written_by_hand_are_collected_from():
    task = task_from_jax(Slide())
    expert = tacit.Expert(task, lambda observations: np.ones((len(observations), 2)))
    assert len(tacit.collect(expert, 4, seed=0).lengths) == 4
