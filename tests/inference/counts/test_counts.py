"""Counted votes on a short chain, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacit.control.expert import collect, train_expert
from tacit.control.planning import Dynamics
from tacit.environments.lab_tasks import chain, grid_world
from tacit.inference.counts import counts as counted_belief
from tacit.inference.counts.counts import count_votes
from tacit.inference.counts.model import visits_of

NUMBER = 20
FORBIDDEN = (4, 5, 6)  # positions -6 to -4; the reward pulls there
BEYOND = (0, 1, 19, 20)  # cannot be reached in eight steps


@pytest.fixture(scope="module")
def task():
    return chain(length=21, limit=-3, horizon=8, reward_scale=3)


@pytest.fixture(scope="module")
def data_sets(task):
    expert = train_expert(task)
    return [collect(expert, NUMBER, seed=seed) for seed in range(3)]


def visitors(task, data):
    return (visits_of(task, data) > 0).sum(axis=0).astype(float)


def count(task, came, number=NUMBER, votes="visits"):
    with jax.enable_x64(True):
        belief = count_votes(
            Dynamics.of(task),
            jnp.asarray(came),
            float(number),
            task.budget,
            horizon=task.horizon,
            on_pairs=task.rule_on == "pair",
            votes=votes,
        )
        return jax.tree.map(np.asarray, belief)


@pytest.fixture(scope="module")
def beliefs(task, data_sets):
    return [count(task, visitors(task, data)) for data in data_sets]


def unconstrained_visits(task):
    """P(the soft-optimal policy visits x), by removing whoever is at x; NumPy."""
    value, policies = np.zeros(task.number_of_states), []
    for _ in range(task.horizon):
        quality = task.rewards + task.transitions @ value
        value = task.temperature * np.log(np.exp(quality / task.temperature).sum(axis=1))
        policies.append(np.exp((quality - value[:, None]) / task.temperature))
    answer = np.zeros(task.number_of_states)
    for query in range(task.number_of_states):
        here = task.initial.copy()
        for policy in reversed(policies):
            answer[query] += here[query]
            here[query] = 0
            here = np.einsum("s,sa,san->n", here, policy, task.transitions)
    return answer


def test_temptation_is_never_below_the_unconstrained_visit_probability(task, beliefs):
    free = unconstrained_visits(task)
    assert free.max() == pytest.approx(1)
    for belief in beliefs:
        assert (belief.tempted >= free - 1e-9).all()
        assert (belief.tempted <= 1).all()


def test_a_belief_is_the_votes_of_visitors_and_of_those_who_stayed_away(task, data_sets, beliefs):
    for data, belief in zip(data_sets, beliefs, strict=True):
        came = visitors(task, data)
        np.testing.assert_allclose(belief.alpha, 1 + came)
        against = np.where(came > 0, 0, NUMBER * belief.tempted)
        np.testing.assert_allclose(belief.beta, 1 + against)


def test_where_experts_may_err_those_who_stayed_away_vote_against_visited_states_too(
    task, data_sets
):
    came = visitors(task, data_sets[0])
    belief = count(task, came, votes="visits-fallible")
    np.testing.assert_allclose(belief.alpha, 1 + came)
    np.testing.assert_allclose(belief.beta, 1 + (NUMBER - came) * belief.tempted)
    assert (belief.beta[(came > 0) & (came < NUMBER)] > 1).any()


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.7, 0.9, 0.99])
def test_tempting_forbidden_states_that_nobody_visits_are_rejected(beliefs, confidence):
    for belief in beliefs:
        above = stats.beta.sf(0.5, belief.alpha, belief.beta)
        assert (above[list(FORBIDDEN)] < confidence).all()


def test_states_that_cannot_be_reached_keep_the_belief_of_no_evidence(beliefs):
    for belief in beliefs:
        np.testing.assert_allclose(belief.alpha[list(BEYOND)], 1, atol=1e-9)
        np.testing.assert_allclose(belief.beta[list(BEYOND)], 1, atol=1e-9)
        np.testing.assert_allclose(belief.tempted[list(BEYOND)], 0, atol=1e-12)


def test_more_experts_who_stay_away_are_more_evidence(task, data_sets):
    came = visitors(task, data_sets[0])
    few, many = count(task, came, NUMBER), count(task, came, 10 * NUMBER)
    for state in FORBIDDEN:
        assert many.beta[state] > 3 * few.beta[state]


def test_the_rounds_end_before_the_limit_and_are_counted(beliefs):
    for belief in beliefs:
        assert 1 <= int(belief.rounds) < counted_belief.MOST_ROUNDS


def test_many_data_sets_at_once_give_what_each_gives_alone(task, data_sets, beliefs):
    with jax.enable_x64(True):
        together = jax.vmap(
            lambda came: count_votes(
                Dynamics.of(task),
                came,
                float(NUMBER),
                task.budget,
                horizon=task.horizon,
                on_pairs=False,
                votes="visits",
            )
        )(jnp.asarray([visitors(task, data) for data in data_sets]))
    for index, belief in enumerate(beliefs):
        np.testing.assert_allclose(together.alpha[index], belief.alpha, atol=1e-9)
        np.testing.assert_allclose(together.beta[index], belief.beta, atol=1e-6)
        assert int(together.rounds[index]) == int(belief.rounds)


@pytest.fixture(scope="module")
def small_grid():
    """Two ways round one forbidden cell: some experts take one way, some the other."""
    return grid_world(("...", "SxG", "..."), horizon=9)


@pytest.mark.parametrize("votes", ["visits", "visits-fallible"])
def test_at_the_end_no_policy_finds_a_new_way(small_grid, votes, monkeypatch):
    task = small_grid
    came = visitors(task, collect(train_expert(task), NUMBER, seed=0))

    @jax.jit
    def anew(tolerance, most_rounds):
        """Counted with other constants; the compiled code that others share stays as it is."""
        monkeypatch.setattr(counted_belief, "TOLERANCE", tolerance)
        monkeypatch.setattr(counted_belief, "MOST_ROUNDS", most_rounds)
        return count_votes.__wrapped__(
            Dynamics.of(task),
            jnp.asarray(came),
            float(NUMBER),
            task.budget,
            horizon=task.horizon,
            on_pairs=False,
            votes=votes,
        )

    usual = counted_belief.TOLERANCE, counted_belief.MOST_ROUNDS
    with jax.enable_x64(True):
        belief = anew(*usual)
        rounds = int(belief.rounds)
        later = anew(-1.0, rounds + 10)
    assert rounds < usual[1]
    assert int(later.rounds) == rounds + 10
    np.testing.assert_allclose(later.beta, belief.beta, atol=0.005 * NUMBER)
