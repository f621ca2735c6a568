"""Encoders compare a query with each expert: late interaction.

Experts are encoded once, and queries are compared with what was kept of them.

The costly part, the encoding of S experts of M steps each, is done once per update of the weights.
A query is embedded by a small network and compared with the kept tokens, at a cost of B S M d for B
queries, where comparing every query with every expert from scratch would cost B S M d^2 per layer.

Whatever is per query *and* expert has the queries as its last axis: sums over steps and experts
then run along contiguous rows, which makes the comparison two to three times as fast on a CPU.
"""

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from tacit.argument_checks import check_choice, check_count, enter
from tacit.control.networks import Perceptron
from tacit.errors import ArgumentError

Queries: TypeAlias = Float[Array, "B d"]
Features: TypeAlias = Float[Array, "S M f"]
Tokens: TypeAlias = Float[Array, "S M t"]
Present: TypeAlias = Bool[Array, "S M"]
Findings: TypeAlias = Float[Array, "S d B"]
Attention: TypeAlias = Float[Array, "S M B"]
"""B queries of width d; M steps of each of S experts, and what is kept of them."""

ENCODERS: "dict[str, type[Encoder]]" = {}
"""Every encoder by its name; a subclass with a `name` is entered when it is defined."""

# Finite, so that a row of nothing but padding gives numbers without meaning instead of NaN.
ABSENT = -1e9


class Encoder(eqx.Module):
    """What every encoder offers; d is its width, and t is the width of what it keeps of a step.

    A subclass sets `name`, under which `CAICRL(encoder=name)` finds it, and defines `encode` and
    `compare`, and `start` unless it is made from the numbers of features and width alone.
    """

    question: eqx.AbstractVar[Perceptron]

    name: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        enter(ENCODERS, cls, "encoder")

    @classmethod
    def start(
        cls, features: int, width: int, *, heads: int, layers: int, key: Key[Array, ""]
    ) -> Self:
        """An encoder with random weights; only the transformer has heads and layers."""
        del heads, layers
        return cls(features, width, key=key)  # pyright: ignore[reportCallIssue]

    def ask(self, features: Float[Array, "*n f"]) -> Float[Array, "*n d"]:
        """Embed the query steps."""
        return self.question(features)

    @abstractmethod
    def encode(self, features: Features, present: Present) -> Tokens:
        """What is kept of the experts' steps."""

    @abstractmethod
    def compare(
        self, queries: Queries, tokens: Tokens, present: Present
    ) -> tuple[Findings, Attention]:
        """Findings about each query and expert, and the attention to each of the expert's steps.

        Attention sums to 1 over the steps that are present. Of an expert without any, neither
        findings nor attention mean anything.
        """


def attend(scores: Attention, present: Present) -> tuple[Attention, Float[Array, "S B"]]:
    """Attention over the M steps of each expert, and how close the query is to them.

        attention_m = exp(score_m) / sum_k exp(score_k),
        closeness = log( mean_k exp(score_k) )

    The sum and the mean are over the steps present. Attention only ranks the steps of one expert;
    closeness also says whether any of them is worth attending to.
    """
    scores = scores + jnp.where(present, 0.0, ABSENT)[..., None]
    highest = jax.lax.stop_gradient(scores.max(axis=1, keepdims=True))
    powers = jnp.exp(scores - highest)
    total = powers.sum(axis=1, keepdims=True)
    number = jnp.maximum(present.sum(axis=1, keepdims=True), 1)
    return powers / total, (highest + jnp.log(total))[:, 0] - jnp.log(number)


def random_matrix(
    above: int, below: int, gain: float = 1.0, *, key: Key[Array, ""]
) -> Float[Array, "above below"]:
    """Normal entries of variance gain^2 / above, which keep the size of what they multiply."""
    return jax.random.normal(key, (above, below)) * (gain / math.sqrt(above))


def make_encoder(
    kind: str, features: int, width: int, heads: int, layers: int, *, key: Key[Array, ""]
) -> Encoder:
    """The encoder called `kind` with random weights."""
    check_choice("encoder", kind, tuple(ENCODERS))
    for name, value in (("features", features), ("width", width), ("heads", heads)):
        check_count(name, value)
    return ENCODERS[kind].start(features, width, heads=heads, layers=layers, key=key)


LONGEST_WAVE = 10_000.0
SMALLEST_VARIANCE = 1e-5
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

    name: ClassVar[str] = "bidaf"

    def __init__(self, features: int, width: int, *, key: Key[Array, ""]) -> None:
        keys = jax.random.split(key, 5)
        self.question = Perceptron([features, 2 * width, width], 1.0, key=keys[0])
        self.answer = Perceptron([features, 2 * width, width], 1.0, key=keys[1])
        self.from_query, self.from_token = random_matrix(1, 2 * width, key=keys[2]).reshape(2, -1)
        self.from_product = jnp.ones(width)
        self.output = random_matrix(3 * width, width, key=keys[3])
        self.from_closeness = random_matrix(1, width, key=keys[4])[0]

    def encode(self, features: Features, present: Present) -> Tokens:
        """A token per step, whatever the other steps are."""
        return self.answer(features)

    def compare(
        self, queries: Queries, tokens: Tokens, present: Present
    ) -> tuple[Findings, Attention]:
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

    name: ClassVar[str] = "attention"

    def __init__(self, features: int, width: int, *, key: Key[Array, ""]) -> None:
        keys = jax.random.split(key, 5)
        units = ADDITIVE_UNITS
        self.question = Perceptron([features, 2 * width, width], 1.0, key=keys[0])
        self.answer = Perceptron([features, 2 * width, units + width], 1.0, key=keys[1])
        self.to_units = random_matrix(width, units, key=keys[2])
        self.from_units = random_matrix(1, units, key=keys[3])[0]
        self.from_closeness = random_matrix(1, width, key=keys[4])[0]

    def encode(self, features: Features, present: Present) -> Tokens:
        """Units [S, M, 8] and values [S, M, d] of each step, side by side."""
        return self.answer(features)

    def compare(
        self, queries: Queries, tokens: Tokens, present: Present
    ) -> tuple[Findings, Attention]:
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


