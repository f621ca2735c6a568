"""What each method makes small, against the same numbers by NumPy and SciPy."""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from tacit.control.learner import Rollout
from tacit.inference.baselines import vicrl
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.gacl import DISCOUNT, GACL, shaped_rewards
from tacit.inference.baselines.gacl import SMALLEST as FLOOR
from tacit.inference.baselines.icl import ICL
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.confidence.belief import beta_divergence
from tacit.inference.encoder.method import CAICRL, SMALLEST, Memory
from tacit.inference.encoder.voters import Voters
from tacit.inference.gradient_steps import DRIFT_LIMITS, Minibatch, gradient_passes
from tacit.inference.inputs import Inputs, Steps
from tacit.inference.method import Learned, Moment

BOX = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
RANDOM = np.random.default_rng(0)
INPUTS = Inputs.blank(3, BOX)
KEY = jax.random.key(0)
HIDDEN = (8,)


def steps(number, shift=0.0):
    seen = (shift + RANDOM.normal(size=(number, 3))).astype(np.float32)
    done = RANDOM.uniform(-1, 1, (number, 2)).astype(np.float32)
    return Steps(jnp.asarray(seen), jnp.asarray(done), jnp.ones(number, bool))


EXPERTS, POLICY = steps(16), steps(16, 1.0)
WEIGHTS = jnp.asarray(RANDOM.dirichlet(np.ones(16)) * 16, jnp.float32)
ONES = jnp.ones(16)


def logits(model, sample):
    """The network by NumPy: tanh layers on arcsinh of the observation, beside the action."""
    values = np.concatenate([np.arcsinh(sample.observations), sample.actions], axis=1)
    weights, biases = model.network.weights, model.network.biases
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        values = np.tanh(values @ np.asarray(weight) + np.asarray(bias))
    return values @ np.asarray(weights[-1]) + np.asarray(biases[-1])


def opinionated(method):
    """A model with weights large enough to tell steps apart."""
    model = method.new_model(INPUTS, 5, key=KEY)
    network = jax.tree.map(lambda leaf: 3 * leaf + 0.1, model.network)
    return type(model)(model.inputs, network)


def loss_of(method, model, memory=(), weights=ONES, confidence=0.8, key=KEY):
    batch = Minibatch(memory, EXPERTS, POLICY, weights, confidence, key)
    return float(method.loss(model, batch))


def log_z(values):
    return -np.logaddexp(0, -values)


def test_icrl_is_the_weighted_likelihood_and_a_price_of_forbidding():
    method = ICRL(hidden=HIDDEN, regulariser=0.3)
    model = opinionated(method)
    mine, theirs = (logits(model, sample)[:, 0] for sample in (EXPERTS, POLICY))
    forbidden = special.expit(-mine).mean() + special.expit(-theirs).mean()
    wanted = -log_z(mine).mean() + (np.asarray(WEIGHTS) * log_z(theirs)).mean() + 0.3 * forbidden
    assert loss_of(method, model, weights=WEIGHTS) == pytest.approx(wanted, rel=1e-4)
    found = method.log_feasibility(model, (), POLICY, 0.8)
    np.testing.assert_allclose(found, log_z(theirs), rtol=1e-4)


def test_importance_weights_act_on_the_gradient_of_icrl():
    method = ICRL(hidden=HIDDEN)
    model = opinionated(method)

    def slope(weights):
        def loss(network):
            changed = type(model)(model.inputs, network)
            return method.loss(changed, Minibatch((), EXPERTS, POLICY, weights, 0.8, KEY))

        return np.concatenate(
            [np.ravel(leaf) for leaf in jax.tree.leaves(jax.grad(loss)(model.network))]
        )

    even, uneven = slope(ONES), slope(WEIGHTS)
    assert np.linalg.norm(even - uneven) > 0.05 * np.linalg.norm(even)


def test_bc2l_is_the_cross_entropy_of_experts_against_policies():
    method = BC2L(hidden=HIDDEN)
    model = opinionated(method)
    mine, theirs = (logits(model, sample)[:, 0] for sample in (EXPERTS, POLICY))
    wanted = -log_z(mine).mean() - log_z(-theirs).mean()
    assert loss_of(method, model) == pytest.approx(wanted, rel=1e-4)
    assert loss_of(method, model, weights=WEIGHTS) == loss_of(method, model)


def test_icl_pushes_the_mixture_up_and_the_experts_below_the_budget():
    for budget in (0.05, 0.9):
        method = ICL(hidden=HIDDEN, budget=budget, penalty=7.0)
        model = opinionated(method)
        mine, theirs = (special.expit(-logits(model, s)[:, 0]) for s in (EXPERTS, POLICY))
        wanted = 7 * max(0, mine.mean() - budget) - theirs.mean()
        assert loss_of(method, model) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("pair", [(0.9, 0.1), (1.0, 1.0), (3.0, 0.5), (8.0, 20.0), (0.3, 2.0)])
