import functools

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.inference.encoder.model import ConfidenceModel, flat
from tacit.inference.encoder.votes import DEEP_VOTES
from tacit.inference.inputs import Inputs, Steps

OBSERVED, DONE, WIDTH, EXPERTS, STEPS = 3, 2, 8, 6, 4
INPUTS = Inputs.blank(OBSERVED, gymnasium.spaces.Box(-1, 1, (DONE,)))
every_vote = pytest.mark.parametrize("votes", DEEP_VOTES)


@functools.lru_cache
def fresh(votes="independent", granularity="step", encoder="attention", number=EXPERTS):
    return ConfidenceModel.start(
        INPUTS,
        number,
        votes=votes,
        granularity=granularity,
        encoder=encoder,
        width=WIDTH,
        layers=1,
        key=jax.random.key(3),
    )


@functools.lru_cache
def opinionated(votes="independent", granularity="step", encoder="attention"):
    """As if it had been trained: votes that differ between queries and experts."""
    model = fresh(votes, granularity, encoder)
    loud = model.head.weights * 20, jnp.zeros_like(model.head.bias)
    return eqx.tree_at(lambda model: (model.head.weights, model.head.bias), model, loud)


def some_steps(seed, *shape):
    generator = np.random.default_rng(seed)
    return Steps(
        generator.normal(size=(*shape, OBSERVED)).astype(np.float32),
        generator.uniform(-1, 1, size=(*shape, DONE)).astype(np.float32),
        np.ones(shape, bool),
    )


def at(steps, index):
    return Steps(*(field[index] for field in steps))


@eqx.filter_jit
def remembered(model, steps, number):
    experts, length = steps.present.shape
    step = jnp.broadcast_to(10 * jnp.arange(length), (experts, length))
    return model.remember(steps, 100 + jnp.arange(experts), step, number)


belief = eqx.filter_jit(ConfidenceModel.belief)
votes_of = eqx.filter_jit(ConfidenceModel.votes)
policies_of = eqx.filter_jit(ConfidenceModel.remember_policies)


@eqx.filter_jit
def membership_of(model, steps, memory):
    """How far each expert's trajectory passes each query."""
    queries = model.ask(steps)
    passing = model._passing(flat(queries), memory.tokens, memory.present)
    return passing.T.reshape(*queries.shape[:-1], -1)


@eqx.filter_jit
def temptation_of(model, steps, policies):
    """p(x): the largest share, over the used rounds, of a policy's windows that pass each query."""
    queries = model.ask(steps)
    return model._temptation(flat(queries), policies).reshape(queries.shape[:-1])


@pytest.fixture(scope="module")
def experts():
    steps = some_steps(1, EXPERTS, STEPS)
    return steps._replace(present=np.arange(STEPS) < np.array([4, 2, 3, 4, 1, 4])[:, None])


@pytest.fixture(scope="module")
def queries():
    return some_steps(2, 5)


def rounds(model, used):
    return policies_of(model, some_steps(4, len(used), 3, STEPS), np.array(used))


def test_the_order_of_the_experts_does_not_matter(experts, queries):
    model = opinionated()
    before = belief(model, queries, remembered(model, experts, 6.0))
    shuffled = at(experts, np.array([3, 1, 5, 0, 2, 4]))
    after = belief(model, queries, remembered(model, shuffled, 6.0))
    assert np.allclose(before, after, rtol=1e-5)
    assert np.ptp(before[0]) > 0.05


@every_vote
def test_padding_does_not_matter(experts, queries, votes):
    model = opinionated(votes)
    policies = rounds(model, [True, False]) if votes == "visits" else None
    before = belief(model, queries, remembered(model, experts, 12.0), policies)
    nonsense = np.where(experts.present[..., None], experts.observations, 1e4)
    hidden = experts._replace(observations=nonsense.astype(np.float32))
    same = belief(model, queries, remembered(model, hidden, 12.0), policies)
    assert np.array_equal(before, same)


def test_twice_the_experts_cast_twice_the_votes(experts, queries):
    model = opinionated()
    once = belief(model, queries, remembered(model, experts, 6.0))
    both = Steps(*(np.concatenate([field, field]) for field in experts))
    twice = belief(model, queries, remembered(model, both, 12.0))
    for few, many in zip(once, twice, strict=True):
        assert np.allclose(many - 1, 2 * (few - 1), rtol=1e-5)
    one_half = both._replace(present=both.present & (np.arange(12) < EXPERTS)[:, None])
    assert np.allclose(belief(model, queries, remembered(model, one_half, 6.0)), once, rtol=1e-5)


