"""How often a learned constraint keeps its promise that what it allows is truly allowed."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from tacit.control.planning import soft_value_iteration, visit_probability
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate, check_level, finite, rate_interval, ratio_intervals
from tacit.precision import in_double_precision


def joint_coverage(
    allowed: ArrayLike, truly_allowed: ArrayLike, reachable: ArrayLike, *, level: float = 0.95
) -> Estimate:
    """The share of data sets in which every reachable state that is allowed is truly allowed.

    A constraint that allows nothing counts as right. The interval is Wilson's, as data sets are
    independent.

    Arguments:
        allowed: [datasets, X], True where the constraint learned from the data set allows the
            query (state or pair).
        truly_allowed: [X], True where the true rule does.
        reachable: [X], True for the queries that count (`reachable_queries`).
        level: confidence of the interval.
    """
    learned, truth = at_reachable(allowed, truly_allowed, reachable)
    wrong = (learned & ~truth).any(axis=1)
    return rate_interval(int((~wrong).sum()), len(learned), level)


def pointwise_coverage(
    allowed: ArrayLike,
    truly_allowed: ArrayLike,
    reachable: ArrayLike,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The share of (data set, allowed reachable state) pairs that are truly allowed.

    States within a data set are right or wrong together, so the interval is a bootstrap over the
    data sets that allow anything: of the ratio (truly allowed) / (allowed), summed over data sets.
    Where all pairs are right, or all are wrong, a bootstrap sees no spread and would claim
    certainty; then the interval is Wilson's with one trial per data set, as if all states of a data
    set were copies of one. A single data set says nothing about the spread: 0 to 1. If no data set
    allows anything, no promise was made, and the share is 1 by convention.

    Arguments are those of `joint_coverage`, and the `seed` of the bootstrap.
    """
    check_level(level)
    learned, truth = at_reachable(allowed, truly_allowed, reachable)
    pairs = learned.sum(axis=1)
    right = (learned & truth).sum(axis=1)[pairs > 0]
    pairs = pairs[pairs > 0]
    if len(pairs) == 0:
        return Estimate.exact(1.0)
    if right.sum() in (0, pairs.sum()):
        return rate_interval(len(pairs) if right.any() else 0, len(pairs), level)
    value, low, high = ratio_intervals(right, pairs, level, seed)
    return Estimate(float(value), float(np.maximum(low, 0)), float(np.minimum(high, 1)))


def reachable_queries(task: TabularTask, threshold: float = 0.01) -> Bool[np.ndarray, " X"]:
    """The queries (states or pairs, `task.rule_on`) that episodes without the rule may visit.

    True where the soft-optimal policy of the task's reward alone visits the query in more than
    `threshold` of its episodes; computed exactly, in float64.
    """
    if not 0 <= threshold < 1:
        raise ArgumentError(f"threshold must lie in [0, 1), not {threshold!r}")
    return unconstrained_visits(task) > threshold


@in_double_precision
def unconstrained_visits(task: TabularTask) -> Float[np.ndarray, " X"]:
    """P(an episode of the soft-optimal policy of the reward alone visits x), for every query x."""
    policy, _ = soft_value_iteration(
        jnp.asarray(task.transitions), jnp.asarray(task.rewards), task.horizon, task.temperature
    )
    visits = visit_probability(
        jnp.asarray(task.transitions),
        jnp.asarray(task.initial),
        policy,
        on_pairs=task.rule_on == "pair",
    )
    return np.asarray(visits)


def distance_to_oracle(
    feasibility: ArrayLike, oracle: ArrayLike, reachable: ArrayLike
) -> Float[np.ndarray, "..."]:
    """The mean over reachable queries of |feasibility - oracle|: 0 is perfect, 1 the worst.

    Arguments:
        feasibility: [..., X], learned, in [0, 1].
        oracle: [..., X], what it should be, in [0, 1]; leading axes broadcast.
        reachable: [X], True for the queries that count.
    """
    learned, wanted = finite("feasibility", feasibility), finite("oracle", oracle)
    where = truths("reachable", reachable)
    if where.ndim != 1 or any(array.shape[-1:] != where.shape for array in (learned, wanted)):
        raise ArgumentError(
            "feasibility [..., X], oracle [..., X] and reachable [X] do not fit together: "
            f"{list(learned.shape)}, {list(wanted.shape)} and {list(where.shape)}"
        )
    for name, array in (("feasibility", learned), ("oracle", wanted)):
        if array.min() < 0 or array.max() > 1:
            raise ArgumentError(f"{name} must lie in [0, 1]")
    try:
        gap = np.abs(learned[..., where] - wanted[..., where])
    except ValueError:
        raise ArgumentError(
            f"feasibility {list(learned.shape)} and oracle {list(wanted.shape)} do not broadcast"
        ) from None
    check_reachable(where)
    return gap.mean(axis=-1)


def at_reachable(
    allowed: ArrayLike, truly_allowed: ArrayLike, reachable: ArrayLike
) -> tuple[Bool[np.ndarray, "datasets Y"], Bool[np.ndarray, " Y"]]:
    """The learned [datasets, Y] and the true [Y] answers, at the Y reachable queries only."""
    learned, truth = truths("allowed", allowed), truths("truly_allowed", truly_allowed)
    where = truths("reachable", reachable)
    if learned.ndim != 2 or truth.shape != learned.shape[1:] or where.shape != learned.shape[1:]:
        raise ArgumentError(
            "allowed [datasets, X], truly_allowed [X] and reachable [X] do not fit together: "
            f"{list(learned.shape)}, {list(truth.shape)} and {list(where.shape)}"
        )
    if len(learned) == 0:
        raise ArgumentError("allowed holds no data set; there must be at least one")
    check_reachable(where)
    return learned[:, where], truth[where]


def check_reachable(reachable: Bool[np.ndarray, " X"]) -> None:
    """Refuse an array in which no query is reachable."""
    if not reachable.any():
        raise ArgumentError("reachable is False everywhere: there is nothing to judge")


def truths(name: str, values: ArrayLike) -> Bool[np.ndarray, "..."]:
    """The values as an array of booleans; numbers are refused, as 0.5 is neither."""
    array = np.asarray(values)
    if array.dtype != np.bool_:
        raise ArgumentError(f"{name} must be an array of booleans, not of {array.dtype}")
    return array
