"""Encoders that compare a query with each expert; they differ in how they do it."""

import math
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from tacit.argument_checks import check_choice, check_count
from tacit.control.networks import Perceptron
from tacit.errors import ArgumentError
from tacit.inference.encoder.late_interaction import Encoder, attend, random_matrix
from tacit.inference.encoder.transformer import TransformerEncoder

EncoderKind = Literal["transformer", "bidaf", "attention"]
ENCODERS: tuple[EncoderKind, ...] = get_args(EncoderKind)
# Every unit costs one tanh per query, expert and step, which is most of the work.
ADDITIVE_UNITS = 8


class FlowEncoder(Encoder):
    """Bidirectional attention flow (Seo et al. 2016) between a query q and the steps t_m.

    Similarity s_m = (w1 . q + w2 . t_m + w3 . (q * t_m)) / sqrt(d). Attention flows both ways:

    from query to steps
        c = sum_m softmax_m(s) t_m.
    from steps to query
        A query has one step, so a softmax over its steps would be 1 whatever they are. Each token
        therefore chooses between the query and nothing, whose similarity is 0: g_m = sigmoid(s_m).
        Their mean, weighted like the steps, is g.

    findings = W [c; q * c; g q; closeness].
    """

    question: Perceptron
    answer: Perceptron
    from_query: Float[Array, " d"]
    from_token: Float[Array, " d"]
    from_product: Float[Array, " d"]
    output: Float[Array, "three_d d"]
    from_closeness: Float[Array, " d"]

    def __init__(self, features: int, width: int, *, key: Key[Array, ""]) -> None:
        keys = jax.random.split(key, 5)
        self.question = Perceptron([features, 2 * width, width], 1.0, key=keys[0])
        self.answer = Perceptron([features, 2 * width, width], 1.0, key=keys[1])
        self.from_query, self.from_token = random_matrix(1, 2 * width, key=keys[2]).reshape(2, -1)
        self.from_product = jnp.ones(width)
        self.output = random_matrix(3 * width, width, key=keys[3])
        self.from_closeness = random_matrix(1, width, key=keys[4])[0]

    def encode(
        self, features: Float[Array, "S M f"], present: Bool[Array, "S M"]
    ) -> Float[Array, "S M t"]:
        """A token per step, whatever the other steps are."""
        return self.answer(features)

    def compare(
        self,
        queries: Float[Array, "B d"],
        tokens: Float[Array, "S M t"],
        present: Bool[Array, "S M"],
    ) -> tuple[Float[Array, "S d B"], Float[Array, "S M B"]]:
        """Both flows of attention, and their products with the query."""
        scaled = queries / math.sqrt(tokens.shape[-1])
        similarity = jnp.einsum("smd,bd->smb", tokens, scaled * self.from_product)
        similarity = similarity + scaled @ self.from_query
        similarity = similarity + (tokens @ self.from_token)[..., None] / math.sqrt(
            tokens.shape[-1]
        )
        attention, closeness = attend(similarity, present)
        chosen = (attention * jax.nn.sigmoid(similarity)).sum(axis=1)
        attended = jnp.einsum("smd,smb->sdb", tokens, attention)
        alone, product, asked = jnp.split(self.output, 3)
        findings = jnp.einsum("smh,smb->shb", tokens @ alone, attention)
        findings = findings + jnp.einsum("dh,sdb->shb", product, attended * queries.T)
        findings = findings + chosen[:, None] * (queries @ asked).T
        return findings + closeness[:, None] * self.from_closeness[:, None], attention


class AttentionEncoder(Encoder):
    """Additive attention (Bahdanau et al. 2015), with few units, because all are per step.

        score_m = sum_j v_j tanh(q_j + k_mj),
        findings = sum_m softmax_m(score) value_m + closeness w

    k_m and value_m are made by a network of step m, q by a linear map of the query.
    """

    question: Perceptron
    answer: Perceptron
    to_units: Float[Array, "d units"]
    from_units: Float[Array, " units"]
    from_closeness: Float[Array, " d"]

    def __init__(self, features: int, width: int, *, key: Key[Array, ""]) -> None:
        keys = jax.random.split(key, 5)
        units = ADDITIVE_UNITS
        self.question = Perceptron([features, 2 * width, width], 1.0, key=keys[0])
        self.answer = Perceptron([features, 2 * width, units + width], 1.0, key=keys[1])
        self.to_units = random_matrix(width, units, key=keys[2])
        self.from_units = random_matrix(1, units, key=keys[3])[0]
        self.from_closeness = random_matrix(1, width, key=keys[4])[0]

    def encode(
        self, features: Float[Array, "S M f"], present: Bool[Array, "S M"]
    ) -> Float[Array, "S M t"]:
        """Units [S, M, 8] and values [S, M, d] of each step, side by side."""
        return self.answer(features)

    def compare(
        self,
        queries: Float[Array, "B d"],
        tokens: Float[Array, "S M t"],
        present: Bool[Array, "S M"],
    ) -> tuple[Float[Array, "S d B"], Float[Array, "S M B"]]:
        """Additive attention, one unit after the other: nothing of size B S M units is stored."""
        asked, units = queries @ self.to_units, self.from_units.shape[0]
        scores = sum(
            (
                self.from_units[unit] * jnp.tanh(tokens[..., unit, None] + asked[:, unit])
                for unit in range(units)
            ),
            start=jnp.zeros(()),
        )
        attention, closeness = attend(scores, present)
        findings = jnp.einsum("smd,smb->sdb", tokens[..., units:], attention)
        return findings + closeness[:, None] * self.from_closeness[:, None], attention


def make_encoder(
    kind: EncoderKind, features: int, width: int, heads: int, layers: int, *, key: Key[Array, ""]
) -> Encoder:
    """An encoder with random weights; `heads` and `layers` are those of the transformer."""
    check_choice("encoder", kind, ENCODERS)
    for name, value in (("features", features), ("width", width), ("heads", heads)):
        check_count(name, value)
    if kind == "bidaf":
        return FlowEncoder(features, width, key=key)
    if kind == "attention":
        return AttentionEncoder(features, width, key=key)
    check_count("layers", layers)
    if width % heads:
        raise ArgumentError(
            f"width must be a multiple of the number of heads, but {width} is not one of {heads}"
        )
    return TransformerEncoder(features, width, heads, layers, key=key)