def test_random_subsets_are_unbiased(queries):
    model, steps = opinionated(), some_steps(8, 12, STEPS)
    alpha, beta = belief(model, queries, remembered(model, steps, 12.0))
    generator = np.random.default_rng(0)
    subsets = [generator.permutation(12)[:EXPERTS] for _ in range(300)]
    parts = np.array(
        [belief(model, queries, remembered(model, at(steps, chosen), 12.0)) for chosen in subsets]
    )
    error = parts.std(axis=0) / np.sqrt(len(parts))
    assert np.all(np.abs(parts.mean(axis=0) - np.stack([alpha, beta])) < 4 * error + 1e-4)
    assert error.max() > 1e-3


@pytest.mark.parametrize("votes", ["independent", "abstain"])
@pytest.mark.parametrize("number", [1, 100, 20_000])
def test_the_first_belief_is_nearly_flat_whatever_the_number_of_experts(
    experts, queries, votes, number
):
    model = fresh(votes, number=number)
    there = experts.present & (np.arange(EXPERTS) < number)[:, None]
    memory = remembered(model, experts._replace(present=there), float(number))
    alpha, beta = belief(model, queries, memory, None)
    for side in (alpha, beta):
        assert np.all(side > 1)
        assert np.all(side < 1.3)


def test_by_visits_nobody_votes_against_before_anybody_was_tempted(experts, queries):
    model = fresh("visits")
    memory = remembered(model, experts, float(EXPERTS))
    _, nobody = belief(model, queries, memory, rounds(model, [False, False]))
    _, tempted = belief(model, queries, memory, rounds(model, [True, True]))
    np.testing.assert_array_equal(nobody, 1)
    assert np.all(tempted > 1)


def test_abstaining_experts_cast_at_most_one_vote(experts, queries):
    for votes, least in (("abstain", 0.0), ("independent", 1.0)):
        model = opinionated(votes)
        agree, disagree = votes_of(model, queries, remembered(model, experts, 6.0))
        assert agree.shape == disagree.shape == (5, EXPERTS)
        total = np.asarray(agree + disagree)
        assert total.max() > least
        assert total.max() < (1.0 if votes == "abstain" else 2.0)


def test_gradients_reach_everything_but_the_inputs(experts, queries):
    model = fresh(encoder="transformer")

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        memory = remembered(model, experts, 6.0)
        alpha, beta = model.belief_in_chunks(queries, memory, chunk=2)
        return jnp.log(alpha / (alpha + beta)).mean()

    found = gradient(model)
    for leaf in jax.tree.leaves((found.encoder, found.head)):
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() > 0
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(found.inputs))


def test_chunks_change_nothing(experts):
    model, many = opinionated(), some_steps(5, 11)
    memory = remembered(model, experts, 6.0)
    whole = belief(model, many, memory)
    for chunk in (4, 64):
        parts = eqx.filter_jit(ConfidenceModel.belief_in_chunks)(model, many, memory, chunk=chunk)
        assert np.allclose(whole, parts, rtol=1e-5)


def test_a_beginning_does_not_depend_on_what_comes_later(experts):
    model = opinionated(granularity="trajectory")
    memory = remembered(model, experts, 6.0)
    windows = some_steps(6, 2, 7)
    alpha, beta = belief(model, windows, memory)
    assert alpha.shape == beta.shape == (2, 7)
    later = windows.observations.copy()
    later[:, 4:] += 3.0
    changed = belief(model, windows._replace(observations=later), memory)
    assert np.allclose(alpha[:, :4], changed[0][:, :4], rtol=1e-6)
    assert np.all(np.abs(alpha[:, 4:] - changed[0][:, 4:]) > 1e-4)
    absent = windows._replace(present=np.arange(7) != np.array([[2], [3]]))
    removed = belief(model, absent, memory)
    assert np.allclose(removed[0][0, 2], removed[0][0, 1], rtol=1e-6)
    assert np.allclose(removed[0][1, 3], removed[0][1, 2], rtol=1e-6)


def test_a_trajectory_that_begins_within_a_window_forgets_what_was_before(experts):
    model = opinionated(granularity="trajectory")
    memory = remembered(model, experts, 6.0)
    windows = some_steps(6, 2, 7)
    begins = np.zeros((2, 7), bool)
    begins[0, 3] = begins[1, 0] = True
    alpha, _ = belief(model, windows, memory, begins=begins)
    whole, _ = belief(model, windows, memory)
    assert np.allclose(alpha[1], whole[1], rtol=1e-6)
    assert np.allclose(alpha[0, :3], whole[0, :3], rtol=1e-6)
    alone, _ = belief(model, at(windows, (slice(None), slice(3, None))), memory)
    assert np.allclose(alpha[0, 3:], alone[0], rtol=1e-6)


