"""The encoder of the paper: self-attention among an expert's steps; the query attends to them."""

import math
from typing import ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from tacit.argument_checks import check_count
from tacit.control.networks import Perceptron
from tacit.errors import ArgumentError
from tacit.inference.encoder.encoders import ABSENT, Encoder, attend, random_matrix

LONGEST_WAVE = 10_000.0
SMALLEST_VARIANCE = 1e-5


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

    def __call__(
        self, tokens: Float[Array, "S M d"], present: Bool[Array, "S M"]
    ) -> Float[Array, "S M d"]:
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

    def encode(
        self, features: Float[Array, "S M f"], present: Bool[Array, "S M"]
    ) -> Float[Array, "S M t"]:
        """Keys [S, M, d] and values [S, M, heads d], side by side."""
        tokens = features @ self.entrance
        tokens = tokens + places(tokens.shape[1], tokens.shape[2])
        for layer in self.layers:
            tokens = layer(tokens, present)
        tokens = normalise(tokens)
        return jnp.concatenate([tokens @ self.keys, tokens @ self.values], axis=-1)

    def compare(
        self,
        queries: Float[Array, "B d"],
        tokens: Float[Array, "S M t"],
        present: Bool[Array, "S M"],
    ) -> tuple[Float[Array, "S d B"], Float[Array, "S M B"]]:
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
