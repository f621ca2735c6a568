"""Feasibility when one quantity is moved and the posture stays."""

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.evaluation.postures import POSTURES, postures
from tacit.evaluation.recovery import SeenSteps

RANDOM = np.random.default_rng(0)
NUMBER = 500
STEPS = SeenSteps(
    observations=RANDOM.normal(size=(NUMBER, 3)).astype(np.float32),
    actions=RANDOM.normal(size=(NUMBER, 1)).astype(np.float32),
    broken=np.arange(NUMBER) < 120,
)
# Whoever breaks the rule has another posture.
STEPS.observations[:, 1] = np.where(STEPS.broken, -5, 5)
VALUES = np.linspace(-2, 2, 9)


def constraint(feasibility):
    return SimpleNamespace(
        feasibility=lambda seen, done, confidence: feasibility(seen).astype(np.float32)
    )


def test_a_rule_about_the_quantity_gives_one_curve_for_all_postures():
    curves = postures(constraint(lambda seen: seen[:, 0] >= 0.5), STEPS, 0, VALUES)
    assert curves.allowed.shape == (9, POSTURES)
    assert curves.forbidden.shape == (9, 120)
    wanted = (VALUES >= 0.5)[:, None]
    assert (curves.allowed == wanted).all()
    assert (curves.forbidden == wanted).all()


def test_an_imitation_gives_two_curves_that_are_level():
    curves = postures(constraint(lambda seen: seen[:, 1] > 0), STEPS, 0, VALUES)
    assert (curves.allowed == 1).all()
    assert (curves.forbidden == 0).all()


def test_the_steps_are_left_as_they_were_and_the_quantity_must_exist():
    before = STEPS.observations.copy()
    postures(constraint(lambda seen: seen[:, 2]), STEPS, 2, VALUES)
    np.testing.assert_array_equal(STEPS.observations, before)
    for quantity in (-1, 3):
        with pytest.raises(ArgumentError, match="one of the 3 observed numbers"):
            postures(constraint(lambda seen: seen[:, 2]), STEPS, quantity, VALUES)
