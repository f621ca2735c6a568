"""Inference on many data sets at once: data sets and confidence levels are array axes."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from tacit.control.planning import Dynamics
from tacit.environments.tabular import TabularTask
from tacit.inference.confidence.belief import Reading
from tacit.inference.counts.counts import TableMethod, forward_control
from tacit.inference.counts.model import VisitCounts
from tacit.precision import in_double_precision


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Alpha and beta for each confidence level and data set: [L, D, X]."""

    alpha: np.ndarray
    beta: np.ndarray


@in_double_precision
def learn_beliefs(
    task: TabularTask, counts: VisitCounts, confidences: np.ndarray, method: TableMethod
) -> Beliefs:
    """One belief per data set, repeated for every confidence if it serves all of them."""
    dynamics = Dynamics.of(task)
    levels = confidences[:1] if method.any_confidence else confidences
    alphas, betas = [], []
    for level in levels:
        learn = partial(method.belief, dynamics, task=task, confidence=float(level))
        belief = jax.vmap(learn, in_axes=(VisitCounts(0, 0, None),))(counts.as_arrays())
        alphas.append(np.asarray(belief.alpha))
        betas.append(np.asarray(belief.beta))
    shape = (len(confidences), *alphas[0].shape)
    return Beliefs(
        np.broadcast_to(np.stack(alphas), shape), np.broadcast_to(np.stack(betas), shape)
    )


@in_double_precision
def plan_policies(
    task: TabularTask,
    counts: VisitCounts,
    beliefs: Beliefs,
    confidences: np.ndarray,
    reading: Reading,
) -> jax.Array:
    """The best policy under each constraint: [L, D, H, S, A]."""
    control = partial(forward_control, reading=reading, horizon=task.horizon)
    over_sets = jax.vmap(control, in_axes=(None, 0, 0, 0, None, None))
    over_levels = jax.vmap(over_sets, in_axes=(None, 0, 0, None, 0, None))
    return over_levels(
        Dynamics.of(task),
        jnp.asarray(beliefs.alpha),
        jnp.asarray(beliefs.beta),
        jnp.asarray(counts.mean_visits),
        jnp.asarray(confidences),
        task.budget,
    ).policy
