"""How a step enters a constraint model: raw observations and actions in, features out."""

from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

SMALLEST_SCALE = 1e-4


class Steps(NamedTuple):
    """Steps of any arrangement *n: a batch [B], or B windows of W steps [B, W].

    Fields:
        observations: before each action.
        actions: continuous ones [*n, a], cut to their box; discrete ones [*n] whole numbers.
        present: false where there is padding.
    """

    observations: Float[Array, "*n o"]
    actions: Shaped[Array, "..."]
    present: Bool[Array, "*n"]

    @classmethod
    def on_host(cls, observations: Any, actions: Any, present: Any) -> "Steps":
        """Steps in arrays of NumPy, with the types that models compute in."""
        whole = actions.dtype.kind in "iu"
        seen: Any = observations.astype(np.float32, copy=False)
        done: Any = actions.astype(np.int32 if whole else np.float32, copy=False)
        return cls(seen, done, present)


class Inputs(eqx.Module):
    """Features of a step: arcsinh((observation - centre) / scale), and the action in [-1, 1].

    `scale` is the finer one of two spreads, that of the demonstrations and that of an untrained
    policy. A runner's experts are spread over hundreds of metres, in units of which its start
    would be a point; arcsinh, linear near 0 and logarithmic far away, takes care of the rest. (The
    reference code cuts raw observations to +-20, which assumes their units.)

    Discrete actions become a one among zeros.
    """

    centre: Float[Array, " o"]
    scale: Float[Array, " o"]
    action_centre: Float[Array, " a"]
    action_scale: Float[Array, " a"]
    number_of_actions: int | None = eqx.field(static=True)

    @classmethod
    def fit(
        cls,
        action_space: gymnasium.Space,
        experts: Float[np.ndarray, "n o"],
        untrained: Float[np.ndarray, "m o"],
    ) -> "Inputs":
        """Scales from observations of the experts and of an untrained policy."""
        # In float32 the sum over many rows is so inexact that constants seem to vary.
        spreads = np.stack([seen.std(axis=0, dtype=np.float64) for seen in (experts, untrained)])
        moving = np.where(spreads > SMALLEST_SCALE, spreads, np.inf)
        finer = moving.min(axis=0)
        scale = np.where(np.isfinite(finer), finer, 1.0)
        return cls.blank(experts.shape[-1], action_space)._with(
            untrained.mean(axis=0, dtype=np.float64), scale
        )

    @classmethod
    def blank(cls, observation_size: int, action_space: gymnasium.Space) -> "Inputs":
        """Observations as they are; what a saved model is read into."""
        if isinstance(action_space, gymnasium.spaces.Box):
            low, high = (
                np.asarray(bound, np.float64).ravel()
                for bound in (action_space.low, action_space.high)
            )
            bounded = np.isfinite(low) & np.isfinite(high) & (low < high)
            low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
            number = None
        else:
            assert isinstance(action_space, gymnasium.spaces.Discrete)
            low = high = np.zeros(0)
            number = int(action_space.n)
        return cls(
            centre=jnp.zeros(observation_size),
            scale=jnp.ones(observation_size),
            action_centre=jnp.asarray((high + low) / 2, jnp.float32),
            action_scale=jnp.asarray((high - low) / 2, jnp.float32),
            number_of_actions=number,
        )

    def _with(self, centre: np.ndarray, scale: np.ndarray) -> "Inputs":
        pair = jnp.asarray(centre, jnp.float32), jnp.asarray(scale, jnp.float32)
        return eqx.tree_at(lambda inputs: (inputs.centre, inputs.scale), self, pair)

    @property
    def size(self) -> int:
        """Number of features."""
        actions = self.number_of_actions or self.action_centre.shape[0]
        return self.centre.shape[0] + actions

    def __call__(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
    ) -> Float[Array, "*n f"]:
        """The features of each step; nothing here is trained."""
        seen = jnp.arcsinh((observations - self.centre) / self.scale)
        if self.number_of_actions is None:
            done = (actions - self.action_centre) / self.action_scale
        else:
            done = jax.nn.one_hot(actions, self.number_of_actions, dtype=seen.dtype)
        return jax.lax.stop_gradient(jnp.concatenate([seen, done], axis=-1))
