"""The algorithm box: which settings fit together, and forward control under a belief."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacit.control.expert import collect, train_expert
from tacit.control.planning import Dynamics
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.lab_tasks import chain
from tacit.errors import ArgumentError, DemonstrationError
from tacit.inference.confidence import belief
from tacit.inference.counts.counts import Counts, forward_control
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.counts.model import visits_of
from tacit.inference.infer import infer

COUNTED, LEARNED = ("visits", "visits-fallible"), ("independent", "abstain")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def task():
    return chain(length=21, limit=-3, horizon=8, reward_scale=3)


@pytest.fixture(scope="module")
def data(task):
    return collect(train_expert(task), 20, seed=0)


def test_votes_that_fit_the_method_are_accepted():
    for votes in COUNTED:
        assert Counts(votes=votes).any_confidence
    for objective, votes in itertools.product(["evidence", "quantile"], LEARNED):
        method = Likelihood(objective=objective, votes=votes)
        assert method.any_confidence == (objective != "quantile")


@pytest.mark.parametrize(
    ("kind", "votes"),
    [*itertools.product([Counts], LEARNED), *itertools.product([Likelihood], COUNTED)],
)
def test_votes_of_the_other_method_are_an_error_that_names_those_that_fit(kind, votes):
    with pytest.raises(ArgumentError) as caught:
        kind(votes=votes)
    assert all(word in str(caught.value) for word in (LEARNED if votes in COUNTED else COUNTED))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (Counts, "votes"),
        (Counts, "reading"),
        (Likelihood, "objective"),
        (Likelihood, "votes"),
        (Likelihood, "reading"),
    ],
)
@pytest.mark.parametrize("value", ["nonsense", "", None, 3])
def test_an_unknown_word_is_an_error_that_names_the_field(kind, field, value):
    with pytest.raises(ArgumentError, match=f"{field} must be '"):
        kind(**{field: value})


def occupied(task, policy):
    here, total = task.initial, np.zeros(task.rewards.shape)
    for step in policy:
        total += here[:, None] * step
        here = np.einsum("s,sa,san->n", here, step, task.transitions)
    return total


def control(task, data, model, confidence, reading):
    plan = forward_control(
        Dynamics.of(task),
        jnp.asarray(model.alpha),
        jnp.asarray(model.beta),
        jnp.asarray(visits_of(task, data).mean(axis=0)),
        confidence,
        task.budget,
        reading=reading,
        horizon=task.horizon,
    )
    return np.asarray(plan.policy)


@pytest.mark.parametrize("confidence", [0.3, 0.7, 0.9])
def test_the_policy_keeps_to_the_budget_of_its_reading(task, data, confidence):
    model = infer(task, data, confidence=confidence).constraint.model
    above = stats.beta.sf(0.5, model.alpha, model.beta)
    mean = visits_of(task, data).mean(axis=0)
    soft = 1 - stats.beta.ppf(1 - confidence, model.alpha, model.beta)
    bits = np.maximum(np.log2(confidence / above), 0)
    price = task.budget / (belief.BITS_PER_EPISODE * (1 - confidence))
    graded = 1 - np.exp(-price * bits)
    for reading, cost, budget in (
        ("hard", (above < confidence).astype(float), task.budget),
        ("graded", graded, task.budget),
        ("soft", soft, task.budget + mean @ soft),
    ):
        policy = control(task, data, model, confidence, reading)
        spent = (occupied(task, policy).sum(axis=1) * cost).sum()
        assert spent <= budget * (1 + 1e-6) or spent <= 1.06 * least_cost(task, cost)


def least_cost(task, cost):
    value = np.zeros(task.number_of_states)
    for _ in range(task.horizon):
        value = (cost[:, None] + task.transitions @ value).min(axis=1)
    return task.initial @ value


def test_a_rejected_state_is_hardly_ever_visited_by_the_hard_policy(task, data):
    model = infer(task, data, method=Counts(reading="hard"), confidence=0.7).constraint.model
    policy = control(task, data, model, 0.7, "hard")
    rejected = ~model.allowed(0.7)
    assert rejected.any()
    assert occupied(task, policy)[rejected].sum() <= task.budget * (1 + 1e-6)


def test_facts_tell_how_the_learning_ended(task, data):
    counted = infer(task, data, method=Counts()).metrics
    learned = infer(task, data, method=Likelihood(votes="abstain")).metrics
    assert set(counted) - set(learned) == {"rounds"}
    assert set(learned) - set(counted) == {"visit_gap"}
    assert counted["rounds"] >= 1
    assert learned["visit_gap"] >= 0


def test_demonstrations_of_another_task_are_an_error(task):
    data = Trajectories.from_arrays([[20, 21, 22]], [[2, 2]], [[0.0, 0.0]])  # of a longer chain
    with pytest.raises(DemonstrationError, match="0 to 20"):
        infer(task, data, confidence=0.7)
