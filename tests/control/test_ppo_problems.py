"""Constrained learning on problems whose solution is known on paper."""

import dataclasses
from dataclasses import dataclass

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control.compiled_training import train_compiled
from tacit.control.multiplier import Multiplier
from tacit.control.ppo import PPO
from tacit.environments.compiled import CompiledStep
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_compiled import tabular_compiled
from tacit.errors import ArgumentError, DivergenceError

HORIZON, GAIN = 4, np.array([1.0, 0.4])


@pytest.fixture(autouse=True, scope="module")
def compiled_in_haste():
    """These programs run for a tenth of a second, so that optimising them takes far longer."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def temptation():
    """Two states, each as likely at any time; only the costly action pays, 1 or 0.4.

    Within a budget of b <= 0.5 per step the best is to take it in the first state only, with
    probability 2b, which pays b per step.
    """
    return tabular_compiled(
        TabularTask(
            np.full((2, 2, 2), 0.5),
            rewards=np.stack([np.zeros(2), GAIN], axis=1),
            costs=np.array([[0.0, 1.0], [0.0, 1.0]]),
            initial=[0.5, 0.5],
            horizon=HORIZON,
            name="temptation",
        )
    )


TEMPTATION = temptation()
QUICK = PPO(
    steps=256 * 300,
    worlds=64,
    rollout=4,
    minibatch=128,
    epochs=4,
    learning_rate=1e-2,
    target_kl=None,
    hidden=(8,),
)


def late(curve):
    """The mean over seeds and over the last half of the iterations."""
    return curve[:, curve.shape[1] // 2 :].mean()


def tempted(trained):
    """[seeds, states] the probability of the costly action at the end, at the start of episodes."""
    observations = jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])

    def chances(learner):
        seen = (observations - learner.observed.mean) / jnp.sqrt(learner.observed.variance + 1e-8)
        return jax.nn.softmax(learner.policy.logits(seen))[:, 1]

    return np.asarray(jax.vmap(chances)(trained.learner))


@pytest.mark.parametrize(
    "multiplier",
    [
        Multiplier(budget=0.25, rate=0.05),
        Multiplier(budget=0.25 * HORIZON, budget_per="episode", rate=0.05),
        Multiplier(kind="pid", budget=0.25, proportional=2.0, integral=0.1),
    ],
    ids=["lagrange", "per episode", "pid"],
)
def test_a_budget_is_spent_where_it_pays_most(multiplier):
    trained = train_compiled(TEMPTATION, dataclasses.replace(QUICK, multiplier=multiplier), [1, 2])
    print(late(trained.curves["cost"]), late(trained.curves["reward"]), tempted(trained), trained.curves["multiplier"][:, ::30], trained.curves["cost"][:, ::30])
    assert late(trained.curves["cost"]) == pytest.approx(0.25, abs=0.05)
    assert late(trained.curves["reward"]) / HORIZON == pytest.approx(0.25, abs=0.05)


def test_without_a_bound_the_reward_is_sought_whatever_it_costs():
    settings = dataclasses.replace(QUICK, multiplier=Multiplier(budget=1.0))
    trained = train_compiled(TEMPTATION, settings, [1, 2])
    print(tempted(trained))
    assert (tempted(trained) > 0.95).all()
    assert late(trained.curves["violation"]) > 0.9


def test_without_a_budget_the_costly_action_dies_out():
    settings = dataclasses.replace(QUICK, multiplier=Multiplier(budget=0.0))
    trained = train_compiled(TEMPTATION, settings, [1, 2])
    print(tempted(trained), late(trained.curves["violation"]))
    assert (tempted(trained) < 0.01).all()
    assert late(trained.curves["violation"]) < 0.02


@dataclass(frozen=True, eq=False)
class TwoBudgets:
    """One step: reward -(a_0 - 1)^2 - (a_1 - side)^2, costs a_0^2 and a_1^2, side is +-1.

    Within budgets b_0 and b_1 below 1 the best actions are sqrt(b_0) and side * sqrt(b_1).
    """

    name: str = "two budgets"
    horizon: int | None = 1
    constraints: tuple[str, ...] = ("first", "second")
    number_of_costs: int = 2
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-3, 3, (2,), np.float32)

    def reset(self, key):
        side = jax.random.rademacher(key, (1,), jnp.float32)
        return side, side

    def step(self, state, action, key):
        wanted = jnp.append(jnp.ones(1), state)
        return CompiledStep(
            state, state, -((action - wanted) ** 2).sum(), action**2, jnp.bool_(True), jnp.bool_(False)
        )


TWO_BUDGETS = TwoBudgets()


def test_each_of_two_constraints_finds_its_own_price():
    budgets = np.array([0.36, 0.09])
    settings = dataclasses.replace(
        QUICK,
        smallest_std=0.05,
        normalise_observations=False,
        multiplier=Multiplier(budget=tuple(budgets.tolist()), rate=0.02),
    )
    trained = train_compiled(TWO_BUDGETS, settings, [1, 2])
    for seed in range(2):
        actor = trained.actor(seed, TWO_BUDGETS, settings)
        right, left = actor(np.array([[1.0], [-1.0]]))
        spent = (right**2 + left**2) / 2 + actor.std**2
        price = trained.learner.multiplier.price[seed]
        print(spent, actor.std, right, left, price)
        np.testing.assert_allclose(spent, budgets, rtol=0.3)
        np.testing.assert_allclose(right, np.sqrt(budgets - actor.std**2), atol=0.1)
        np.testing.assert_allclose(left, right * [1, -1], atol=0.1)
        # 2 (1 - a) = 2 nu a: the tighter constraint has the higher price.
        assert price[1] > 1.5 * price[0]
