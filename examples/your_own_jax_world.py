"""A simulator of your own in JAX: a drone that experts keep more than a metre above the ground."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import tacit


class Drone:
    """It is paid for being low, and noise moves it: the rule is what keeps it up."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    horizon = 30
    observation_names = ("height", "speed")

    def reset(self, key):
        """Start an episode: the state, which is any arrays you like, and what is observed of it."""
        height = jax.random.uniform(key, (), jnp.float32, 2.0, 3.0)
        return {"height": height, "speed": jnp.float32(0), "steps": jnp.int32(0)}, jnp.stack(
            [height, jnp.float32(0)]
        )

    def step(self, state, action, key):
        """Take one action. Nothing is reset here: tacit does that."""
        noise = 0.02 * jax.random.normal(key, (), jnp.float32)
        speed = 0.8 * state["speed"] + 0.2 * action[0] + noise
        height, steps = state["height"] + 0.2 * speed, state["steps"] + 1
        return tacit.JaxStep(
            state={"height": height, "speed": speed, "steps": steps},
            observation=jnp.stack([height, speed]),
            reward=-height,
            costs=(height < 1.0)[None].astype(jnp.float32),  # one cost: one true rule
            terminated=height < 0.0,
            truncated=steps >= self.horizon,
        )


# The task works everywhere: tacit.train_expert, tacit.infer, tacit.evaluate and so on.
task = tacit.task_from_jax(Drone(), name="Drone")
print(task.name, "observes", " and ".join(task.observation_names))


def pilot(observations):
    """An expert written by hand: go down, and stay a quarter of a metre above the limit."""
    height, speed = observations.T
    return np.clip(2.0 * (1.25 - height) - 2.0 * speed, -1, 1)[:, None]


demonstrations = tacit.collect(tacit.Expert(task, pilot), 20, seed=1)
print("episodes:", len(demonstrations.lengths), "of", demonstrations.lengths.max(), "steps")
print("lowest height:", demonstrations.observations[:, :, 0].min().round(2))
