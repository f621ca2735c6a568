"""Votes against counting by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.inference.confidence.belief import (
    COUNTED_VOTES,
    LEARNED_VOTES,
    counted_votes,
    initial_weights,
    learned_votes,
)

STATES = 5
often = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@often
@given(seeds, st.sampled_from(COUNTED_VOTES))
def test_counted_votes_are_the_sums_over_experts(seed, votes):
    random = np.random.default_rng(seed)
    came = random.random((7, STATES)) < 0.3
    tempted = random.random(STATES)
    alpha, beta = counted_votes(jnp.asarray(came.sum(axis=0)), 7, jnp.asarray(tempted), votes)
    for query in range(STATES):
        proved = votes == "visits" and came[:, query].any()
        votes_for = sum(1.0 for expert in came if expert[query])
        against = sum(0.0 if expert[query] or proved else tempted[query] for expert in came)
        assert float(alpha[query]) == pytest.approx(1 + votes_for)
        assert float(beta[query]) == pytest.approx(1 + against)


def each_expert(weights, visited, votes):
    """(for, against) of one expert at one query, from the weights of the encoder."""
    outputs = weights[0 if visited else 1]
    if votes == "independent":
        cast = 1 / (1 + np.exp(-outputs))
    else:
        cast = np.exp(outputs) / np.exp(outputs).sum()
    return cast[0], cast[1]


@often
@given(seeds, st.sampled_from(LEARNED_VOTES))
def test_learned_votes_are_the_sums_over_experts(seed, votes):
    random = np.random.default_rng(seed)
    came = random.random((6, STATES)) < 0.4
    weights = 2 * random.normal(size=(STATES, 2, 2 if votes == "independent" else 3))
    alpha, beta = learned_votes(jnp.asarray(weights), jnp.asarray(came.sum(axis=0)), 6, votes)
    for query in range(STATES):
        cast = [each_expert(weights[query], expert[query], votes) for expert in came]
        assert float(alpha[query]) == pytest.approx(1 + sum(one[0] for one in cast))
        assert float(beta[query]) == pytest.approx(1 + sum(one[1] for one in cast))


@pytest.mark.parametrize(("votes", "most"), [("abstain", 1.0), ("independent", 2.0)])
def test_one_expert_casts_at_most_one_vote_when_it_may_abstain_and_two_otherwise(votes, most):
    outputs = 2 if votes == "independent" else 3
    weights = np.full((STATES, 2, outputs), -50.0)
    weights[..., :2] = 50.0
    for visitors in (0.0, 1.0):
        alpha, beta = learned_votes(jnp.asarray(weights), jnp.full(STATES, visitors), 1, votes)
        np.testing.assert_allclose(alpha + beta - 2, most, atol=1e-9)


@often
@given(seeds)
def test_abstaining_experts_never_cast_more_votes_than_there_are_experts(seed):
    random = np.random.default_rng(seed)
    weights = 10 * random.normal(size=(STATES, 2, 3))
    visitors = random.integers(0, 10, STATES)
    alpha, beta = learned_votes(jnp.asarray(weights), jnp.asarray(visitors), 9, "abstain")
    assert (alpha + beta - 2 <= 9 + 1e-9).all()
    assert (alpha >= 1).all()
    assert (beta >= 1).all()


@pytest.mark.parametrize("votes", LEARNED_VOTES)
def test_the_encoder_starts_even_handed_and_close_to_no_opinion(votes):
    weights = initial_weights(STATES, votes)
    alpha, beta = learned_votes(weights, jnp.arange(STATES), STATES, votes)
    np.testing.assert_allclose(alpha, beta)
    assert (alpha - 1 < 0.05 * STATES).all()
