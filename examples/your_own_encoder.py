"""An encoder of your own for `ca-icrl`: a step looks for the expert's step that is nearest."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import tacit
from tacit.control.networks import Perceptron


class NearestStep(tacit.Encoder):
    """Attention by distance; B queries, S experts of M steps, d numbers for each."""

    question: Perceptron
    answer: Perceptron

    name: ClassVar[str] = "nearest-step"

    @classmethod
    def start(cls, features, width, *, heads, layers, key):
        """Random weights: a network for the query, and one for the experts' steps."""
        sizes = [features, 2 * width, width]
        return cls(*(Perceptron(sizes, 1.0, key=one) for one in jax.random.split(key)))

    def encode(self, features, present):
        """What is kept of the experts' steps, [S, M, d]: computed once for each update."""
        return self.answer(features)

    def compare(self, queries, tokens, present):
        """Findings [S, d, B] about each query and expert, and attention [S, M, B] to the steps."""
        differences = tokens[:, :, :, None] - queries.T[None, None]
        scores = jnp.where(present[..., None], -(differences**2).sum(axis=2), -1e9)
        attention = jax.nn.softmax(scores, axis=1)
        nearest = jnp.einsum("smdb,smb->sdb", differences, attention)
        return nearest + jax.nn.logsumexp(scores, axis=1)[:, None], attention


task = tacit.make("BlockedPoint")
expert = tacit.Expert(task, lambda seen: np.clip(10 * (np.array([-0.9, 0.5]) - seen), -1, 1))
demonstrations = tacit.collect(expert, 10, seed=1)
method = tacit.methods.CAICRL(encoder=NearestStep, width=8, tokens=8, passes=2)
forward = tacit.PPO(steps=3200, worlds=16, rollout=50, minibatch=200)  # a taste
result = tacit.infer(task, demonstrations, method=method, confidence=0.8, forward=forward)

states = np.array([[-0.85, 0.5], [-1.5, 0.5]])  # where experts wait, and beyond the limit
evidence = result.constraint.evidence(states, np.zeros((2, 2)), most=1)
print("votes for and against:", evidence.votes_for.round(2), evidence.votes_against.round(2))
expert, step = np.asarray(evidence.expert), np.asarray(evidence.step)
print("the loudest expert for each:", expert[:, 0], "by its step", step[:, 0])
