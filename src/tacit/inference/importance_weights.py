"""Weights that let samples of an earlier policy speak about the present constraint.

The gradient of log Z is an expectation over the policy that is optimal for the *present*
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

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

DRIFT_LIMITS = (10.0, 2.5)


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
