"""Mixtures of policies: at the start of an episode one of them is drawn, and kept to.

With entropy, equation 4 is concave in the occupancy rho of states and actions,

    J(rho) = sum rho(t, s, a) (r(s, a) - temperature * log pi_rho(a | s, t)),
    pi_rho = rho / sum_a rho,

so that a mixture of policies at hand may be better than any of them: of a dearer and a cheaper one
where none costs just what may be spent, and of those that go different ways where all are as good.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tacit.control.planning import attainable_budget

NEVER = 1e-6
"""How present a policy is where it never was."""
UNSEEN = 1e-12
TOWARDS = 100
"""How often `soft_mixture` takes a step."""


class Mixture(NamedTuple):
    """How k policies are mixed.

    Fields:
        weights: how often each is drawn; they sum to 1.
        price: what a little more budget would earn for each unit of it; 0 where there is enough.
    """

    weights: Float[np.ndarray, " k"]
    price: float


def limit_of(costs: Float[np.ndarray, " k"], budget: float) -> float:
    """The budget, raised as `attainable_budget` says where the cheapest policy is above it."""
    return max(float(attainable_budget(budget, costs.min())), costs.min())


def best_mixture(
    costs: Float[np.ndarray, " k"], returns: Float[np.ndarray, " k"], limit: float
) -> Mixture:
    """The highest return of all mixtures of k policies within a limit that the cheapest meets.

    A linear program with one inequality, so that two policies are enough: one of all pairs is best.
    """
    cheap, dear = np.meshgrid(np.arange(len(costs)), np.arange(len(costs)), indexing="ij")
    apart = np.where(costs[dear] > costs[cheap], costs[dear] - costs[cheap], 1.0)
    share = np.where(costs[dear] <= limit, 1.0, (limit - costs[cheap]) / apart)
    value = share * returns[dear] + (1 - share) * returns[cheap]
    value = np.where(costs[cheap] <= limit, value, -np.inf)
    best = np.unravel_index(value.argmax(), value.shape)
    weights = np.zeros(len(costs))
    weights[cheap[best]] += 1 - share[best]
    weights[dear[best]] += share[best]
    # Pairs that are as good, and of which more would be bought.
    wanting = (value == value[best]) & (share < 1)
    slopes = (returns[dear] - returns[cheap]) / apart
    return Mixture(weights, float(slopes[wanting].max(initial=0.0)))


def soft_mixture(
    pairs: Float[np.ndarray, "k H S A"],
    rewards: Float[np.ndarray, "S A"],
    temperature: float,
    costs: Float[np.ndarray, " k"],
    budget: float,
) -> Mixture:
    """The highest J of all mixtures of k policies within the budget of cost.

    By Frank and Wolfe: the gradient of J in the weights is what each policy earns, where an action
    is worth its reward and how surprising it is in the mixture; towards the best for that, at most
    two policies, the weights take ever smaller steps.

    Arguments:
        pairs: rho of each policy.
        rewards: of states and actions.
        temperature: of entropy.
        costs: of each policy, in the mean over episodes.
        budget: raised as by `limit_of`.
    """
    flat = np.asarray(pairs, float).reshape(len(pairs), -1)
    costs, alone = np.asarray(costs, float), soft_returns(pairs, rewards, temperature)
    limit = limit_of(costs, budget)
    weights, price = best_mixture(costs, alone, limit)
    for step in range(TOWARDS):
        mixed = (weights @ flat).reshape(pairs.shape[1:])
        best, price = best_mixture(costs, flat @ gains(mixed, rewards, temperature).ravel(), limit)
        weights = weights + 2 / (step + 3) * (best - weights)
    return Mixture(weights, price)


def pairs_of(
    policies: Float[np.ndarray, "*n H S A"], presence: Float[np.ndarray, "*n H S"]
) -> Float[np.ndarray, "*n H S A"]:
    """rho: how often policies are in each state and take each action there."""
    return presence[..., None] * policies


def spent_by(
    pairs: Float[np.ndarray, "k H S A"], costs: Float[np.ndarray, " X"]
) -> Float[np.ndarray, " k"]:
    """What an episode of each policy costs, at the costs of states or of pairs."""
    states, actions = pairs.shape[-2:]
    charged = np.broadcast_to(costs.reshape(states, -1), (states, actions))
    return (pairs * charged).sum(axis=(1, 2, 3))


def soft_returns(
    pairs: Float[np.ndarray, "k H S A"], rewards: Float[np.ndarray, "S A"], temperature: float
) -> Float[np.ndarray, " k"]:
    """J of each policy alone."""
    pairs = np.asarray(pairs, float)
    return (pairs * gains(pairs, rewards, temperature)).sum(axis=(1, 2, 3))


def gains(
    pairs: Float[np.ndarray, "*n H S A"], rewards: Float[np.ndarray, "S A"], temperature: float
) -> Float[np.ndarray, "*n H S A"]:
    """What an action is worth to those who are there so often: its reward and its surprise."""
    # The same is added for all actions: where nobody was none of them is a surprise.
    chances = pairs + UNSEEN
    chances = chances / chances.sum(axis=-1, keepdims=True)
    return rewards - temperature * np.log(chances)


def mixed_policy(
    policies: Float[np.ndarray, "k H S A"],
    presence: Float[np.ndarray, "k H S"],
    weights: Float[np.ndarray, " k"],
) -> Float[np.ndarray, "H S A"]:
    """One policy that is in every state, and does everything, as often as the mixture.

        pi(a | s, t) = sum_k w_k p_k(s, t) pi_k(a | s, t) / sum_k w_k p_k(s, t)

    Arguments:
        policies: what is mixed.
        presence: p, the share of each policy's episodes that are in a state at a step.
        weights: how often each is drawn; they sum to 1.
    """
    drawn = weights[:, None, None] * (np.asarray(presence, float) + NEVER)
    pairs = (drawn[..., None] * np.asarray(policies, float)).sum(axis=0)
    return pairs / pairs.sum(axis=-1, keepdims=True)
