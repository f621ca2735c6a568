"""Learned votes against finite differences of the likelihood, summed over all trajectories."""

import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import betaincinv, betaln, digamma, logsumexp

from tacit.control.planning import Dynamics
from tacit.inference.confidence.belief import LEARNED_VOTES
from tacit.inference.confidence.quantile import QuantileTable
from tacit.inference.counts import likelihood as learned_belief
from tacit.inference.counts.likelihood import learn_votes

STATES, ACTIONS, HORIZON = 4, 2, 3
NUMBER = 5
STEPS = learned_belief.STEPS
PLANS = np.array(list(itertools.product(range(ACTIONS), repeat=HORIZON)))


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def task():
    """Deterministic, one first state; state 3 cannot be reached."""
    random = np.random.default_rng(0)
    successor = np.array([[1, 2], [0, 2], [1, 0], [3, 3]])
    rewards = random.normal(size=(STATES, ACTIONS))
    states = np.zeros((len(PLANS), HORIZON), dtype=int)
    for step in range(1, HORIZON):
        states[:, step] = successor[states[:, step - 1], PLANS[:, step - 1]]
    demonstrated = random.integers(len(PLANS), size=NUMBER)
    visits = np.stack([(states == state).sum(axis=1) for state in range(STATES)], axis=1)
    return SimpleNamespace(
        transitions=np.eye(STATES)[successor],
        rewards=rewards,
        temperature=0.7,
        visits=visits.astype(float),
        returns=rewards[states, PLANS].sum(axis=1),
        visitors=(visits[demonstrated] > 0).sum(axis=0).astype(float),
        mean_visits=visits[demonstrated].mean(axis=0),
    )


def learn(task, votes, table, steps, number=NUMBER):
    dynamics = Dynamics(
        jnp.asarray(task.transitions),
        jnp.asarray(task.rewards),
        jnp.asarray(np.eye(STATES)[0]),
        jnp.asarray(task.temperature),
    )
    return learn_votes(
        dynamics,
        jnp.asarray(task.visitors * number / NUMBER),
        jnp.asarray(task.mean_visits),
        float(number),
        horizon=HORIZON,
        votes=votes,
        table=table,
        steps=steps,
    )


def shapes_of(weights, task, votes):
    if votes == "independent":
        cast = 1 / (1 + np.exp(-weights))
    else:
        cast = np.exp(weights) / np.exp(weights).sum(axis=-1, keepdims=True)
    came, away = task.visitors[:, None], NUMBER - task.visitors[:, None]
    sums = 1 + came * cast[..., 0, :2] + away * cast[..., 1, :2]
    return sums[..., 0], sums[..., 1]


def divergence(alpha, beta):
    """KL(Beta || uniform); `test_the_divergence_from_the_prior_is_its_integral` proves it."""
    votes = alpha + beta - 2
    middle = (alpha - 1) * digamma(alpha) + (beta - 1) * digamma(beta)
    return middle - betaln(alpha, beta) - votes * digamma(alpha + beta)


def likelihood(weights, task, votes, probability):
    """Per demonstration: log P of the demonstrations, log Z summed over every trajectory."""
    alpha, beta = shapes_of(weights, task, votes)
    if probability is None:
        value = digamma(alpha) - digamma(alpha + beta)
        prior = divergence(alpha, beta).sum(axis=-1) / NUMBER
    else:
        value = np.log(betaincinv(alpha, beta, probability))
        prior = 0.0
    log_z = logsumexp(task.returns / task.temperature + value @ task.visits.T, axis=-1)
    return value @ task.mean_visits - log_z - prior


def slope(weights, *rest):
    shifts = 1e-5 * np.eye(weights.size).reshape(-1, *weights.shape)
    rise = likelihood(weights + shifts, *rest) - likelihood(weights - shifts, *rest)
    return rise.reshape(weights.shape) / 2e-5


def climb(task, votes, probability, steps, rate):
    """Adam as in its paper, on finite differences."""
    weights = start_of(votes)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):
        gradient = slope(weights, task, votes, probability)
        gradient[np.abs(gradient) < 1e-9] = 0
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        weights = weights + rate * first / (1 - 0.9**step) / size
    return shapes_of(weights, task, votes)


@pytest.mark.parametrize("votes", LEARNED_VOTES)
def test_evidence_climbs_the_exact_bound(task, votes):
    found = learn(task, votes, None, STEPS)
    wanted = climb(task, votes, None, STEPS, 0.1)
    np.testing.assert_allclose(found.alpha, wanted[0], atol=1e-6)
    np.testing.assert_allclose(found.beta, wanted[1], atol=1e-6)


