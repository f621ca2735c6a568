"""Gradient steps on a constraint model, compiled as one loop, ended early when it drifts.

The samples are of an earlier policy; weights let them speak about the present constraint. The
gradient of log Z is an expectation over the policy that is optimal for the *present*
constraint w, but the samples are from the policy trained under an earlier one, w-bar (equations
12 and 13 of the paper; Malik et al. 2021):

    nu(tau) = phi_w(tau) / phi_wbar(tau),   normalised to a mean of one.

The approximation holds while w stays close to w-bar; so an update ends as soon as either
divergence between the two distributions of trajectories passes its limit (the reference code's are
10 and 2.5):

    KL(old, new) = -E[log nu],   KL(new, old) = E[nu log nu]    (nu normalised)

Ours differs from the reference code in one point: there, a product of two arrays with different
axes makes every weight cancel.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from tacit.control.networks import moved
from tacit.inference.inputs import Steps

DRIFT_LIMITS = (10.0, 2.5)


class Minibatch(NamedTuple):
    """What one gradient step of the constraint looks at.

    Fields:
        memory: what the method keeps besides its model.
        experts, policy: samples of both, as many of each.
        weights: importance weights of the policy's samples, with a mean of one.
        confidence: asked for by the user.
        key: for losses that draw.
    """

    memory: Any
    experts: Steps
    policy: Steps
    weights: Float[Array, "*n"]
    confidence: Array | float
    key: Key[Array, ""]


class Passes(NamedTuple):
    """Where the loop stands.

    Fields:
        model, optimiser: after the steps so far.
        done: number of steps so far.
        loss: sum of the losses so far.
        drift: KL(old, new) and KL(new, old) before the latest step.
    """

    model: Any
    optimiser: Any
    done: Int[Array, ""]
    loss: Float[Array, ""]
    drift: Float[Array, " 2"]


def gradient_passes(
    method: Any,
    learned: Any,
    experts: Steps,
    policy: Steps,
    rate: Float[Array, ""],
    length: Float[Array, ""],
    confidence: Float[Array, ""],
    limits: tuple[float, float],
    *,
    key: Key[Array, ""],
) -> tuple[Any, Any, dict[str, float]]:
    """Model and optimiser after the update, and how it went.

    Arguments:
        method: whose `loss`, `log_feasibility` and `optimiser` are used.
        learned: where to start; its memory is not changed.
        experts: [passes, minibatch, ...] samples, one minibatch per step.
        policy: as many samples of policies, arranged alike.
        rate: the learning rate.
        length: samples per trajectory, for the drift.
        confidence: given to the method.
        limits: of the two divergences.
        key: of random losses.
    """
    end = compiled_passes(method, learned, experts, policy, rate, length, confidence, limits, key)
    done = int(end.done)
    return (
        end.model,
        end.optimiser,
        {
            "constraint_loss": float(end.loss) / max(1, done),
            "constraint_passes": float(done),
            "drift": float(end.drift[0]),
        },
    )


@partial(jax.jit, static_argnums=(0, 7))
def compiled_passes(
    method: Any,
    learned: Any,
    experts: Steps,
    policy: Steps,
    rate: Array,
    length: Array,
    confidence: Array,
    limits: tuple[float, float],
    key: Key[Array, ""],
) -> Passes:
    """Gradient steps until the samples are used up, or until the model drifts beyond the limits."""
    memory = learned.memory

    def within_limits(drifted: Array) -> Array:
        return (drifted[0] <= limits[0]) & (drifted[1] <= limits[1])

    def unfinished(now: Passes) -> Array:
        return (now.done < experts.present.shape[0]) & within_limits(now.drift)

    def gradient_step(now: Passes) -> Passes:
        mine, theirs = jax.tree.map(lambda field: field[now.done], (experts, policy))
        fresh, old = (
            method.log_feasibility(model, memory, theirs, confidence)
            for model in (now.model, learned.model)
        )
        drifted = jnp.stack(drift(fresh, old, length))
        weights = importance_weights(fresh, old)
        step_key = jax.random.fold_in(key, now.done)
        batch = Minibatch(memory, mine, theirs, weights, confidence, step_key)
        loss, slope = jax.value_and_grad(method.loss)(now.model, batch)
        change, optimiser = method.optimiser.update(slope, now.optimiser)
        model = moved(now.model, change, rate)
        after = Passes(model, optimiser, now.done + 1, now.loss + loss, drifted)
        # Beyond the limits the weights mean nothing: the step they would lead to is not taken.
        before = now._replace(drift=drifted)
        return jax.tree.map(partial(jnp.where, within_limits(drifted)), after, before)

    zero = jnp.zeros((), jnp.int32)
    begin = Passes(learned.model, learned.optimiser, zero, jnp.zeros(()), jnp.zeros(2))
    return jax.lax.while_loop(unfinished, gradient_step, begin)


def importance_weights(new: Float[Array, "*n"], old: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Weights from the log-feasibility of the samples under the present and the earlier model."""
    ratio = jnp.exp(new - old - jnp.max(new - old))
    return jax.lax.stop_gradient(ratio / ratio.mean())


def drift(
    new: Float[Array, "*n"], old: Float[Array, "*n"], length: Float[Array, ""] | float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """KL(old, new) and KL(new, old) between trajectories of `length` samples each.

    Samples are taken as independent, so that divergences add up along a trajectory.
    """
    weights = importance_weights(new, old)
    log = jnp.log(weights + 1e-12)
    return -length * log.mean(), length * (weights * log).mean()
