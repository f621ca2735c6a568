import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.inference.encoder.encoders import ENCODERS, attend, make_encoder, places

FEATURES, WIDTH, EXPERTS, STEPS, QUERIES = 5, 8, 4, 6, 3
every_encoder = pytest.mark.parametrize("kind", ENCODERS)


@functools.lru_cache
def encoder_of(kind, features=FEATURES):
    return make_encoder(kind, features, WIDTH, 2, 1, key=jax.random.key(1))


@eqx.filter_jit
def compared(encoder, queries, features, present):
    tokens = encoder.encode(features, present)
    return encoder.compare(encoder.ask(queries), tokens, present)


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(0)
    queries = generator.normal(size=(QUERIES, FEATURES)).astype(np.float32)
    features = generator.normal(size=(EXPERTS, STEPS, FEATURES)).astype(np.float32)
    present = np.arange(STEPS) < np.array([6, 3, 1, 4])[:, None]
    return queries, features, present


@every_encoder
def test_attention_is_a_distribution_over_the_steps_present(kind, batch):
    queries, features, present = batch
    findings, weights = compared(encoder_of(kind), queries, features, present)
    assert findings.shape == (EXPERTS, WIDTH, QUERIES)
    assert weights.shape == (EXPERTS, STEPS, QUERIES)
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-6)
    assert np.all(np.asarray(weights)[~present] == 0)
    assert np.all(np.asarray(weights)[present] > 0)


@every_encoder
def test_padding_changes_nothing(kind, batch):
    queries, features, present = batch
    encoder = encoder_of(kind)
    before = compared(encoder, queries, features, present)
    changed = np.where(present[..., None], features, 1e3)
    for old, new in zip(before, compared(encoder, queries, changed, present), strict=True):
        assert np.array_equal(old, new)
    longer = np.pad(features, ((0, 0), (0, 2), (0, 0)), constant_values=7.0)
    more = np.pad(present, ((0, 0), (0, 2)))
    findings, weights = compared(encoder, queries, longer, more)
    assert np.allclose(before[0], findings, atol=1e-5)
    assert np.allclose(before[1], weights[:, :STEPS], atol=1e-6)


@every_encoder
def test_a_query_does_not_depend_on_other_queries_nor_an_expert_on_other_experts(kind, batch):
    queries, features, present = batch
    encoder = encoder_of(kind)
    findings, _ = compared(encoder, queries, features, present)
    others = queries.copy()
    others[1:] = 9.0
    strangers = features.copy()
    strangers[2:] = -3.0
    again, _ = compared(encoder, others, strangers, present)
    assert np.allclose(findings[:2, :, 0], again[:2, :, 0], atol=1e-5)
    assert not np.allclose(findings[:2, :, 1], again[:2, :, 1], atol=1e-2)
    assert not np.allclose(findings[2:, :, 0], again[2:, :, 0], atol=1e-2)


@every_encoder
def test_all_weights_are_trained_and_experts_without_steps_do_no_harm(kind, batch):
    queries, features, present = batch

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(encoder, present):
        findings, _ = compared(encoder, queries, features, present)
        return jnp.sum(jnp.tanh(findings) * present.any(axis=1)[:, None, None])

    leaves = jax.tree.leaves(gradient(encoder_of(kind), present))
    assert leaves
    for leaf in leaves:
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() > 0
    one_expert = present & (np.arange(EXPERTS) == 0)[:, None]
    for leaf in jax.tree.leaves(gradient(encoder_of(kind), one_expert)):
        assert np.isfinite(leaf).all()


@every_encoder
def test_one_feature_will_do(kind):
    features = 1
    encoder = encoder_of(kind, features)
    steps = jnp.ones((2, 3, features))
    findings, _ = compared(encoder, jnp.ones((1, features)), steps, jnp.ones((2, 3), bool))
    assert np.isfinite(findings).all()


def test_the_transformer_knows_the_order_of_steps_and_the_others_do_not(batch):
    queries, features, _ = batch
    present = np.ones((EXPERTS, STEPS), bool)
    for kind in ENCODERS:
        encoder = encoder_of(kind)
        findings, _ = compared(encoder, queries, features, present)
        reverse, _ = compared(encoder, queries, features[:, ::-1], present)
        assert np.allclose(findings, reverse, atol=1e-4) == (kind != "transformer")


def test_attend_is_softmax_and_mean_of_exponentials():
    scores = np.random.default_rng(1).normal(size=(2, 5, 4)).astype(np.float32) * 5
    present = np.array([[True] * 5, [True, True, False, False, False]])
    attention, closeness = attend(jnp.asarray(scores), jnp.asarray(present))
    powers = np.exp(scores[1, :2])
    assert np.allclose(attention[1, :2], powers / powers.sum(axis=0), atol=1e-6)
    assert np.allclose(closeness[1], np.log(powers.mean(axis=0)), atol=1e-5)
    assert np.allclose(closeness[0], np.log(np.exp(scores[0]).mean(axis=0)), atol=1e-5)


def test_places_differ_and_may_be_odd():
    waves = np.asarray(places(16, 7))
    assert waves.shape == (16, 7)
    distances = np.linalg.norm(waves[:, None] - waves, axis=-1)
    assert distances[~np.eye(16, dtype=bool)].min() > 0.3


def test_impossible_encoders_are_refused():
    key = jax.random.key(0)
    with pytest.raises(ArgumentError, match="'transformer' or 'bidaf' or 'attention', not 'lstm'"):
        make_encoder("lstm", 3, 8, 2, 2, key=key)
    with pytest.raises(ArgumentError, match="multiple of the number of heads, but 9"):
        make_encoder("transformer", 3, 9, 2, 2, key=key)
    with pytest.raises(ArgumentError, match="layers must be a whole number of at least 1"):
        make_encoder("transformer", 3, 8, 2, 0, key=key)
    alone = make_encoder("bidaf", FEATURES, WIDTH, 3, 0, key=key)
    assert alone.ask(jnp.ones((4, FEATURES))).shape == (4, WIDTH)