def test_absent_trajectories_give_finite_beliefs(experts):
    model = opinionated(granularity="trajectory")
    windows = some_steps(6, 2, 3)._replace(present=np.zeros((2, 3), bool))
    alpha, beta = belief(model, windows, remembered(model, experts, 6.0))
    assert np.isfinite(alpha).all()
    assert np.isfinite(beta).all()


def test_only_used_rounds_tempt(experts, queries):
    model = opinionated("visits")
    each = [
        temptation_of(model, queries, rounds(model, used))
        for used in ([True, False, False], [False, True, False], [False, False, True])
    ]
    assert not np.allclose(each[0], each[1])
    both = temptation_of(model, queries, rounds(model, [True, False, True]))
    assert np.allclose(both, np.maximum(each[0], each[2]), rtol=1e-6)
    unused = rounds(model, [False, False, False])
    assert np.all(temptation_of(model, queries, unused) == 0)
    memory = remembered(model, experts, 6.0)
    for none in (None, unused):
        alpha, beta = belief(model, queries, memory, none)
        assert np.all(beta == 1)
        assert np.all(alpha > 1)


def test_visits_vote_for_where_they_pass_and_against_where_they_were_tempted(experts, queries):
    model = opinionated("visits")
    memory, policies = remembered(model, experts, 6.0), rounds(model, [True, True])
    passing = membership_of(model, queries, memory)
    tempted = temptation_of(model, queries, policies)
    agree, disagree = votes_of(model, queries, memory, policies)
    assert np.allclose(agree, passing, rtol=1e-6)
    assert np.allclose(disagree, (1 - passing) * tempted[:, None], rtol=1e-5)
    window = some_steps(4, 2, 3, STEPS)
    shares = [
        np.mean(membership_of(model, queries, remembered(model, at(window, place), 3.0)), axis=1)
        for place in (0, 1)
    ]
    assert np.allclose(tempted, np.maximum(*shares), rtol=1e-5)
    with pytest.raises(ArgumentError, match="only a model that votes by visits"):
        membership_of(opinionated(), queries, memory)


def test_evidence_names_the_expert_and_the_step(experts):
    """By construction: q = t = tanh(3 x), and their similarity is proportional to q . t."""
    model = opinionated(encoder="bidaf")
    encoder = model.encoder
    first = jnp.eye(OBSERVED + DONE, 2 * WIDTH) * 3.0
    second = jnp.eye(2 * WIDTH, WIDTH)
    sight = eqx.tree_at(lambda made: made.weights, encoder.question, [first, second])
    encoder = eqx.tree_at(
        lambda made: (made.question, made.answer, made.from_product, made.from_token),
        encoder,
        (sight, sight, jnp.full(WIDTH, 60.0), jnp.zeros(WIDTH)),
    )
    # The output keeps only the closeness, which is largest where a step is the query.
    encoder = eqx.tree_at(
        lambda made: (made.output, made.from_closeness),
        encoder,
        (jnp.zeros((3 * WIDTH, WIDTH)), jnp.ones(WIDTH) / 60),
    )
    head = eqx.tree_at(
        lambda made: (made.from_query, made.weights, made.bias),
        model.head,
        (jnp.zeros((WIDTH, WIDTH)), jnp.full((WIDTH, 2), 6.0), jnp.full(2, -20.0)),
    )
    model = eqx.tree_at(lambda made: (made.encoder, made.head), model, (encoder, head))
    elsewhere = -np.ones_like(experts.observations)
    planted = experts._replace(observations=elsewhere, actions=0 * experts.actions)
    planted.observations[3, 2] = 1.0
    query = Steps(
        np.ones((1, OBSERVED), np.float32), np.zeros((1, DONE), np.float32), np.ones(1, bool)
    )
    memory = remembered(model, planted, 600.0)
    evidence = model.evidence(query, memory, most=3)
    assert evidence.expert[0, 0] == 103
    assert evidence.step[0, 0] == 20
    assert evidence.weight[0, 0] > 0.9
    assert np.all(np.diff(evidence.weight) <= 0)
    alpha, beta = belief(model, query, memory)
    assert np.allclose(evidence.votes_for, alpha - 1, rtol=1e-5)
    assert np.allclose(evidence.votes_against, beta - 1, rtol=1e-5)


def test_evidence_weights_are_shares_and_absent_steps_are_nobody(experts, queries):
    model = opinionated()
    memory = remembered(model, experts, 6.0)
    evidence = model.evidence(queries, memory, most=1000)
    assert evidence.expert.shape == (5, EXPERTS * STEPS)
    assert np.allclose(evidence.weight.sum(axis=1), 1, atol=1e-5)
    absent = evidence.weight == 0
    assert np.all(absent.sum(axis=1) == (~experts.present).sum())
    assert np.all((evidence.expert == -1) == absent)
    assert np.all((evidence.step == -1) == absent)
