"""Recovery: a rule is told from an imitation by states of many kinds."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import tacit
from tacit.errors import TaskError
from tacit.evaluation.recovery import area, recovery, transfer
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.inference.inputs import Inputs
from tacit.inference.reach.model import Extent, Extremes, ReachModel

TASK = tacit.make("BlockedPoint", horizon=30)
BOX = gymnasium.spaces.Box(-1, 1, (2,), np.float32)


def left(observations):
    return np.broadcast_to([-1.0, 0.0], observations.shape)


def up(observations):
    return np.broadcast_to([0.0, 1.0], observations.shape)


def within(limits):
    """A constraint that knows how far experts went in x and y, and policies everywhere."""
    low, high = np.array(limits, np.float32).T[..., None]
    who = jnp.zeros((2, 1), jnp.int32)
    everywhere = Extent(jnp.full((2, 1), -9.0), jnp.full((2, 1), 9.0))
    model = ReachModel(
        Inputs.blank(2, BOX),
        Extent(jnp.asarray(low), jnp.asarray(high)),
        Extremes(who, who, who, who),
        everywhere,
        "graded",
    )
    return Constraint(model, 0.7, Spaces(TASK.observation_space, BOX), True)


def test_the_area_is_the_chance_of_the_right_order():
    doubts = np.array([0.0, 1.0, 1.0, 2.0])
    assert area(doubts, np.array([False, False, True, True])) == pytest.approx(3.5 / 4)
    assert area(-doubts, np.array([False, False, True, True])) == pytest.approx(0.5 / 4)


def test_the_rule_scores_higher_than_an_imitation():
    rule = recovery(within([(-1.0, 2.0), (-2.0, 2.0)]), TASK, [left, up])
    imitation = recovery(within([(-0.3, 0.3), (-0.3, 0.3)]), TASK, [left, up])
    assert rule == pytest.approx(1.0)
    assert imitation < 0.9


def test_behaviours_must_show_both_kinds_of_states():
    with pytest.raises(TaskError, match="break the rule"):
        recovery(within([(-1.0, 2.0), (-2.0, 2.0)]), TASK, [lambda seen: np.zeros_like(seen)])


def westward(rollout):
    """Paid for nothing but the forbidden way."""
    return np.asarray(rollout.observations - rollout.arrived)[..., 0]


@pytest.mark.slow
def test_the_rule_holds_for_an_agent_with_another_reward():
    quick = tacit.PPO(steps=15_360, rollout=30, minibatch=320, learning_rate=3e-3)
    rule = transfer(within([(-0.8, 2.0), (-9.0, 9.0)]), TASK, westward, forward=quick)
    nothing = transfer(within([(-9.0, 9.0), (-9.0, 9.0)]), TASK, westward, forward=quick)
    assert nothing.low > 0.8
    assert rule.high < 0.3