def test_the_divergence_of_vicrl_is_the_integral(pair):
    def log_density(odds, alpha, beta):
        """Of the log odds of phi, which has no infinities."""
        whole = special.betaln(alpha, beta)
        return alpha * special.log_expit(odds) + beta * special.log_expit(-odds) - whole

    for prior in ((0.9, 0.1), (1.0, 1.0), (2.0, 3.0)):

        def integrand(odds, prior=prior):
            log = log_density(odds, *pair)
            return np.exp(log) * (log - log_density(odds, *prior))

        wanted, _ = integrate.quad(integrand, -300, 300, points=[-20, 0, 20], limit=400)
        found = beta_divergence(jnp.float32(pair[0]), jnp.float32(pair[1]), *prior)
        assert float(found) == pytest.approx(wanted, abs=1e-4, rel=1e-4)


def test_vicrl_is_one_draw_per_step_and_the_divergence_from_its_prior(monkeypatch):
    method = VICRL(hidden=HIDDEN, regulariser=0.7, prior=(0.9, 0.1))
    model = opinionated(method)
    draws = [np.asarray(RANDOM.normal(-1, 1, 16)), np.asarray(RANDOM.normal(-2, 1, 16))]
    drawn = iter(draws)
    monkeypatch.setattr(
        vicrl.VariationalModel, "log_sample", lambda *_, **__: jnp.asarray(next(drawn))
    )
    divergences = []
    for sample in (EXPERTS, POLICY):
        alpha, beta = np.logaddexp(0, logits(model, sample)).T + 1e-3
        divergences.append(np.asarray(beta_divergence(alpha, beta, 0.9, 0.1)).mean())
    wanted = draws[1].mean() - draws[0].mean() + 0.7 * sum(divergences)
    assert loss_of(method, model) == pytest.approx(wanted, rel=1e-3)


def test_a_draw_of_vicrl_has_the_distribution_of_its_belief():
    model = opinionated(VICRL(hidden=HIDDEN))
    same = Steps(*(jnp.repeat(field[:1], 4000, axis=0) for field in EXPERTS))
    draws = np.exp(np.asarray(model.log_sample(same, key=KEY), np.float64))
    alpha, beta = np.logaddexp(0, logits(model, same)[0]) + 1e-3
    assert stats.kstest(draws, stats.beta(alpha, beta).cdf).pvalue > 1e-3


CA = {
    "width": 8,
    "heads": 2,
    "layers": 1,
    "tokens": 3,
    "voters": 4,
    "compared": 4,
    "encoder": "bidaf",
}


@pytest.fixture(scope="module")
def voters():
    sample = steps(12)
    return Voters(
        steps=jax.tree.map(lambda field: field.reshape(4, 3, *field.shape[1:]), sample),
        expert=jnp.arange(4, dtype=jnp.int32),
        step=jnp.tile(jnp.arange(3, dtype=jnp.int32), (4, 1)),
        number=jnp.asarray(20.0),
    )


def voting(method, voters):
    """A model whose experts have opinions, and what it remembers of them."""
    model = method.new_model(INPUTS, 20, key=KEY)
    parts = [6 * model.head.weights, jnp.array([-0.5, -1.0])]
    model = eqx.tree_at(lambda tree: [tree.head.weights, tree.head.bias], model, parts)
    return model, Memory(voters, voters.experts_by(model), None)


def beliefs(model, memory):
    return [
        np.asarray(model.belief(sample, memory.experts), np.float64) for sample in (EXPERTS, POLICY)
    ]


def test_evidence_is_the_expected_log_feasibility_and_a_share_of_the_divergence(voters):
    method = CAICRL(**CA, objective="evidence", votes="independent", prior=2.0)
    model, memory = voting(method, voters)
    values, divergences = [], []
    for alpha, beta in beliefs(model, memory):
        assert alpha.std() > 0.01
        values.append(special.digamma(alpha) - special.digamma(alpha + beta))
        divergences += [
            -special.betaln(alpha, beta)
            + (alpha - 1) * special.digamma(alpha)
            + (beta - 1) * special.digamma(beta)
            - (alpha + beta - 2) * special.digamma(alpha + beta)
        ]
    likelihood = (np.asarray(WEIGHTS) * values[1]).mean() - values[0].mean()
    wanted = likelihood + 2.0 / 20 * np.mean(divergences)
    found = loss_of(method, model, memory, WEIGHTS)
    assert found == pytest.approx(wanted, rel=1e-3, abs=1e-4)
    assert loss_of(method, model, memory, WEIGHTS, confidence=0.3) == found
    np.testing.assert_allclose(
        method.log_feasibility(model, memory, POLICY, 0.8), values[1], rtol=1e-3
    )


