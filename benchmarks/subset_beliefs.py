"""How far the belief of a random subset of the experts is from that of all of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tacit.inference.confidence.quantile import beta_quantile
from tacit.inference.encoder.method import CAICRL
from tacit.inference.encoder.model import ConfidenceModel
from tacit.inference.encoder.voters import Voters, choose_steps, gather_steps
from tacit.inference.encoder.votes import PolicyMemory
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Steps
from tacit.inference.method import Learned, Round

QUERIES = 256
# All experts vote, with other steps each time, until this many votes are cast: so many that what
# subsets are compared with hardly depends on which steps were drawn.
VOTES_OF_ALL = 20_000
# The model is compared as it is, and with experts that disagree more than it has learned so far.
SHARPER = 10.0
MODELS = ("a model trained a little", f"{SHARPER:g} times as sharp")


class Difference(NamedTuple):
    """What subsets say against what all say, about one number of the belief.

    Fields:
        what: which number.
        whole: of all experts, the mean over the queries.
        bias: mean difference; of votes as a share of `whole`.
        error: the standard error of the bias, as a share too.
        spread: standard deviation over subsets, the mean over the queries, as a share too.
    """

    what: str
    whole: float
    bias: float
    error: float
    spread: float

    def cells(self) -> tuple[str, ...]:
        """The fields to read; shares as percentages."""
        form = ".5f" if self.what == "phi*" else ".3%"
        bias, error = f"{self.bias:+{form}}", f"{self.error:{form}}"
        return self.what, f"{self.whole:.4g}", bias, error, f"{self.spread:{form}}"


@eqx.filter_jit
def votes_of(
    model: ConfidenceModel, queries: Steps, voters: Voters, policies: PolicyMemory | None
) -> tuple[jax.Array, jax.Array]:
    """The votes for and against that these voters cast, in the name of `voters.number`."""
    alpha, beta = model.belief_in_chunks(queries, voters.experts_by(model), policies)
    return alpha[:, -1] - 1, beta[:, -1] - 1


def compare_beliefs(
    method: CAICRL, learned: Learned, given: Round, subsets: int
) -> dict[str, list[Difference]]:
    """Differences of the model as it is, and of one with sharper votes."""
    mine, theirs = method.batches(given)
    queries = jax.tree.map(
        lambda *pair: jnp.concatenate([field[0, : QUERIES // 2] for field in pair]), mine, theirs
    )
    if method.granularity == "step":
        queries = jax.tree.map(lambda field: field[:, None], queries)
    sharper = eqx.tree_at(
        lambda model: model.head.weights, learned.model, learned.model.head.weights * SHARPER
    )

    def differences(model: ConfidenceModel) -> list[Difference]:
        # As they remember past policies now, not as an update would see them next.
        policies = learned.memory.voters.policies_by(model)

        def ask(voters: Voters) -> np.ndarray:
            return np.stack(votes_of(model, queries, voters, policies)).astype(np.float64)

        return difference(method, given, subsets, ask)

    models = zip(MODELS, (learned.model, sharper), strict=True)
    return {name: differences(model) for name, model in models}


def difference(
    method: CAICRL, given: Round, subsets: int, ask: Callable[[Voters], np.ndarray]
) -> list[Difference]:
    """Of alpha - 1, beta - 1 and the feasibility at the confidence."""
    drawn = (
        Voters.draw(given.experts, method.voters, method.tokens, given.generator)
        for _ in range(subsets)
    )
    parts = np.stack([ask(voters) for voters in drawn])
    times = min(subsets, max(1, VOTES_OF_ALL // len(given.experts)))
    whole = votes_of_all(method, given.experts, given.generator, times, ask)
    found = [
        summary(name, parts[:, place], whole[place], scale=whole[place].mean())
        for place, name in enumerate(("alpha - 1", "beta - 1"))
    ]
    some, full = (
        np.asarray(beta_quantile(1 - given.confidence, 1 + votes[..., 0, :], 1 + votes[..., 1, :]))
        for votes in (parts, whole)
    )
    return [*found, summary("phi*", some, full, scale=1.0)]


def summary(what: str, parts: np.ndarray, whole: np.ndarray, scale: float) -> Difference:
    """Subsets [K, queries] against all [queries]; a subset's queries err together."""
    each = (parts - whole).mean(axis=1) / scale
    return Difference(
        what=what,
        whole=float(whole.mean()),
        bias=float(each.mean()),
        error=float(each.std(ddof=1) / len(each) ** 0.5),
        spread=float(parts.std(axis=0, ddof=1).mean() / scale),
    )


def votes_of_all(
    method: CAICRL,
    experts: ExpertSteps,
    generator: np.random.Generator,
    times: int,
    ask: Callable[[Voters], np.ndarray],
) -> np.ndarray:
    """The votes [2, queries] of all experts, with memory for a subset of them.

    It is the mean over `times` draws of their steps.
    """
    number = len(experts)
    total: Any = 0.0
    for _ in range(times):
        for begin in range(0, number, method.voters):
            expert = np.arange(begin, min(begin + method.voters, number))
            step, present = choose_steps(experts.lengths, expert, method.tokens, generator)
            steps = gather_steps(experts.observations, experts.actions, expert, step, present)
            places = jnp.asarray(expert, jnp.int32), jnp.asarray(step)
            total += ask(Voters(steps, *places, number=jnp.float32(len(expert))))
    return total / times
