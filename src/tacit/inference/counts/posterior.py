"""The exact Bayesian answer, for rules from a family small enough to enumerate.

This is the reference for what confidence should mean: a prior over rules, the likelihood of the
demonstrations under each (equation 5), and the posterior, with no approximation.
"""

import itertools
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.special import logsumexp

from tacit.argument_checks import check_confidence
from tacit.control.planning import Dynamics, constrained_plan, violation_probability
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.inference.counts.model import visits_of
from tacit.precision import in_double_precision

MOST_CANDIDATES = 14
CHUNK = 256
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RuleFamily:
    """Every rule that is thought possible; each is as likely as the others beforehand.

    Fields:
        task: what the rules are about.
        allowed: [rules, X] what each rule allows.
    """

    task: TabularTask
    allowed: Bool[np.ndarray, "rules X"]


def limit_rules(task: TabularTask) -> RuleFamily:
    """Limits on the column of a state, as on the chain: "stay right of ...", "no limit" included.

    Only limits that allow every possible first state.

    >>> limit_rules(tacit.make("Chain", length=9, limit=-2)).allowed.shape  # rules, states
    (5, 9)
    """
    if task.positions is None or task.rule_on != "state":
        raise ArgumentError(f"limits need a rule on states with positions; {task.name} has none")
    column = task.positions[:, 1]
    first = column[task.initial > 0].min()
    limits = np.unique(column[column <= first])
    return RuleFamily(task, column[None, :] >= limits[:, None])


def subset_rules(task: TabularTask, candidates: np.ndarray) -> RuleFamily:
    """Any subset of the candidate queries may be forbidden; everything else is allowed.

    >>> subset_rules(tacit.make("Chain", length=9, limit=-2), np.array([0, 1, 2])).allowed.shape
    (8, 9)
    """
    candidates = np.asarray(candidates)
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        raise ArgumentError(
            f"between 1 and {MOST_CANDIDATES} candidates can be enumerated, not {len(candidates)}"
        )
    if not ((candidates >= 0) & (candidates < task.number_of_queries)).all():
        raise ArgumentError(f"candidates must lie in 0 to {task.number_of_queries - 1}")
    choices = np.array(list(itertools.product((True, False), repeat=len(candidates))))
    allowed = np.ones((len(choices), task.number_of_queries), dtype=bool)
    allowed[:, candidates] = choices
    return RuleFamily(task, allowed)


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """P(rule | demonstrations), and the constraints that follow from it.

    Fields:
        family: the rules.
        probability: [..., rules].
    """

    family: RuleFamily
    probability: Float[np.ndarray, "... rules"]

    @property
    def feasibility(self) -> Float[np.ndarray, "... X"]:
        """P(x is allowed | demonstrations) for every query x."""
        return self.probability @ self.family.allowed

    def allowed(self, confidence: float) -> Bool[np.ndarray, "... X"]:
        """The constraint at a confidence, query by query: allowed iff P(x is allowed) >= lambda.

        This is what the paper's quantile becomes when phi is 0 or 1: the (1 - lambda)-quantile of
        a Bernoulli variable is 1 exactly if its probability is at least lambda.
        """
        check_confidence(confidence)
        return self.feasibility >= confidence - ROUNDING


def exact_posterior(family: RuleFamily, demonstrations: Trajectories) -> ExactPosterior:
    """The posterior given one data set of feasible episodes.

    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> demonstrations = tacit.collect(tacit.train_expert(task), 20, seed=1)
    >>> exact_posterior(limit_rules(task), demonstrations).allowed(0.9).astype(int)
    array([0, 0, 1, 1, 1, 1, 1, 1, 1])
    """
    visited = visits_of(family.task, demonstrations).sum(axis=0) > 0
    counts = action_counts(family.task, demonstrations)
    posterior = posteriors(
        plan_for_rules(family), counts[None], visited[None], np.array([len(demonstrations)])
    )
    return ExactPosterior(family, posterior.probability[0])


