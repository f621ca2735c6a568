"""The belief of deep CA-ICRL: each expert votes for or against a query, and the belief counts them.

    alpha = 1 + N/S sum_i for_i,   beta = 1 + N/S sum_i against_i,

over S experts out of N; a random subset is unbiased for all. Ways to vote:

`independent`
    Two sigmoids per expert (the paper).
`abstain`
    A softmax over feasible / infeasible / no opinion: one expert casts at most one vote.
`visits`
    A sigmoid m_i(x): does the trajectory of expert i pass here? A trajectory that passes votes for
    x, the others vote against it to the degree that they were tempted:

        for_i = m_i(x),   against_i = (1 - m_i(x)) p(x),

    p(x) being the largest share of a past policy's windows that pass here, over the remembered
    rounds.

A query is a single step (granularity `step`), or the beginning of a trajectory (`trajectory`): the
query at place t is the largest of the embeddings of steps 0 to t, element by element.
"""

import functools
from collections.abc import Callable
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from tacit.argument_checks import check_choice, check_count
from tacit.errors import ArgumentError
from tacit.inference.confidence.belief import support
from tacit.inference.constraint_model import Evidence
from tacit.inference.encoder.encoders import Encoder, Present, Queries, Tokens, make_encoder
from tacit.inference.encoder.votes import (
    DEEP_VOTES,
    DeepVotes,
    ExpertMemory,
    PolicyMemory,
    VoteHead,
    cast_votes,
)
from tacit.inference.inputs import Inputs, Steps

Granularity = Literal["step", "trajectory"]
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
# Queries compared at a time: what a chunk needs should fit into the processor's cache.
CHUNK = 128
NOBODY = -1


