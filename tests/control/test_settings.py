"""Settings of PPO: what follows from them, and which cannot work."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control.settings import PPO
from tacit.errors import ArgumentError

SETTINGS = PPO(
    steps=32 * 10,
    worlds=4,
    rollout=8,
    minibatch=8,
    learning_rate=0.01,
    final_learning_rate=0.1,
)


def test_the_learning_rate_falls_in_a_straight_line_over_the_updates_of_the_run():
    rates = [float(SETTINGS.rate(jnp.int32(updates))) for updates in range(11)]
    np.testing.assert_allclose(rates, np.linspace(0.01, 0.001, 11), rtol=1e-5)
    constant = dataclasses.replace(SETTINGS, final_learning_rate=1.0)
    assert float(constant.rate(jnp.int32(7))) == pytest.approx(0.01)


def test_iterations_cover_all_steps():
    settings = dataclasses.replace(SETTINGS, steps=33)
    assert (settings.batch, settings.iterations) == (32, 2)
    assert dataclasses.replace(SETTINGS, steps=32).iterations == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"minibatch": 7}, "minibatch 7 does not divide the batch of 4 worlds [*] 8 steps = 32"),
        ({"minibatch": 64}, "does not divide"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"worlds": 0}, "worlds must be a whole number of at least 1"),
        ({"rollout": -1}, "rollout must be a whole number of at least 1"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
        ({"steps": 1e6}, "steps must be a whole number"),
        ({"worlds": 2.0}, "worlds must be a whole number"),
        ({"hidden": (0,)}, "hidden must be a whole number"),
        ({"hidden": 64}, "hidden must be a tuple"),
        ({"multiplier": "pid"}, "multiplier must be a Multiplier"),
        ({"target_kl": -1.0}, "target_kl must be above 0"),
        ({"final_learning_rate": -3.0}, "final_learning_rate must lie in"),
        ({"entropy_weight": float("nan")}, "entropy_weight must be at least 0"),
        ({"discount": 1.1}, r"discount must lie in \[0, 1\], not 1.1"),
        ({"cost_discount": -0.1}, "cost_discount"),
        ({"reward_trace": float("nan")}, "reward_trace"),
        ({"cost_trace": 2}, "cost_trace"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"clip": -0.2}, "clip must be above 0"),
        ({"smallest_std": 0.0}, "smallest_std must be above 0"),
        ({"largest_gradient": 0.0}, "largest_gradient must be above 0"),
        ({"charge_once": True, "relative_costs": True}, "charge_once and relative_costs exclude"),
    ],
)
def test_settings_that_cannot_work_are_errors_that_name_them(wrong, words):
    with pytest.raises(ArgumentError, match=words):
        dataclasses.replace(SETTINGS, **wrong)


def test_settings_can_be_keys_of_compiled_programs():
    assert hash(SETTINGS) == hash(dataclasses.replace(SETTINGS))
    assert dataclasses.replace(SETTINGS, clip=0.3) != SETTINGS