@dataclass(frozen=True, eq=False)
class RuleExperts:
    """What the expert for every rule of a family does; data sets share this work.

    Fields:
        family: the rules.
        log_policy: [rules, H * S * A] logarithm of the expert's action probabilities.
        log_feasible: [rules] logarithm of the probability that its episode obeys the rule.
    """

    family: RuleFamily
    log_policy: Float[np.ndarray, "rules HSA"]
    log_feasible: Float[np.ndarray, " rules"]


@in_double_precision
def plan_for_rules(family: RuleFamily) -> RuleExperts:
    """Solve equation 4 for every rule, some hundreds at a time."""
    task = family.task
    dynamics = Dynamics.of(task)
    policies, feasible = [], []
    for start in range(0, len(family.allowed), CHUNK):
        allowed = family.allowed[start : start + CHUNK]
        padding = np.ones((CHUNK - len(allowed), allowed.shape[1]))
        costs = 1.0 - np.concatenate([allowed, padding])
        log_policy, log_feasible = expert_for_rules(
            dynamics, jnp.asarray(task.on_pairs(costs)), task.budget, task.horizon
        )
        policies.append(np.asarray(log_policy[: len(allowed)]).reshape(len(allowed), -1))
        feasible.append(np.asarray(log_feasible[: len(allowed)]))
    return RuleExperts(family, np.concatenate(policies), np.concatenate(feasible))


def posteriors(
    experts: RuleExperts, counts: np.ndarray, visited: np.ndarray, numbers: np.ndarray
) -> ExactPosterior:
    """The posterior for many data sets at once.

    log P(D | rule) = sum over steps of log pi_rule(a_t | s_t) - N log P(an episode is feasible),
    and minus infinity where a demonstration breaks the rule: pi_rule is the expert for that rule
    (equation 4), and only its feasible episodes become demonstrations. Transition probabilities
    are the same under every rule and cancel.

    Args:
        experts: what the expert for every rule does.
        counts: [D, H, S, A] how often each action was taken, per data set.
        visited: [D, X] whether any demonstration visited the query.
        numbers: [D] demonstrations per data set.
    """
    forbidden = (~experts.family.allowed).astype(float)
    logarithm = counts.reshape(len(counts), -1) @ experts.log_policy.T
    logarithm -= numbers[:, None] * experts.log_feasible
    logarithm[visited.astype(float) @ forbidden.T > 0] = -np.inf
    impossible = np.flatnonzero(np.isneginf(logarithm).all(axis=1))
    if len(impossible):
        raise ArgumentError(
            "no rule of the family allows everything that the demonstrations did "
            f"(data set {impossible[0]})"
        )
    weights = np.exp(logarithm - logsumexp(logarithm, axis=1, keepdims=True))
    return ExactPosterior(experts.family, weights)


@partial(jax.jit, static_argnames="horizon")
def expert_for_rules(
    dynamics: Dynamics, costs: Float[Array, "rules S A"], budget: float, horizon: int
) -> tuple[Float[Array, "rules H S A"], Float[Array, " rules"]]:
    """For each rule the logarithm of the expert's policy and of P(an episode is feasible)."""

    def one(rule_costs: Array) -> tuple[Array, Array]:
        policy = constrained_plan(dynamics, rule_costs, budget, horizon).policy
        violation = violation_probability(
            dynamics.transitions, dynamics.initial, policy, rule_costs
        )
        tiny = jnp.finfo(policy.dtype).tiny
        return jnp.log(jnp.maximum(policy, tiny)), jnp.log1p(-jnp.minimum(violation, 1 - 1e-12))

    return jax.vmap(one)(costs)


def action_counts(task: TabularTask, demonstrations: Trajectories) -> np.ndarray:
    """[H, S, A] how often each action was taken at each step and state."""
    counts = np.zeros((task.horizon, task.number_of_states, task.number_of_actions))
    steps = np.broadcast_to(np.arange(demonstrations.mask.shape[1]), demonstrations.mask.shape)
    mask = demonstrations.mask
    states, actions = demonstrations.observations[:, :-1, 0], demonstrations.actions[:, :, 0]
    np.add.at(counts, (steps[mask], states[mask], actions[mask]), 1.0)
    return counts
