"""The paper's two metrics: constraint violation rate and feasible reward (section 6)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate, finite, rate_interval
from tacit.precision import in_double_precision

ROW_SUM_TOLERANCE = 1e-5  # a float32 policy is off by about 1e-7


@dataclass(frozen=True)
class Performance:
    """Violation and reward of a policy, exactly: expectations over episodes.

    Attributes:
        violation: probability that at least one step of the episode violates.
        reward: expected reward of an episode, violated or not.
        feasible_reward: expected reward of an episode, counting violated ones as 0. The paper does
            not say whether they are dropped or count as 0; the benchmark's code counts them as 0.
    """

    violation: float
    reward: float
    feasible_reward: float


def violation_rate(trajectories: Trajectories, *, level: float = 0.95) -> Estimate:
    """The share of episodes with at least one step whose true cost is above zero."""
    violated = trajectories.violated
    return rate_interval(int(violated.sum()), len(violated), level)


def performance_of(
    transitions: Float[Array, "S A S"],
    initial: Float[Array, " S"],
    rewards: Float[Array, "S A"],
    costs: Float[Array, "S A"],
    policy: Float[Array, "H S A"],
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Violation, reward and feasible reward of a policy, exactly; pure, so `jax.vmap` works.

    Let C_t be the event that none of the steps before t violates and G_t the reward so far.
    Carried forward from step to step, with c(s, a) = 1 where the cost is zero:

        p_t(s) = P(s_t = s)              p_{t+1}(s') = sum p_t pi_t P(s' | s, a)
        m_t(s) = P(s_t = s, C_t)         m_{t+1}(s') = sum m_t pi_t c P(s' | s, a)
        w_t(s) = E[G_t; s_t = s, C_t]    w_{t+1}(s') = sum (w_t + m_t r) pi_t c P(s' | s, a)

    (sums over s and a; m_0 = p_0 = initial, w_0 = 0). The violation is the mass that leaves m, the
    reward sum_t p_t pi_t r, the feasible reward sum_s w_H(s).
    """
    states, actions, _ = transitions.shape
    flat = transitions.reshape(states * actions, states)
    clean = (costs <= 0).astype(transitions.dtype)

    def forward(
        carry: tuple[Array, Array, Array], step_policy: Array
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        everyone, survivors, earned = (mass[:, None] * step_policy for mass in carry)
        leaving = (survivors * (1 - clean)).sum()
        survivors = survivors * clean
        earned = earned * clean + survivors * rewards
        pairs = jnp.stack([everyone, survivors, earned]).reshape(3, -1)
        after = pairs @ flat
        return (after[0], after[1], after[2]), (leaving, (everyone * rewards).sum())

    start = (initial, initial, jnp.zeros_like(initial))
    (_, _, earned), (leaving, reward) = jax.lax.scan(forward, start, policy)
    return jnp.clip(leaving.sum(), 0, 1), reward.sum(), earned.sum()


@in_double_precision
def exact_performance(task: TabularTask, policy: ArrayLike) -> Performance:
    """`performance_of` a policy [H, S, A] on a tabular task, in float64."""
    probabilities = check_policy(task, policy)
    numbers = compiled_performance(
        task.transitions, task.initial, task.rewards, task.costs, probabilities
    )
    return Performance(*(float(number) for number in numbers))


compiled_performance = jax.jit(performance_of)


def check_policy(task: TabularTask, policy: ArrayLike) -> Float[np.ndarray, "H S A"]:
    """The policy in float64 with rows that sum to one, or an error that says where it is wrong."""
    array = finite("policy", policy)
    wanted = (task.horizon, task.number_of_states, task.number_of_actions)
    if array.shape != wanted:
        raise ArgumentError(
            f"policy must have the shape [H, S, A] = {list(wanted)}, not {list(array.shape)}"
        )
    sums = array.sum(axis=2, keepdims=True)
    wrong = (array < 0).any(axis=2) | (np.abs(sums[:, :, 0] - 1) > ROW_SUM_TOLERANCE)
    if wrong.any():
        step, state = np.argwhere(wrong)[0]
        raise ArgumentError(
            f"policy at step {step}, state {state} is not a distribution over actions: "
            f"{array[step, state].tolist()}"
        )
    return array / sums
