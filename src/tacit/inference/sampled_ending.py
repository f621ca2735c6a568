"""What CA-ICRL that samples on a table ends with: a policy at a confidence, from those it has met.

    at prices from low to high
        policies <- a splice of all policies so far: in each state what the best of them does, or
                    does when it is surer of it
    the best mixture of all policies within the budget                               (equation 4)

Nothing is trained any more. Where the budget leaves no room, each of the policies that were met is
too dear, as it is wrong in places where it hardly ever comes; a splice of them is not.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tacit.control.conduct import watch_policies
from tacit.control.policy_mixture import mixed_policy, pairs_of, soft_mixture, spent_by
from tacit.control.policy_splice import outlooks, spliced, surer
from tacit.inference.confidence.belief import forward_budget, step_cost
from tacit.inference.sampled_ca_icrl import SampledRounds

PRICES = tuple(10 ** (2 + number / 8) for number in range(21))
"""From 100 to 31,623, that of a splice each."""


class Ending(NamedTuple):
    """A mixture of k policies, within the budget.

    Fields:
        policy: one policy that does what the mixture does.
        weights: how often each is drawn.
        spent: what each costs.
        prices: what cost was worth to each.
    """

    policy: Float[np.ndarray, "H S A"]
    weights: Float[np.ndarray, " k"]
    spent: Float[np.ndarray, " k"]
    prices: Float[np.ndarray, " k"]


def endings(rounds: SampledRounds, runs: list[int], confidences: list[float]) -> list[Ending]:
    """Of finished rounds what a run ends with at a confidence.

    Arguments:
        rounds: of all runs.
        runs: their places; one for each ending, and each as often as one likes.
        confidences: likewise.
    """
    task, temperature = rounds.task, float(rounds.task.temperature)
    costs = costs_of(rounds, runs, confidences)
    policies, presence = rounds.policies[:, runs], rounds.presence[:, runs]
    prices = rounds.prices[:, runs]
    made = splices(rounds, policies, costs)
    flat = jnp.asarray(made.reshape(-1, *made.shape[2:]))
    conduct = watch_policies(rounds.compiled, flat, jnp.tile(costs, (len(PRICES), 1)), temperature)
    policies = np.concatenate([policies, made])
    presence = np.concatenate([presence, np.asarray(conduct.presence).reshape(made.shape[:-1])])
    prices = np.concatenate([prices, np.tile(np.asarray(PRICES)[:, None], len(runs))])
    found = []
    for place, confidence in enumerate(confidences):
        pairs = pairs_of(policies[:, place], presence[:, place])
        spent = spent_by(pairs, np.asarray(costs[place], float))
        budget = float(forward_budget(task.budget, confidence))
        weights, _ = soft_mixture(pairs, task.rewards, temperature, spent, budget)
        policy = mixed_policy(policies[:, place], presence[:, place], weights)
        found.append(Ending(policy, weights, spent, prices[:, place]))
    return found


def costs_of(
    rounds: SampledRounds, runs: list[int], confidences: list[float]
) -> Float[Array, "n X"]:
    """What every query costs in each of the runs at its confidence."""

    def cost(alpha: Array, beta: Array, confidence: Array) -> Array:
        return step_cost(alpha, beta, confidence, "graded", rounds.task.budget)

    alpha, beta = (votes[jnp.asarray(runs)] for votes in rounds.belief())
    return jax.vmap(cost)(alpha, beta, jnp.asarray(confidences, jnp.float32))


def splices(
    rounds: SampledRounds, policies: Float[np.ndarray, "k n H S A"], costs: Float[Array, "n X"]
) -> Float[np.ndarray, "p n H S A"]:
    """At each of the prices a splice of the k policies, in each of n runs."""
    temperature = float(rounds.task.temperature)
    policies = np.concatenate([policies, surer(policies)])
    seen = [outlooks(rounds.compiled, jnp.asarray(each), costs, temperature) for each in policies]
    gain, cost = (np.stack(parts) for parts in zip(*seen, strict=True))
    return np.stack(
        [
            [
                spliced(policies[:, run], gain[:, run] - price * cost[:, run])
                for run in range(len(costs))
            ]
            for price in PRICES
        ]
    )


def facts(rounds: SampledRounds, ending: Ending) -> dict[str, float]:
    """What is told of a run at the end."""
    return {
        "policies": float(len(ending.weights)),
        "learned_cost": float(ending.weights @ ending.spent),
        "multiplier": float(ending.weights @ ending.prices),
        "steps": float(rounds.steps),
        "minutes": rounds.seconds / 60,
    }
