"""Constrained learning on problems whose solution is known on paper."""

import dataclasses
from dataclasses import dataclass

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_training import check_finite, train_compiled

import tacit
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.environments.jax_world import JaxStep
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import tabular_world
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
    return tabular_world(
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
    steps=256 * 500,
    worlds=64,
    rollout=4,
    minibatch=128,
    epochs=4,
    learning_rate=5e-3,
    target_kl=None,
    entropy_weight=0.01,
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


def test_a_budget_is_spent_where_it_pays_most():
    settings = dataclasses.replace(QUICK, multiplier=Multiplier(budget=0.25, rate=0.05))
    trained = train_compiled(TEMPTATION, settings, [1, 2])
    assert late(trained.curves["cost"]) == pytest.approx(0.25, abs=0.02)
    # Spent without a thought for where, the same budget pays 0.175.
    assert late(trained.curves["reward"]) / HORIZON == pytest.approx(0.25, abs=0.02)
    assert (tempted(trained)[:, 1] < 0.02).all()


def test_without_a_bound_the_reward_is_sought_whatever_it_costs():
    settings = dataclasses.replace(QUICK, multiplier=Multiplier(budget=1.0))
    trained = train_compiled(TEMPTATION, settings, [1, 2])
    assert (tempted(trained) > 0.98).all()
    assert late(trained.curves["violation"]) > 0.98
    assert late(trained.curves["reward"]) / HORIZON == pytest.approx(GAIN.mean(), abs=0.02)
    assert (trained.curves["multiplier"][:, -1] < 0.2).all()


def test_without_a_budget_the_costly_action_dies_out():
    settings = dataclasses.replace(QUICK, multiplier=Multiplier(budget=0.0))
    trained = train_compiled(TEMPTATION, settings, [1, 2])
    assert (tempted(trained) < 0.01).all()
    assert late(trained.curves["violation"]) < 0.01
    assert (np.diff(trained.curves["multiplier"]) >= 0).all()


def test_charged_once_the_costly_action_dies_out_where_breaking_a_rule_pays_less_than_it_costs():
    once = dataclasses.replace(QUICK, charge_once=True, cost_discount=1.0)
    dear, fair = (
        dataclasses.replace(once, multiplier=Multiplier(kind="penalty", start=price))
        for price in (10.0, 1.0)
    )
    trained = train_compiled(TEMPTATION, dear, [1, 2])
    assert late(trained.curves["violation"]) < 0.02
    # Who has broken the rule pays no more: later on the costly action is worth it ...
    assert (tempted(train_compiled(TEMPTATION, fair, [1, 2]))[..., -1] > 0.9).all()
    # ... which it is not where each step is charged.
    each = dataclasses.replace(fair, charge_once=False)
    assert (tempted(train_compiled(TEMPTATION, each, [1, 2]))[..., -1] < 0.1).all()


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
        reward = -((action - jnp.append(jnp.ones(1), state)) ** 2).sum()
        return JaxStep(state, state, reward, action**2, jnp.bool_(True), jnp.bool_(False))


TWO_BUDGETS = TwoBudgets()


def test_each_of_two_constraints_finds_its_own_price():
    budgets = np.array([0.36, 0.09])
    settings = dataclasses.replace(
        QUICK,
        entropy_weight=0.0,
        smallest_std=0.05,
        normalise_observations=False,
        multiplier=Multiplier(budget=tuple(budgets.tolist())),
    )
    trained = train_compiled(TWO_BUDGETS, settings, [1, 2])
    for seed in range(2):
        actor = trained.actor(seed, TWO_BUDGETS, settings)
        right, left = actor(np.array([[1.0], [-1.0]]))
        np.testing.assert_allclose(actor.std, 0.05, rtol=0.2)
        np.testing.assert_allclose(right, np.sqrt(budgets), atol=0.05)
        np.testing.assert_allclose(left, np.sqrt(budgets) * [1, -1], atol=0.05)
        # 2 (1 - a) = 2 nu a at the best actions: 2/3 and 7/3 where rewards and costs have one unit.
        first, second = trained.learner.multiplier.price[seed]
        assert 2.5 < second / first < 5


SHORT = dataclasses.replace(QUICK, steps=256 * 6, multiplier=Multiplier(budget=(0.1, 0.2)))


def learned(rollout):
    """Two costs that have nothing to do with the task's own."""
    first = 0.5 * rollout.observations[..., 0]
    return jnp.stack([first, jnp.full_like(first, 0.25)], axis=-1)


@pytest.fixture(scope="module")
def two_seeds():
    return train_compiled(TEMPTATION, SHORT, [1, 2], cost=learned, constraints=2)


def test_a_run_does_not_depend_on_the_other_seeds(two_seeds):
    for place, seed in enumerate((1, 2)):
        alone = train_compiled(TEMPTATION, SHORT, [seed], cost=learned, constraints=2)
        for name, curve in alone.curves.items():
            np.testing.assert_allclose(
                two_seeds.curves[name][place], curve[0], rtol=1e-3, atol=1e-4, err_msg=name
            )
        for one, other in zip(
            jax.tree.leaves(two_seeds.learner), jax.tree.leaves(alone.learner), strict=True
        ):
            np.testing.assert_allclose(one[place], other[0], rtol=1e-3, atol=1e-3)


def test_different_seeds_are_different_runs(two_seeds):
    for name in ("reward", "kl", "entropy"):
        first, second = two_seeds.curves[name]
        assert not np.allclose(first, second)


def test_the_same_call_gives_the_same_numbers_bit_for_bit(two_seeds):
    again = train_compiled(TEMPTATION, SHORT, [1, 2], cost=learned, constraints=2)
    for name, curve in two_seeds.curves.items():
        np.testing.assert_array_equal(again.curves[name], curve)
    for one, other in zip(
        jax.tree.leaves(two_seeds.learner), jax.tree.leaves(again.learner), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_cost_of_ones_own_is_learned_from_while_curves_show_true_violations(two_seeds):
    # The observation in which a step was taken: the first state half of the time, then a constant.
    np.testing.assert_allclose(two_seeds.curves["cost"], 0.25 + 0.25, atol=0.05)
    assert two_seeds.learner.multiplier.price.shape == (2, 2)
    assert (two_seeds.learner.multiplier.price > 1).all()
    # Equal chances at first: nearly every episode of 4 steps breaks the true rule.
    np.testing.assert_allclose(two_seeds.curves["violation"][:, 0], 15 / 16, atol=0.1)
    np.testing.assert_allclose(
        two_seeds.curves["feasible_reward"][:, 0], 0, atol=1e-6
    )  # what obeys here earns nothing


def test_a_run_that_diverges_is_an_error_that_names_seed_and_step():
    kl = np.array([[0.1, 0.2, 0.3], [0.1, np.nan, np.inf]])
    check_finite(TEMPTATION, [5, 7], SHORT, kl[:1].repeat(2, axis=0))
    with pytest.raises(DivergenceError, match="seed 7 diverged: kl is nan after 512 steps"):
        check_finite(TEMPTATION, [5, 7], SHORT, kl)


def test_no_seeds_are_an_error():
    with pytest.raises(ArgumentError, match="seeds must be a list"):
        train_compiled(TEMPTATION, SHORT, [])


def test_what_cannot_be_compiled_is_said_in_words():
    chain = tacit.make("Chain")
    with pytest.raises(ArgumentError, match="no pure-JAX task"):
        train_compiled(chain, PPO(), [1])
    task = tabular_world(chain)
    for seeds in ([], 3):
        with pytest.raises(ArgumentError, match="seeds must be a list"):
            train_compiled(task, PPO(), seeds)
    with pytest.raises(ArgumentError, match="at least 0"):
        train_compiled(task, PPO(), [-1])
    with pytest.raises(ArgumentError, match=r"not \[128, 64, 1\]"):
        train_compiled(task, PPO(), [1], cost=lambda rollout: rollout.rewards)
