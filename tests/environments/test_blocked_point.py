"""The point: its rules, its noise, its picture, and an expert who keeps the rule."""

import gymnasium
import jax
import numpy as np
import pytest

import tacit
from tacit.environments.blocked_point import BlockedPoint
from tacit.errors import TaskError


def test_a_step_moves_pays_and_charges_as_written():
    point = BlockedPoint(limit=-0.3, noise_std=0.0, horizon=3)
    state, seen = point.reset(jax.random.key(0))
    assert (np.abs(seen) <= 0.25).all()
    for number in range(1, 4):
        stepped = point.step(state, np.array([-1.0, 0.5]), jax.random.key(number))
        x, y = np.asarray(seen) + np.array([-0.1, 0.05])
        np.testing.assert_allclose(stepped.observation, [x, y], atol=1e-6)
        assert float(stepped.reward) == pytest.approx(-x - 0.5 * abs(y - 0.5), abs=1e-6)
        assert bool(stepped.costs[0]) == (x < -0.3)
        assert bool(stepped.truncated) == (number == 3)
        assert not stepped.terminated
        state, seen = stepped.state, stepped.observation


def test_noise_has_the_deviation_that_was_asked_for_and_walls_hold():
    point = BlockedPoint(limit=-1.0, noise_std=0.3, horizon=50)
    state, seen = point.reset(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 4000)
    after = jax.vmap(lambda key: point.step(state, np.zeros(2), key).observation)(keys)
    np.testing.assert_allclose(np.std(np.asarray(after) - np.asarray(seen)), 0.3, rtol=0.03)
    for _ in range(60):
        state = point.step(state, np.array([-1.0, 1.0]), jax.random.key(2)).state
    assert (np.abs(np.asarray(state.position)) <= 2).all()


def test_it_is_a_gymnasium_environment_with_a_picture():
    world = gymnasium.make("tacit/BlockedPoint-v0", render_mode="rgb_array", limit=-1.5)
    world.reset(seed=3)
    picture = world.render()
    assert picture.shape == (160, 160, 3)
    forbidden = (picture == picture[0, 0]).all(axis=-1)
    # From -2 to -1.5 of -2 to 2.
    assert forbidden.mean() == pytest.approx(1 / 8, abs=0.01)
    _, _, _, _, info = world.step(world.action_space.sample())
    assert info["cost"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [({"limit": 0.0}, "limit"), ({"noise_std": -1.0}, "noise_std"), ({"horizon": 0}, "horizon")],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(TaskError, match=message):
        tacit.make("BlockedPoint", **options)
