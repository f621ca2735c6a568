"""Mixtures of policies: at the start of an episode one of them is drawn, and kept to.

With entropy, equation 4 is concave in the occupancy of states and actions, and so is its best value
in the budget: where no policy at hand costs just what may be spent, a mixture of a dearer and a
cheaper one is better than either.
"""

import numpy as np
from jaxtyping import Float

from tacit.control.constrained_planning import attainable_budget

NEVER = 1e-6
"""How present a policy is where it never was."""


def best_mixture(
    costs: Float[np.ndarray, " k"], returns: Float[np.ndarray, " k"], budget: float
) -> Float[np.ndarray, " k"]:
    """Weights of k policies: the highest return of all mixtures within the budget of cost.

    A linear program with one inequality, so that two policies are enough: one of all pairs is best.
    The budget is raised as `attainable_budget` says where even the cheapest policy is above it.
    """
    costs, returns = (np.asarray(values, float) for values in (costs, returns))
    limit = max(float(attainable_budget(budget, costs.min())), costs.min())
    cheap, dear = np.meshgrid(np.arange(len(costs)), np.arange(len(costs)), indexing="ij")
    apart = np.where(costs[dear] > costs[cheap], costs[dear] - costs[cheap], 1.0)
    share = np.where(costs[dear] <= limit, 1.0, (limit - costs[cheap]) / apart)
    value = share * returns[dear] + (1 - share) * returns[cheap]
    best = np.unravel_index(np.where(costs[cheap] <= limit, value, -np.inf).argmax(), value.shape)
    weights = np.zeros(len(costs))
    weights[cheap[best]] += 1 - share[best]
    weights[dear[best]] += share[best]
    return weights


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
