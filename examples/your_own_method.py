"""A method of your own in one file: what lies outside the box of all that experts saw costs."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

import tacit
from tacit.inference.method import Judged, Learned


class BoxModel(tacit.ConstraintModel):
    """What is saved: the corners of the box. Its name finds the class again in `load`."""

    low: jnp.ndarray
    high: jnp.ndarray

    name: ClassVar[str] = "box"

    def feasibility(self, observations, actions, confidence):
        """1 inside, 0 outside."""
        inside = (observations >= self.low) & (observations <= self.high)
        return inside.all(axis=-1).astype(jnp.float32)

    def shape(self):
        """`blank` needs nothing but the spaces."""
        return {}

    @classmethod
    def blank(cls, spaces, shape):
        """A model to read a saved one into."""
        return cls(jnp.zeros(spaces.observation_size), jnp.zeros(spaces.observation_size))


@dataclass(frozen=True, kw_only=True)
class ExpertsBox(tacit.Method):
    """Settings; each is a field. Fields: margin: how far the box goes beyond the experts."""

    margin: float = 0.05

    name: ClassVar[str] = "experts-box"
    reported: ClassVar[tuple[str, ...]] = ("expert_cost",)

    def begin(self, inputs, experts, forward, *, key):
        """The box is known before anybody acts."""
        steps = np.asarray(experts.draw(10_000, np.random.default_rng(0)).observations)
        box = steps.min(axis=0) - self.margin, steps.max(axis=0) + self.margin
        return Learned(BoxModel(*map(jnp.asarray, box)), (), ())

    def judge(self, learned, rollout, moment):
        """What every step of the policy costs, with an axis for the one price."""
        cost = learned.model.cost(rollout.observations, rollout.actions, moment.confidence)
        return Judged(learned, np.asarray(cost)[..., None], np.asarray(rollout.rewards))

    def update(self, learned, given, *, key):
        """Nothing is learned from policies."""
        return learned, {}

    def experts_cost(self, learned, given, width):
        """What the experts spend: nothing, they are in the box."""
        return 0.0

    def allowance(self, expert_cost, confidence):
        """What the policy may spend, a step."""
        return expert_cost + 0.01


task = tacit.make("BlockedPoint")
expert = tacit.Expert(task, lambda seen: np.clip(10 * (np.array([-0.9, 0.5]) - seen), -1, 1))
demonstrations = tacit.collect(expert, 20, seed=1)
forward = tacit.PPO(steps=6400, worlds=16, rollout=50, minibatch=200)
result = tacit.infer(task, demonstrations, method=ExpertsBox(margin=0.02), forward=forward)

result.constraint.save("box.safetensors")
box = tacit.Constraint.load("box.safetensors").model
print(result.method, "allows x from", float(box.low[0]), "to", float(box.high[0]))
print("violation while training:", result.metrics["training_violation"])
