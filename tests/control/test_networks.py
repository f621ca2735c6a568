"""Policies and critics against SciPy's distributions and against themselves one by one."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacit.control.networks import (
    FIRST_ACTIONS_SCALE,
    CategoricalPolicy,
    Critics,
    GaussianPolicy,
    Perceptron,
    make_policy,
)
from tacit.errors import TaskError

OBSERVED, ACTIONS = 4, 3
KEY = jax.random.key(0)
OBSERVATIONS = jax.random.normal(jax.random.key(1), (50, OBSERVED))


def gaussian(log_std=(-1.0, 0.0, 0.5), smallest_std=0.01):
    """A policy whose means differ clearly between observations."""
    mean = Perceptron((OBSERVED, 8, ACTIONS), 1.0, key=KEY)
    return GaussianPolicy(mean, jnp.array(log_std), smallest_std)


def categorical():
    return CategoricalPolicy(Perceptron((OBSERVED, 8, ACTIONS), 1.5, key=KEY))


@pytest.mark.parametrize(("above", "below"), [(4, 8), (8, 8), (8, 3)])
@pytest.mark.parametrize("last", [True, False])
def test_weights_start_orthogonal_with_their_gain(above, below, last):
    sizes = (above, below) if last else (above, below, 3)
    gain = 0.3 if last else math.sqrt(2)
    network = Perceptron(sizes, 0.3, key=KEY)
    weight = np.asarray(network.weights[0])
    assert weight.shape == (above, below)
    product = weight @ weight.T if above <= below else weight.T @ weight
    np.testing.assert_allclose(product, gain**2 * np.eye(min(above, below)), atol=1e-5)


def test_biases_start_at_zero_and_layers_differ():
    network = Perceptron((8, 8, 8), 1.0, key=KEY)
    assert all((bias == 0).all() for bias in network.biases)
    assert not np.allclose(network.weights[0], network.weights[1])
    assert not np.allclose(network.weights[0], Perceptron((8, 8), 1.0, key=KEY).weights[0])


def test_a_perceptron_is_tanh_layers_and_a_linear_one():
    network = Perceptron((OBSERVED, 8, 8, 3), 0.7, key=KEY)
    network = jax.tree.map(lambda leaf: leaf + 0.1, network)
    (first, second, third), biases = network.weights, network.biases
    for row in np.asarray(OBSERVATIONS[:5]):
        hidden = np.tanh(np.tanh(row @ first + biases[0]) @ second + biases[1])
        np.testing.assert_allclose(network(row), hidden @ third + biases[2], rtol=1e-4, atol=1e-5)


def test_a_perceptron_takes_any_number_of_axes_in_front():
    network = Perceptron((OBSERVED, 8, 3), 0.7, key=KEY)
    flat = network(OBSERVATIONS)
    deep = network(OBSERVATIONS.reshape(5, 10, OBSERVED))
    np.testing.assert_allclose(deep.reshape(50, 3), flat, rtol=1e-5)
    np.testing.assert_allclose(network(OBSERVATIONS[7]), flat[7], rtol=1e-5)


def test_log_densities_are_those_of_scipy():
    policy = gaussian()
    actions = 2 * jax.random.normal(jax.random.key(2), (50, ACTIONS))
    means, stds = np.asarray(policy.mean(OBSERVATIONS)), np.exp([-1.0, 0.0, 0.5])
    wanted = stats.norm(means, stds).logpdf(np.asarray(actions)).sum(axis=1)
    found = policy.log_probability(OBSERVATIONS, actions)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_log_probabilities_are_those_of_the_softmax():
    policy = categorical()
    scores = np.asarray(policy.logits(OBSERVATIONS), np.float64)
    for action in range(ACTIONS):
        wanted = scores[:, action] - np.log(np.exp(scores).sum(axis=1))
        found = policy.log_probability(OBSERVATIONS, jnp.full(50, action))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_the_entropy_of_a_gaussian_is_that_of_scipy():
    wanted = stats.norm(0, np.exp([-1.0, 0.0, 0.5])).entropy().sum()
    assert float(gaussian().entropy(OBSERVATIONS)) == pytest.approx(wanted, rel=1e-5)


def test_the_entropy_of_a_choice_is_the_mean_of_scipys():
    policy = categorical()
    table = np.asarray(jax.nn.softmax(policy.logits(OBSERVATIONS)))
    wanted = stats.entropy(table, axis=1)
    assert np.ptp(wanted) > 0.01
    assert float(policy.entropy(OBSERVATIONS)) == pytest.approx(wanted.mean(), rel=1e-4)


@pytest.mark.parametrize("policy", [gaussian(), categorical()], ids=["gaussian", "categorical"])
def test_the_entropy_is_minus_the_mean_log_probability_of_drawn_actions(policy):
    draws = 4000
    noise = policy.noise((draws, 50), key=jax.random.key(3))
    observations = jnp.broadcast_to(OBSERVATIONS, (draws, 50, OBSERVED))
    surprise = -policy.log_probability(observations, policy.act(observations, noise))
    error = 5 * surprise.std() / math.sqrt(surprise.size)
    assert abs(surprise.mean() - policy.entropy(OBSERVATIONS)) < error


def test_drawn_choices_are_as_frequent_as_the_softmax_says():
    policy, draws = categorical(), 20_000
    noise = policy.noise((draws, 5), key=jax.random.key(4))
    actions = np.asarray(policy.act(OBSERVATIONS[:5], noise))
    wanted = np.asarray(jax.nn.softmax(policy.logits(OBSERVATIONS[:5])), np.float64)
    for place in range(5):
        counts = np.bincount(actions[:, place], minlength=ACTIONS)
        expected = draws * wanted[place] / wanted[place].sum()
        assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_drawn_continuous_actions_have_the_mean_and_the_spread_of_the_policy():
    policy, draws = gaussian(), 20_000
    noise = policy.noise((draws, 1), key=jax.random.key(5))
    actions = np.asarray(policy.act(OBSERVATIONS[:1], noise))[:, 0]
    mean, std = np.asarray(policy.mean(OBSERVATIONS[0])), np.exp([-1.0, 0.0, 0.5])
    for place in range(ACTIONS):
        test = stats.kstest(actions[:, place], stats.norm(mean[place], std[place]).cdf)
        assert test.pvalue > 1e-4


def test_without_noise_the_most_likely_action_is_taken():
    zero = jnp.zeros((50, ACTIONS))
    policy = gaussian()
    np.testing.assert_array_equal(policy.act(OBSERVATIONS, zero), policy.mean(OBSERVATIONS))
    policy = categorical()
    best = np.asarray(policy.logits(OBSERVATIONS)).argmax(axis=1)
    np.testing.assert_array_equal(policy.act(OBSERVATIONS, zero), best)


def test_the_standard_deviation_has_a_floor():
    policy = gaussian(log_std=(-9.0, -1.0, 0.0), smallest_std=0.1)
    noise = jnp.ones((50, ACTIONS))
    spread = policy.act(OBSERVATIONS, noise) - policy.mean(OBSERVATIONS)
    np.testing.assert_allclose(spread[0], [0.1, np.exp(-1), 1], rtol=1e-4)
    wanted = stats.norm(0, [0.1, np.exp(-1), 1]).entropy().sum()
    assert float(policy.entropy(OBSERVATIONS)) == pytest.approx(wanted, rel=1e-5)
    densities = policy.log_probability(OBSERVATIONS, policy.mean(OBSERVATIONS))
    np.testing.assert_allclose(densities, stats.norm(0, [0.1, np.exp(-1), 1]).logpdf(0).sum(), 1e-5)


def test_the_stack_of_critics_is_each_critic_alone():
    critics = Critics(OBSERVED, (8,), 3, key=KEY)
    together = critics(OBSERVATIONS)
    assert together.shape == (50, 3)
    for place in range(3):
        alone = jax.tree.map(lambda leaf, place=place: leaf[place], critics.stack)
        np.testing.assert_allclose(
            together[:, place], alone(OBSERVATIONS)[:, 0], rtol=1e-4, atol=1e-6
        )
    assert not np.allclose(together[:, 0], together[:, 1])
    deep = critics(OBSERVATIONS.reshape(5, 10, OBSERVED))
    np.testing.assert_allclose(deep.reshape(50, 3), together, rtol=1e-4, atol=1e-6)


def test_many_costs_share_a_critic_that_the_reward_does_not_touch():
    critics = Critics(OBSERVED, (8,), 1 + 20, key=KEY)
    together = critics(OBSERVATIONS)
    assert together.shape == (50, 21)
    assert critics.shared is not None
    np.testing.assert_allclose(together[:, 1:], critics.shared(OBSERVATIONS), rtol=1e-5)
    slope = jax.grad(lambda these: these(OBSERVATIONS)[:, 0].sum())(critics)
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(slope.shared))
    assert any((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(slope.stack))


def test_an_error_of_one_critic_teaches_no_other():
    critics = Critics(OBSERVED, (8,), 3, key=KEY)
    slope = jax.grad(lambda these: these(OBSERVATIONS)[:, 1].sum())(critics)
    moved = [np.abs(leaf).sum(axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(slope)]
    total = np.sum(moved, axis=0)
    assert total[1] > 0
    assert total[0] == total[2] == 0


def test_a_policy_is_made_for_the_action_space_and_starts_close_to_nothing():
    box = gymnasium.spaces.Box(-1, 1, (1, 3))
    policy = make_policy(OBSERVED, box, (8,), 0.05, key=KEY)
    assert isinstance(policy, GaussianPolicy)
    assert policy.mean(OBSERVATIONS).shape == (50, 3)
    assert jnp.abs(policy.mean(OBSERVATIONS)).max() < 10 * FIRST_ACTIONS_SCALE
    np.testing.assert_array_equal(policy.log_std, np.zeros(3))
    policy = make_policy(OBSERVED, gymnasium.spaces.Discrete(3), (8,), 0.05, key=KEY)
    assert isinstance(policy, CategoricalPolicy)
    chances = jax.nn.softmax(policy.logits(OBSERVATIONS))
    np.testing.assert_allclose(chances, 1 / 3, atol=0.02)


def test_another_key_gives_another_policy_and_the_same_key_the_same():
    box = gymnasium.spaces.Box(-1, 1, (3,))
    one, again = (make_policy(OBSERVED, box, (8,), 0.05, key=KEY) for _ in range(2))
    other = make_policy(OBSERVED, box, (8,), 0.05, key=jax.random.key(9))
    np.testing.assert_array_equal(one.mean(OBSERVATIONS), again.mean(OBSERVATIONS))
    assert not np.allclose(one.mean(OBSERVATIONS), other.mean(OBSERVATIONS))


def test_actions_of_any_other_space_are_an_error():
    with pytest.raises(TaskError, match="Box or Discrete space, not MultiBinary"):
        make_policy(OBSERVED, gymnasium.spaces.MultiBinary(3), (8,), 0.05, key=KEY)