def test_the_papers_objective_is_the_log_of_the_quantile(voters):
    method = CAICRL(**CA, objective="quantile", votes="independent")
    model, memory = voting(method, voters)
    for confidence in (0.3, 0.9):
        mine, theirs = (
            np.log(stats.beta.ppf(1 - confidence, *belief) + SMALLEST)
            for belief in beliefs(model, memory)
        )
        wanted = (np.asarray(WEIGHTS) * theirs).mean() - mine.mean()
        found = loss_of(method, model, memory, WEIGHTS, confidence)
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def test_votes_are_counted_for_all_experts_and_not_only_for_those_that_vote(voters):
    method = CAICRL(**CA, objective="evidence", votes="independent")
    model, memory = voting(method, voters)
    agree, disagree = model.votes(EXPERTS, memory.experts)
    alpha, beta = beliefs(model, memory)[0]
    np.testing.assert_allclose(alpha, 1 + 20 / 4 * np.asarray(agree).sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(beta, 1 + 20 / 4 * np.asarray(disagree).sum(axis=1), rtol=1e-4)


def rollout_of(rewards, ended):
    length, worlds = rewards.shape
    sample = steps(length * worlds)
    seen, done = (np.reshape(field, (length, worlds, -1)) for field in sample[:2])
    zeros = np.zeros((length, worlds, 0), np.float32)
    return Rollout(seen, seen, done, rewards, zeros, ended, np.zeros_like(ended))


def test_gacl_learns_from_the_reward_in_its_own_scale_and_the_discriminators_praise():
    method = GACL(hidden=HIDDEN, weight=1.5)
    model = opinionated(method)
    memory = method.new_memory(model, None, 2, key=KEY)
    rewards = RANDOM.normal(3, 2, (6, 2)).astype(np.float32)
    ended = np.zeros((6, 2), bool)
    ended[3, 0] = True
    rollout = rollout_of(rewards, ended)
    sums, returns = np.zeros(2), []
    for now, end in zip(rewards, ended, strict=True):
        sums = DISCOUNT * sums + now
        returns.append(sums)
        sums = np.where(end, 0, sums)
    sample = Steps(
        *(np.reshape(f, (12, -1)) for f in (rollout.observations, rollout.actions)), None
    )
    praise = np.log(special.expit(logits(model, sample)[:, 0]) + FLOOR).reshape(6, 2)
    wanted = rewards / np.std(returns) + 1.5 * (praise - praise.mean())
    shaped, after = shaped_rewards(model, memory, rollout, 1.5)
    np.testing.assert_allclose(shaped, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(after.sums[:, 0], sums, rtol=1e-5)
    judged = method.judge(Learned(model, None, memory), rollout, Moment(0.8, False))
    np.testing.assert_array_equal(judged.rewards, shaped)
    assert judged.costs.shape == (6, 2, 0)
    assert float(judged.learned.memory.moments.seen) == 12


def test_the_discriminator_of_gacl_sees_the_action():
    method = GACL(hidden=HIDDEN)
    model = opinionated(method)
    rewards, ended = np.zeros((4, 2), np.float32), np.zeros((4, 2), bool)
    rollout = rollout_of(rewards, ended)
    memory = method.new_memory(model, None, 2, key=KEY)
    praised, other = (
        np.asarray(shaped_rewards(model, memory, rollout._replace(actions=actions), 1.0)[0])
        for actions in (rollout.actions, -rollout.actions)
    )
    assert (np.abs(praised - other) > 1e-3).all()


def passes(method, model, limits=DRIFT_LIMITS, length=10.0):
    learned = Learned(model, method.optimiser.init(model), ())
    experts, policy = (
        Steps(*(jnp.stack([field] * method.passes) for field in sample))
        for sample in (EXPERTS, POLICY)
    )
    one = jnp.asarray
    return gradient_passes(
        method, learned, experts, policy, one(0.05), one(length), one(0.8), limits, key=KEY
    )


def test_gradient_passes_make_the_loss_smaller_and_leave_the_inputs_alone():
    method = BC2L(hidden=HIDDEN, passes=30)
    model = opinionated(method)
    after, _, facts = passes(method, model)
    assert loss_of(method, after) < facts["constraint_loss"] < loss_of(method, model)
    assert facts["constraint_passes"] == 30
    for before, now in zip(
        jax.tree.leaves(model.inputs), jax.tree.leaves(after.inputs), strict=True
    ):
        np.testing.assert_array_equal(before, now)


def test_an_update_ends_when_the_constraint_has_drifted_too_far():
    method = ICRL(hidden=HIDDEN, passes=30)
    model = opinionated(method)
    _, _, free = passes(method, model, limits=(1e9, 1e9))
    _, _, held = passes(method, model, limits=(0.1, 1e9))
    assert free["constraint_passes"] == 30
    assert 1 < held["constraint_passes"] < 30
    assert held["drift"] > 0.1
