"""A method of your own in one file: what lies outside the box of all that experts saw costs."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import tacit
from tacit.inference.method import Judged, Learned


class BoxModel(tacit.ConstraintModel):
    """What is saved: corners [2, o] of the box. By its name `load` finds the class again."""

    corners: jnp.ndarray
    name = "box"

    def feasibility(self, observations, actions, confidence):
        """1 inside, 0 outside."""
        low, high = self.corners
        return ((observations >= low) & (observations <= high)).all(axis=-1).astype(jnp.float32)

    def shape(self):
        """What `blank` needs: here nothing but the spaces."""
        return {}

    @classmethod
    def blank(cls, spaces, shape):
        """A model to read a saved one into."""
        return cls(jnp.zeros((2, spaces.observation_size)))


@dataclass(frozen=True, kw_only=True)
class ExpertsBox(tacit.Method):
    """Fields: margin: how far the box goes beyond what experts saw."""

    margin: float = 0.05
    name = "experts-box"
    reported = ("expert_cost",)

    def begin(self, inputs, experts, forward, *, key):
        """The state before anybody acts."""
        seen = np.asarray(experts.draw(10_000, np.random.default_rng(0)).observations)
        box = [seen.min(axis=0) - self.margin, seen.max(axis=0) + self.margin]
        return Learned(BoxModel(jnp.array(box)), (), ())

    def judge(self, learned, rollout, moment):
        """What every step costs, once a rollout: costs [T, n, 1], rewards [T, n]."""
        cost = learned.model.cost(rollout.observations, rollout.actions, moment.confidence)
        return Judged(learned, np.asarray(cost)[..., None], np.asarray(rollout.rewards))

    def update(self, learned, given, *, key):
        """Nothing is learned from policies here."""
        return learned, {}

    def experts_cost(self, learned, given, width):
        """They are in the box."""
        return 0.0

    def allowance(self, expert_cost, confidence):
        """The mean cost of a step that the policy may have."""
        return expert_cost + 0.01


task = tacit.make("BlockedPoint")
expert = tacit.Expert(task, lambda seen: np.clip(10 * (np.array([-0.8, 0.5]) - seen), -1, 1))
demonstrations = tacit.collect(expert, 20, seed=1)
forward = tacit.PPO(steps=6400, worlds=16, rollout=50, minibatch=200)
result = tacit.infer(task, demonstrations, method=ExpertsBox(margin=0.02), forward=forward)
result.constraint.save("box.safetensors")
model = tacit.Constraint.load("box.safetensors").model
assert isinstance(model, BoxModel)
print(result.method, "allows from, to:", *np.asarray(model.corners).round(2))
print("violation while training:", result.metrics["training_violation"])
