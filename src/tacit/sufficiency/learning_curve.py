"""How the value of the learned policy grows with the number of demonstrations."""

from dataclasses import dataclass

import jax
import numpy as np
from scipy.optimize import nnls
from scipy.stats import t as student_t

from tacit.control.planning import Dynamics, occupancy
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.evaluation.intervals import Estimate
from tacit.inference.counts.counts import TableMethod, learn_beliefs, plan_policies
from tacit.inference.counts.model import VisitCounts, visits_of
from tacit.precision import in_double_precision

SUBSETS = 8
MOST_SIZES = 8
EXPONENTS = (0.25, 0.5, 1.0, 2.0)
MOST_TIMES_MORE = 100
DRAWS = 400


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Values of the policies learned from nested random subsets of the data.

    Fields:
        sizes: [K] numbers of demonstrations, rising; the last is all of them.
        values: [K, R] expected reward for each size and each of R random orders. Subsets of one
            order are nested. In the last row all orders agree: it is the whole data set.
        noise: standard error of a value; 0 where it is computed exactly.
    """

    sizes: np.ndarray
    values: np.ndarray
    noise: float = 0.0

    @property
    def value(self) -> Estimate:
        """The value with all demonstrations, and its 95 % interval.

        The interval says how far another data set of the same size might take it: the variance of
        a statistic is estimated by the variance of its values on random halves of the data (the
        delete-half jackknife), with Student's t as there are few of them.
        """
        centre = float(self.values[-1].mean())
        around = float(student_t.ppf(0.975, self.freedom)) * self.spread
        return Estimate(centre, centre - around, centre + around)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the spread."""
        return self.values.shape[1] - 1

    @property
    def spread(self) -> float:
        """Standard deviation of the value over data sets of this size; inf for a single one."""
        if len(self.sizes) < 2:
            return np.inf
        half = int(np.argmin(np.abs(self.sizes[:-1] - self.sizes[-1] / 2)))
        kept = self.sizes[half] / self.sizes[-1]
        of_data = self.values[half].std(ddof=1) * np.sqrt(kept / (1 - kept))
        return float(np.hypot(of_data, self.noise))

    def needed(self, wanted: float, *, seed: int) -> np.ndarray:
        """[DRAWS] numbers of demonstrations that may be needed to reach `wanted`; inf for never.

        Each draw resamples the random orders and moves the whole curve by what another data set
        of this size might have given (`spread`), then extends it; see `needed_number`.
        """
        generator = np.random.default_rng(seed)
        orders = generator.integers(0, self.values.shape[1], (DRAWS, self.values.shape[1]))
        shifts = generator.standard_t(self.freedom, DRAWS)
        if len(self.sizes) > 1:
            shifts *= self.spread
        found = [
            needed_number(self.sizes, self.values[:, order].mean(axis=1) + shift, wanted)
            for order, shift in zip(orders, shifts, strict=True)
        ]
        return np.array(found)


def needed_number(sizes: np.ndarray, values: np.ndarray, wanted: float) -> float:
    """Fit value(n) = limit - sum_k c_k n^(-k), c_k >= 0, and solve it for `wanted`.

    Powers 1/4, 1/2, 1 and 2 with non-negative weights make every rising, levelling curve of the
    usual kinds; the fit is a linear least-squares problem with one answer. Larger subsets weigh
    more, since it is their end of the curve that is extended.
    """
    if len(sizes) < 2:
        return np.inf
    sizes, values = sizes.astype(float), values.astype(float)
    steps = np.stack([-(sizes**-power) for power in EXPONENTS], axis=1)
    columns = np.column_stack([steps, np.ones_like(sizes), -np.ones_like(sizes)])
    weights = np.sqrt(sizes / sizes[-1])
    solution, _ = nnls(columns * weights[:, None], values * weights)
    limit = solution[-2] - solution[-1]
    last = sizes[-1]
    # The curve is made to pass through what the whole data set gives.
    offset = values[-1] - (steps[-1] @ solution[:-2] + limit)
    numbers = np.unique(np.round(np.geomspace(last, MOST_TIMES_MORE * last, 600)))
    curve = (
        limit
        + offset
        - sum(weight * numbers**-power for weight, power in zip(solution, EXPONENTS, strict=False))
    )
    reached = np.flatnonzero(curve >= wanted)
    return float(numbers[reached[0]]) if len(reached) else np.inf


def subset_sizes(number: int) -> np.ndarray:
    """All the data, 1/sqrt(2) of them, a half ... down to four, below which nothing is proved.

    With four demonstrations or fewer, all numbers from one on.
    """
    if number <= 4:
        return np.arange(1, number + 1)
    shares = number / np.sqrt(2) ** np.arange(MOST_SIZES)
    return np.unique(np.maximum(np.round(shares), 4).astype(int))


@in_double_precision
def learning_curve(
    task: TabularTask,
    demonstrations: Trajectories,
    *,
    confidence: float,
    method: TableMethod,
    seed: int,
) -> LearningCurve:
    """Learn from nested random subsets and compute the value of each policy exactly."""
    visits = visits_of(task, demonstrations)
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(len(visits)) for _ in range(SUBSETS)]
    sizes = subset_sizes(len(visits))
    values = [
        policy_values(
            task,
            VisitCounts.of_visits([visits[order[:size]] for order in orders]),
            np.array([confidence]),
            method,
        )[0]
        for size in sizes
    ]
    return LearningCurve(sizes, np.array(values))


@in_double_precision
def policy_values(
    task: TabularTask, counts: VisitCounts, confidences: np.ndarray, method: TableMethod
) -> np.ndarray:
    """[L, D] expected reward of the policy for each confidence and data set."""
    beliefs = learn_beliefs(task, counts, confidences, method)
    policies = plan_policies(task, counts, beliefs, confidences, method.reading)
    return np.asarray(expected_rewards(Dynamics.of(task), policies))


@jax.jit
def expected_rewards(dynamics: Dynamics, policies: jax.Array) -> jax.Array:
    """Expected reward of policies [L, D, H, S, A]."""

    def one(policy: jax.Array) -> jax.Array:
        pairs = occupancy(dynamics.transitions, dynamics.initial, policy)
        return (pairs * dynamics.rewards).sum()

    return jax.vmap(jax.vmap(one))(policies)