def places(number: int, width: int) -> Float[Array, "M d"]:
    """Sine and cosine of m / 10000^(2 i / d), for the m-th step; d may be odd."""
    halves = -(-width // 2)
    frequencies = LONGEST_WAVE ** (-jnp.arange(halves) / halves)
    angles = jnp.arange(number)[:, None] * frequencies
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)[:, :width]


def normalise(values: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """Mean 0 and variance 1 over the last axis; what follows is linear and brings the scale."""
    centred = values - values.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + SMALLEST_VARIANCE)


class SelfAttention(eqx.Module):
    """One layer, normalised before each part: x + attention(x), then x + feed_forward(x)."""

    projection: Float[Array, "d three_d"]
    output: Float[Array, "d d"]
    feed_forward: Perceptron
    heads: int = eqx.field(static=True)

    def __init__(self, width: int, heads: int, gain: float, *, key: Key[Array, ""]) -> None:
        keys = jax.random.split(key, 3)
        self.projection = random_matrix(width, 3 * width, key=keys[0])
        self.output = random_matrix(width, width, gain, key=keys[1])
        self.feed_forward = Perceptron([width, 2 * width, width], gain, key=keys[2])
        self.heads = heads

    def __call__(self, tokens: Float[Array, "S M d"], present: Present) -> Float[Array, "S M d"]:
        """The tokens after they have looked at one another."""
        split = (normalise(tokens) @ self.projection).reshape(
            *tokens.shape[:2], 3, self.heads, tokens.shape[2] // self.heads
        )
        queries, keys, values = split[:, :, 0], split[:, :, 1], split[:, :, 2]
        scores = jnp.einsum("smhk,snhk->shmn", queries, keys) / math.sqrt(queries.shape[-1])
        scores = jnp.where(present[:, None, None, :], scores, ABSENT)
        seen = jnp.einsum("shmn,snhk->smhk", jax.nn.softmax(scores, axis=-1), values)
        tokens = tokens + seen.reshape(tokens.shape) @ self.output
        return tokens + self.feed_forward(normalise(tokens))


class TransformerEncoder(Encoder):
    """Self-attention over the M tokens of one expert; then the query attends to them, by heads.

    What is kept of a step are its key and, for every head, its value, already projected to the
    findings: nothing that depends on the weights and the expert alone is computed per query.

        findings = sum over heads h and steps m of attention_hm value_hm + sum_h closeness_h row_h
    """

    question: Perceptron
    entrance: Float[Array, "f d"]
    layers: list[SelfAttention]
    keys: Float[Array, "d d"]
    values: Float[Array, "d heads_d"]
    from_closeness: Float[Array, "heads d"]
    heads: int = eqx.field(static=True)

    name: ClassVar[str] = "transformer"

    def __init__(
        self, features: int, width: int, heads: int, layers: int, *, key: Key[Array, ""]
    ) -> None:
        keys = jax.random.split(key, 5 + layers)
        self.question = Perceptron([features, 2 * width, width], 1.0, key=keys[0])
        self.entrance = random_matrix(features, width, key=keys[1])
        self.keys = random_matrix(width, width, key=keys[2])
        self.values = random_matrix(width, heads * width, key=keys[3])
        self.from_closeness = random_matrix(heads, width, key=keys[4])
        gain = 1 / math.sqrt(2 * max(layers, 1))
        self.layers = [SelfAttention(width, heads, gain, key=each) for each in keys[5:]]
        self.heads = heads

    @classmethod
    def start(
        cls, features: int, width: int, *, heads: int, layers: int, key: Key[Array, ""]
    ) -> Self:
        """An encoder with random weights."""
        check_count("layers", layers)
        if width % heads:
            raise ArgumentError(
                f"width must be a multiple of the number of heads, but {width} is not one of "
                f"{heads}"
            )
        return cls(features, width, heads, layers, key=key)

    def encode(self, features: Features, present: Present) -> Tokens:
        """Keys [S, M, d] and values [S, M, heads d], side by side."""
        tokens = features @ self.entrance
        tokens = tokens + places(tokens.shape[1], tokens.shape[2])
        for layer in self.layers:
            tokens = layer(tokens, present)
        tokens = normalise(tokens)
        return jnp.concatenate([tokens @ self.keys, tokens @ self.values], axis=-1)

    def compare(
        self, queries: Queries, tokens: Tokens, present: Present
    ) -> tuple[Findings, Attention]:
        """Attention of the query to the tokens, scaled by the square root of a head's width."""
        width = queries.shape[-1]
        part = width // self.heads
        findings, weights = jnp.zeros(()), jnp.zeros(())
        # One head after the other: as one more axis of the arrays they cost a transposition.
        for head in range(self.heads):
            mine = slice(head * part, (head + 1) * part)
            asked = queries[:, mine] / math.sqrt(part)
            scores = jnp.einsum("smk,bk->smb", tokens[..., mine], asked)
            attention, closeness = attend(scores, present)
            values = tokens[..., (head + 1) * width : (head + 2) * width]
            seen = jnp.einsum("smd,smb->sdb", values, attention)
            near = closeness[:, None] * self.from_closeness[head][:, None]
            findings = findings + seen + near
            weights = weights + attention / self.heads
        return findings, weights