@pytest.mark.parametrize("votes", LEARNED_VOTES)
def test_quantile_climbs_the_exact_likelihood(task, votes):
    found = learn(task, votes, QuantileTable.build(0.3), STEPS)
    wanted = climb(task, votes, 0.3, STEPS, 0.1)
    reached = [0, 1, 2]
    np.testing.assert_allclose(found.alpha[np.array(reached)], wanted[0][reached], atol=2e-5)
    np.testing.assert_allclose(found.beta[np.array(reached)], wanted[1][reached], atol=2e-5)


def start_of(votes):
    row = [-6.0, -6.0] if votes == "independent" else [-3.0, -3.0, 3.0]
    return np.tile(row, (STATES, 2, 1))


def bound(task, alpha, beta):
    value = digamma(alpha) - digamma(alpha + beta)
    log_z = logsumexp(task.returns / task.temperature + task.visits @ value)
    return task.mean_visits @ value - log_z - divergence(alpha, beta).sum() / NUMBER


@pytest.mark.parametrize("votes", LEARNED_VOTES)
def test_the_bound_ends_higher_than_it_began(task, votes):
    end = learn(task, votes, None, STEPS)
    reached = bound(task, np.asarray(end.alpha), np.asarray(end.beta))
    assert reached > bound(task, *shapes_of(start_of(votes), task, votes)) + 0.01


def gap_of(task, value):
    log_weights = task.returns / task.temperature + task.visits @ value
    model = np.exp(log_weights - logsumexp(log_weights)) @ task.visits
    return np.abs(task.mean_visits - model).max()


def test_the_gap_is_that_of_the_visits_under_the_belief_that_is_returned(task):
    found = learn(task, "abstain", None, STEPS)
    alpha, beta = np.asarray(found.alpha), np.asarray(found.beta)
    wanted = gap_of(task, digamma(alpha) - digamma(alpha + beta))
    assert float(found.gap) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("votes", "probability"), [("abstain", None), ("independent", None), ("abstain", 0.3)]
)
def test_training_reduces_the_visit_gap(task, votes, probability):
    alpha, beta = shapes_of(start_of(votes), task, votes)
    if probability is None:
        value, table = digamma(alpha) - digamma(alpha + beta), None
    else:
        value = np.log(betaincinv(alpha, beta, probability))
        table = QuantileTable.build(probability)
    assert float(learn(task, votes, table, STEPS).gap) < 0.9 * gap_of(task, value)


@pytest.mark.parametrize("votes", LEARNED_VOTES)
def test_under_the_bound_a_query_that_nobody_reaches_goes_back_to_the_prior(task, votes):
    for number in (5, 100):
        found = learn(task, votes, None, STEPS, number=number)
        assert float(found.alpha[3]) == pytest.approx(1, abs=0.15)
        assert float(found.beta[3]) == pytest.approx(1, abs=0.15)


@settings(max_examples=30, deadline=None)
@example(2.0, 8.0)
@given(st.floats(1, 60), st.floats(1, 60))
def test_the_divergence_from_the_prior_is_its_integral(alpha, beta):
    density = stats.beta(alpha, beta)

    def integrand(phi):
        return density.pdf(phi) * density.logpdf(phi)

    middle = float(np.clip(density.mean(), 0.05, 0.95))
    wanted, _ = integrate.quad(integrand, 0, 1, points=[middle], limit=400)
    found = float(learned_belief.divergence_from_prior(jnp.asarray(alpha), jnp.asarray(beta)))
    assert found == pytest.approx(wanted, abs=1e-6)
    assert divergence(alpha, beta) == pytest.approx(wanted, abs=1e-6)


def test_log_feasibility_is_the_mean_logarithm_or_the_logarithm_of_the_quantile():
    alpha, beta = jnp.asarray([1.0, 3.5, 20.0]), jnp.asarray([1.0, 2.0, 1.5])
    for index in range(3):
        density = stats.beta(float(alpha[index]), float(beta[index]))
        wanted = density.expect(np.log)
        found = learned_belief.log_feasibility(alpha, beta, None)[index]
        assert float(found) == pytest.approx(wanted, abs=1e-5)
        found = learned_belief.log_feasibility(alpha, beta, QuantileTable.build(0.2))[index]
        assert float(found) == pytest.approx(np.log(density.ppf(0.2)), abs=1e-3)


def test_two_tables_are_two_answers_also_in_one_process(task):
    low, high = (learn(task, "abstain", QuantileTable.build(p), STEPS) for p in (0.3, 0.9))
    assert not np.allclose(low.alpha, high.alpha)
