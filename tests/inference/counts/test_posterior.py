"""The exact posterior against Bayes' rule written out, rule by rule and episode by episode."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control.expert import collect, train_expert
from tacit.control.planning import Dynamics, constrained_plan
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError, DemonstrationError
from tacit.inference.counts.posterior import (
    ExactPosterior,
    RuleFamily,
    action_counts,
    exact_posterior,
    limit_rules,
    plan_for_rules,
    posteriors,
    subset_rules,
)

HORIZON = 4
LEVELS = (0.05, 0.3, 0.5, 0.7, 0.9, 0.99)

plan_once = jax.jit(partial(constrained_plan, horizon=HORIZON))


@pytest.fixture(scope="module")
def task():
    random = np.random.default_rng(3)
    return TabularTask(
        random.dirichlet(np.full(4, 0.4), (4, 2)),
        rewards=np.array([0.0, 0.2, 0.6, 0.4]),
        costs=np.array([0.0, 0.0, 1.0, 0.0]),
        initial=np.eye(4)[0],
        horizon=HORIZON,
        budget=0.3,
    )


@pytest.fixture(scope="module")
def family(task):
    return subset_rules(task, np.array([1, 2, 3]))


@pytest.fixture(scope="module")
def data(task):
    return collect(train_expert(task), 3, seed=1)


@pytest.fixture(scope="module")
def posterior(family, data):
    return exact_posterior(family, data)


def feasible_share(task, policy, allowed):
    """P(every step of an episode is in an allowed state), summed over all paths of states."""
    total = 0.0
    for path in itertools.product(range(4), repeat=HORIZON):
        if not all(allowed[state] for state in path):
            continue
        chance = task.initial[path[0]]
        for step in range(HORIZON - 1):
            moves = policy[step, path[step]] @ task.transitions[path[step]]
            chance *= moves[path[step + 1]]
        total += chance
    return total


def log_likelihood(task, data, allowed):
    with jax.enable_x64(True):
        costs = jnp.asarray(np.repeat(~allowed[:, None], 2, axis=1).astype(float))
        plan = plan_once(Dynamics.of(task), costs, task.budget)
        policy = np.asarray(plan.policy)
    share = feasible_share(task, policy, allowed)
    total = 0.0
    for episode in data:
        states, actions = episode.observations[:, 0], episode.actions[:, 0]
        for step in range(len(episode)):
            if not allowed[states[step]]:
                return -np.inf
            total += np.log(policy[step, states[step], actions[step]])
        total -= np.log(share)
    return total


def test_the_family_holds_every_subset_of_the_candidates_once(family):
    assert family.allowed.shape == (8, 4)
    assert family.allowed[:, 0].all()
    assert len({tuple(rule) for rule in family.allowed}) == 8


def test_the_posterior_is_that_of_bayes_rule_written_out(task, family, data, posterior):
    logarithms = np.array([log_likelihood(task, data, rule) for rule in family.allowed])
    weights = np.exp(logarithms - logarithms.max())
    wanted = weights / weights.sum()
    assert (wanted > 0.01).sum() >= 2
    np.testing.assert_allclose(posterior.probability, wanted, atol=1e-6)
    np.testing.assert_allclose(posterior.feasibility, wanted @ family.allowed, atol=1e-6)


def test_one_data_set_gives_one_number_per_rule(posterior):
    assert posterior.probability.shape == (8,)
    assert posterior.feasibility.shape == posterior.allowed(0.5).shape == (4,)


def test_probabilities_sum_to_one_and_broken_rules_have_none(family, data, posterior):
    assert posterior.probability.sum() == pytest.approx(1, abs=1e-12)
    visited = np.isin(np.arange(4), data.observations[:, :-1])
    broken = (visited & ~family.allowed).any(axis=1)
    assert broken.any()
    assert (posterior.probability[broken] == 0).all()


def test_many_data_sets_at_once_give_what_each_gives_alone(task, family):
    expert = train_expert(task)
    sets = [collect(expert, number, seed=number) for number in (1, 5, 40)]
    together = posteriors(
        plan_for_rules(family),
        np.stack([action_counts(task, data) for data in sets]),
        np.stack([np.isin(np.arange(4), data.observations[:, :-1]) for data in sets]),
        np.array([1, 5, 40]),
    )
    assert together.probability.shape == (3, 8)
    for row, data in zip(together.probability, sets, strict=True):
        alone = exact_posterior(family, data).probability
        np.testing.assert_allclose(row, alone, atol=1e-12)


def test_actions_are_counted_by_step_and_without_padding(task):
    short = Trajectories.from_arrays(
        [[0, 1, 3], [0, 1, 1, 3, 0]], [[1, 0], [1, 1, 0, 1]], [[0.0] * 2, [0.0] * 4]
    )
    wanted = np.zeros((HORIZON, 4, 2))
    for step, state, action in ((0, 0, 1), (1, 1, 0), (0, 0, 1), (1, 1, 1), (2, 1, 0), (3, 3, 1)):
        wanted[step, state, action] += 1
    np.testing.assert_array_equal(action_counts(task, short), wanted)


def test_demonstrations_that_break_every_rule_are_an_error(task, data):
    nothing = RuleFamily(task, np.array([[False, True, True, True], [False, True, False, True]]))
    with pytest.raises(ArgumentError, match="no rule of the family"):
        exact_posterior(nothing, data)


def random_posteriors(task):
    """Posteriors over rules on five candidates, without planning."""
    random = np.random.default_rng(0)
    rules = np.array(list(itertools.product((True, False), repeat=4)))
    weights = random.dirichlet(np.full(len(rules), 0.2), 40)
    return ExactPosterior(RuleFamily(task, rules), weights)


def test_the_pointwise_set_is_what_has_enough_probability(task):
    posterior = random_posteriors(task)
    for confidence in LEVELS:
        for row in range(40):
            for query in range(4):
                holds = posterior.family.allowed[:, query]
                chance = posterior.probability[row][holds].sum()
                assert posterior.allowed(confidence)[row, query] == (chance >= confidence - 1e-9)


def test_more_demonstrations_concentrate_on_the_truth():
    line = chain(length=11, limit=-2, horizon=10, reward_scale=3)
    rules = limit_rules(line)
    truth = np.flatnonzero((rules.allowed == line.allowed).all(axis=1))
    assert truth.size == 1
    assert rules.allowed.shape == (6, 11)
    expert = train_expert(line)
    large = [collect(expert, 100, seed=seed) for seed in range(5)]
    numbers = (1, 10, 100)
    sets = [data.take(np.arange(number)) for data in large for number in numbers]
    found = posteriors(
        plan_for_rules(rules),
        np.stack([action_counts(line, data) for data in sets]),
        np.stack([np.isin(np.arange(11), data.observations[:, :-1]) for data in sets]),
        np.array([len(data) for data in sets]),
    )
    sure = found.probability[:, truth[0]].reshape(5, 3)
    assert (np.diff(sure.mean(axis=0)) > 0).all()
    assert (sure[:, -1] > 0.95).all()


def test_limits_allow_every_first_state_and_end_with_no_limit():
    line = chain(length=11, limit=-2, horizon=10)
    rules = limit_rules(line)
    assert rules.allowed[:, 5].all()
    assert rules.allowed[:, 10].all()
    assert rules.allowed.all(axis=1).sum() == 1
    np.testing.assert_array_equal(np.sort(rules.allowed.sum(axis=1)), np.arange(6, 12))


def test_limits_need_positions(task):
    with pytest.raises(ArgumentError, match="positions"):
        limit_rules(task)


@pytest.mark.parametrize("candidates", [[], list(range(15)), [4], [-1]])
def test_candidates_that_cannot_be_enumerated_are_an_error(task, candidates):
    with pytest.raises(ArgumentError, match="candidates"):
        subset_rules(task, np.array(candidates, dtype=int))


@pytest.mark.parametrize(
    "states", [[[0, 99, 1]], [np.zeros((3, 1))], [[0] * (HORIZON + 2)]], ids=str
)
def test_demonstrations_that_do_not_fit_the_task_are_an_error(family, states):
    steps = len(states[0]) - 1
    alien = Trajectories.from_arrays(states, [[0] * steps], [[0.0] * steps])
    with pytest.raises(DemonstrationError):
        exact_posterior(family, alien)
