"""Behaviour cloning: a policy that begins by acting as the experts do.

maximise  E[log policy(action | observation)]  over the experts' steps
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Shaped

from tacit.control.learner import Learner, look
from tacit.control.networks import GaussianPolicy, Moments
from tacit.control.settings import PPO

Draw = Callable[[int], tuple[Float[np.ndarray, "m o"], Shaped[np.ndarray, "m ..."]]]
"""Gives the observations and actions of a number of experts' steps, drawn uniformly."""

MEASURED = 20_000
MINIBATCH, AT_ONCE = 512, 100
GRADIENT_STEPS = 3_000
"""Also for few steps of experts: after 1,000 one pendulum of four fell over the limit ten times as
often as the expert (150 demonstrations), after 3,000 none."""
RATE = 3e-3
LEAST_SPREAD = 0.2
"""Of half the action box. Experts who act alike in similar states leave no spread to learn from:
with a twentieth, policies that strayed over a limit did not find back."""

ADAM = optax.scale_by_adam()


def imitate(learner: Learner, draw: Draw, action_space: gymnasium.Space, settings: PPO) -> Learner:
    """Fit the learner's policy to the experts' actions, and its scales to their observations.

    Arguments:
        learner: a fresh one; its critics are left as they are.
        draw: steps of the experts.
        action_space: of the task.
        settings: of PPO.
    """
    seen, _ = draw(MEASURED)
    observed = Moments.start(seen.shape[-1]).updated(jnp.asarray(seen))
    policy: Any = learner.policy
    optimiser = ADAM.init(policy)
    rates = RATE / 2 * (1 + np.cos(np.linspace(0, np.pi, GRADIENT_STEPS, dtype=np.float32)))
    for part in rates.reshape(-1, AT_ONCE):
        observations, actions = (
            field.reshape(AT_ONCE, MINIBATCH, *field.shape[1:])
            for field in draw(AT_ONCE * MINIBATCH)
        )
        policy, optimiser = cloning_steps(
            policy, optimiser, observed, observations, actions, part, settings
        )
    if isinstance(policy, GaussianPolicy) and isinstance(action_space, gymnasium.spaces.Box):
        seen, done = draw(MEASURED)
        error = jnp.asarray(done) - policy.mean(look(observed, jnp.asarray(seen), settings))
        least = LEAST_SPREAD * (action_space.high - action_space.low).ravel() / 2
        spread = jnp.maximum(jnp.sqrt((error**2).mean(axis=0)), least)
        policy = GaussianPolicy(policy.mean, jnp.log(spread), policy.smallest_std)
    return learner._replace(policy=policy, observed=observed)


@partial(jax.jit, static_argnames="settings")
def cloning_steps(
    policy: Any,
    optimiser: Any,
    observed: Moments,
    observations: Float[Array, "steps m o"],
    actions: Shaped[Array, "steps m ..."],
    rates: Float[Array, " steps"],
    settings: PPO,
) -> tuple[Any, Any]:
    """Gradient steps of Adam on the likelihood of the experts' actions, one per minibatch."""

    def step(now: tuple[Any, Any], batch: tuple[Array, Array, Array]) -> tuple[Any, None]:
        policy, optimiser = now
        observation, action, rate = batch
        seen = look(observed, observation, settings)

        def surprise(policy: Any) -> Array:
            return -policy.log_probability(seen, action).mean()

        direction, optimiser = ADAM.update(jax.grad(surprise)(policy), optimiser)
        downhill = jax.tree.map(lambda part: -rate * part, direction)
        return (optax.apply_updates(policy, downhill), optimiser), None

    return jax.lax.scan(step, (policy, optimiser), (observations, actions, rates))[0]