class ConfidenceModel(eqx.Module):
    """Inputs, encoder and head; what it remembers of the experts is kept apart from it."""

    inputs: Inputs
    encoder: Encoder
    head: VoteHead
    ways: DeepVotes = eqx.field(static=True)
    granularity: Granularity = eqx.field(static=True)

    @classmethod
    def start(
        cls,
        inputs: Inputs,
        number: int,
        *,
        votes: DeepVotes = "visits",
        granularity: Granularity = "step",
        encoder: str = "transformer",
        width: int = 32,
        heads: int = 2,
        layers: int = 4,
        key: Key[Array, ""],
    ) -> "ConfidenceModel":
        """A model before learning, for `number` experts in all; see `VoteHead`."""
        check_choice("votes", votes, DEEP_VOTES)
        check_choice("granularity", granularity, GRANULARITIES)
        check_count("number", number)
        first, last = jax.random.split(key)
        return cls(
            inputs=inputs,
            encoder=make_encoder(encoder, inputs.size, width, heads, layers, key=first),
            head=VoteHead(width, votes, number, key=last),
            ways=votes,
            granularity=granularity,
        )

    def remember(
        self,
        steps: Steps,
        expert: Int[Array, " S"],
        step: Int[Array, "S M"],
        number: Array | float,
    ) -> ExpertMemory:
        """Encode the experts' chosen steps [S, M]; to be done again when the weights change."""
        return ExpertMemory(
            tokens=self._encode(steps),
            present=steps.present,
            expert=jnp.asarray(expert, jnp.int32),
            step=jnp.asarray(step, jnp.int32),
            number=jnp.asarray(number, jnp.float32),
        )

    def remember_policies(self, steps: Steps, used: Bool[Array, " R"]) -> PolicyMemory:
        """Encode windows [R, P, M] of past policies, of which the `used` rounds count."""
        rounds, windows, _ = steps.present.shape
        flat = jax.tree.map(lambda array: array.reshape(-1, *array.shape[2:]), steps)
        tokens = self._encode(flat)
        return PolicyMemory(
            tokens=tokens.reshape(rounds, windows, *tokens.shape[1:]),
            present=steps.present,
            used=jnp.asarray(used),
        )

    def ask(self, steps: Steps, begins: Bool[Array, "*n"] | None = None) -> Float[Array, "*n d"]:
        """Embed the queries; of windows [B, W], what came before within the same trajectory.

        A trajectory begins with each window, and where `begins` is true.
        """
        asked = self.encoder.ask(self.inputs(steps.observations, steps.actions))
        if self.granularity == "step":
            return asked
        return largest_so_far(asked, steps.present, begins)

    def votes(
        self, steps: Steps, memory: ExpertMemory, policies: PolicyMemory | None = None
    ) -> tuple[Float[Array, "*n S"], Float[Array, "*n S"]]:
        """Votes for and against each query, of each expert."""
        queries = self.ask(steps)
        agree, disagree = self._votes(flat(queries), memory, policies)
        shape = (*queries.shape[:-1], -1)
        return agree.T.reshape(shape), disagree.T.reshape(shape)

    def passing_logit(self, steps: Steps, memory: ExpertMemory) -> Float[Array, "*n S"]:
        """Log odds that each expert's trajectory passes here, also where an expert has no steps."""
        queries = self.ask(steps)
        logits = self._passing_logit(flat(queries), memory.tokens, memory.present)
        return logits.T.reshape(*queries.shape[:-1], -1)

    def belief(
        self,
        steps: Steps,
        memory: ExpertMemory,
        policies: PolicyMemory | None = None,
        *,
        begins: Bool[Array, "*n"] | None = None,
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Alpha and beta of each query, all at once."""
        queries = self.ask(steps, begins)
        alpha, beta = self._count(flat(queries), memory, policies)
        return alpha.reshape(queries.shape[:-1]), beta.reshape(queries.shape[:-1])

    def belief_in_chunks(
        self,
        steps: Steps,
        memory: ExpertMemory,
        policies: PolicyMemory | None = None,
        *,
        begins: Bool[Array, "*n"] | None = None,
        chunk: int = CHUNK,
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """The same for many queries, with memory for `chunk` of them, also for the gradient."""
        queries = self.ask(steps, begins)
        count = functools.partial(self._count, memory=memory, policies=policies)
        alpha, beta = in_chunks(count, flat(queries), chunk)
        return alpha.reshape(queries.shape[:-1]), beta.reshape(queries.shape[:-1])

    def evidence(
        self,
        steps: Steps,
        memory: ExpertMemory,
        policies: PolicyMemory | None = None,
        *,
        most: int = 5,
    ) -> Evidence:
        """Votes for and against each query, and the experts' steps that speak loudest for it."""
        check_count("most", most)
        most = min(most, memory.present.size)
        answers = _evidence(self, steps, memory, policies, most)
        shape = steps.present.shape
        agree, disagree, weights, place = (
            np.asarray(answer).reshape(*shape, *answer.shape[1:]) for answer in answers
        )
        row, column = np.divmod(place, memory.present.shape[1])
        known = np.asarray(memory.present)[row, column]
        return Evidence(
            votes_for=agree,
            votes_against=disagree,
            support=np.asarray(support(jnp.asarray(1.0 + agree), jnp.asarray(1.0 + disagree))),
            expert=np.where(known, np.asarray(memory.expert)[row], NOBODY),
            step=np.where(known, np.asarray(memory.step)[row, column], NOBODY),
            weight=np.where(known, weights, 0),
        )

    def _encode(self, steps: Steps) -> Tokens:
        features = self.inputs(steps.observations, steps.actions)
        return self.encoder.encode(features, steps.present)

    def _passing_logit(
        self, queries: Queries, tokens: Tokens, present: Present
    ) -> Float[Array, "S B"]:
        if self.ways != "visits":
            raise ArgumentError(f"only a model that votes by visits has this, not {self.ways!r}")
        findings, _ = self.encoder.compare(queries, tokens, present)
        return self.head(findings, queries)[:, 0]

    def _passing(self, queries: Queries, tokens: Tokens, present: Present) -> Float[Array, "S B"]:
        logits = self._passing_logit(queries, tokens, present)
        return jax.nn.sigmoid(logits) * present.any(axis=1)[:, None]

    def _temptation(self, queries: Queries, policies: PolicyMemory) -> Float[Array, " B"]:
        tokens = policies.tokens.reshape(-1, *policies.tokens.shape[2:])
        passing = self._passing(queries, tokens, flat(policies.present))
        windows = policies.present.any(axis=-1)
        shares = passing.reshape(*windows.shape, -1).sum(axis=1)
        shares = shares / jnp.maximum(windows.sum(axis=1), 1)[:, None]
        return jnp.max(jnp.where(policies.used[:, None], shares, 0.0), axis=0)

    def _votes(
        self, queries: Queries, memory: ExpertMemory, policies: PolicyMemory | None
    ) -> tuple[Float[Array, "S B"], Float[Array, "S B"]]:
        if self.ways == "visits":
            passing = self._passing(queries, memory.tokens, memory.present)
            if policies is None:
                return passing, jnp.zeros_like(passing)
            staying = (1 - passing) * memory.voters[:, None]
            return passing, staying * self._temptation(queries, policies)
        findings, _ = self.encoder.compare(queries, memory.tokens, memory.present)
        agree, disagree = cast_votes(self.head(findings, queries), self.ways)
        voters = memory.voters[:, None]
        return agree * voters, disagree * voters

    def _count(
        self, queries: Queries, memory: ExpertMemory, policies: PolicyMemory | None
    ) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
        agree, disagree = self._votes(queries, memory, policies)
        scale = memory.scale
        return 1 + scale * agree.sum(axis=0), 1 + scale * disagree.sum(axis=0)

    def _heaviest(
        self,
        queries: Queries,
        memory: ExpertMemory,
        policies: PolicyMemory | None,
        most: int,
    ) -> tuple[Array, Array, Array, Array]:
        agree, disagree = self._votes(queries, memory, policies)
        _, attention = self.encoder.compare(queries, memory.tokens, memory.present)
        total = agree.sum(axis=0)
        shares = agree / jnp.maximum(total, jnp.finfo(total.dtype).tiny)
        heard = shares[:, None] * attention
        weights, place = jax.lax.top_k(heard.reshape(-1, heard.shape[-1]).T, most)
        return memory.scale * total, memory.scale * disagree.sum(axis=0), weights, place


@eqx.filter_jit
def _evidence(
    model: ConfidenceModel,
    steps: Steps,
    memory: ExpertMemory,
    policies: PolicyMemory | None,
    most: int,
) -> tuple[Array, ...]:
    heaviest = functools.partial(model._heaviest, memory=memory, policies=policies, most=most)
    return in_chunks(heaviest, flat(model.ask(steps)), CHUNK)


def largest_so_far(
    asked: Float[Array, "B W d"], present: Bool[Array, "B W"], begins: Bool[Array, "B W"] | None
) -> Float[Array, "B W d"]:
    """The largest value of each element up to every place of a window; 0 where nothing came yet."""
    lowest = jnp.finfo(asked.dtype).min
    values = jnp.where(present[..., None], asked, lowest)
    if begins is None:
        largest = jax.lax.cummax(values, axis=1)
    else:
        afresh = jnp.broadcast_to(begins[..., None], values.shape)
        _, largest = jax.lax.associative_scan(larger, (afresh, values), axis=1)
    return jnp.where(largest > lowest, largest, 0.0)


def larger(
    before: tuple[Bool[Array, "*n"], Float[Array, "*n"]],
    after: tuple[Bool[Array, "*n"], Float[Array, "*n"]],
) -> tuple[Bool[Array, "*n"], Float[Array, "*n"]]:
    """The larger of two values, or the later one where it begins afresh."""
    largest = jnp.where(after[0], after[1], jnp.maximum(before[1], after[1]))
    return before[0] | after[0], largest


def flat(array: Shaped[Array, "*n last"]) -> Shaped[Array, "B last"]:
    """All axes but the last in one."""
    return array.reshape(-1, array.shape[-1])


def in_chunks(
    function: Callable[[Float[Array, "C d"]], tuple[Array, ...]],
    queries: Queries,
    chunk: int,
) -> tuple[Array, ...]:
    """What `function` makes of the queries, `chunk` of them at a time."""
    number, width = queries.shape
    chunk = min(chunk, max(number, 1))
    padded = jnp.pad(queries, ((0, -number % chunk), (0, 0)))
    # Without a checkpoint, the gradient would store what every chunk computed.
    parts = jax.lax.map(jax.checkpoint(function), padded.reshape(-1, chunk, width))
    return tuple(part.reshape(-1, *part.shape[2:])[:number] for part in parts)
