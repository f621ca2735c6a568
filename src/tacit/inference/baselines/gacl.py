"""GACL: generative adversarial constraint learning, GAIL (Ho and Ermon 2016) with a reward.

    repeat, after every rollout
        reward      <- r / scale + log D - mean log D
        policy      <- plain PPO, no multiplier
        D           <- gradient steps on  -E_experts[log D] - E_policy[log(1 - D)]

`scale` is the running deviation of the discounted sum of r, so that log D weighs the same on every
task. D sees the action (in the reference code an index slip hides it). The mean over the rollout is
ours: log D is negative, so that without it an episode that ends early is blamed less, and a walker
learns to fall.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.control.learner import Rollout
from tacit.control.networks import Moments, running_returns
from tacit.inference.baselines.bc2l import cross_entropy
from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.experts import ExpertSteps
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.inputs import Steps
from tacit.inference.method import Judged, Learned, Moment
from tacit.inference.trained_method import StepCosts

DISCOUNT = 0.99
SMALLEST = 1e-5


class RewardScale(NamedTuple):
    """Moments of the discounted sums of the true reward; `sums` [n, 1] of the running episodes."""

    moments: Moments
    sums: Float[Array, "n 1"]


@dataclass(frozen=True, kw_only=True)
class GACL(StepCosts):
    """The method `gacl`: a classifier of the experts' steps adds to the reward, and nothing costs.

    Fields:
        weight: of log D beside the reward.
    """

    every: int = 1
    passes: int = 2
    past: float = 0.0
    rounds: int = 1
    rows: int = 4096
    learning_rate: float = 1e-3
    weight: float = 1.0

    name: ClassVar[str] = "gacl"
    kind: ClassVar[type[ClassifierModel]] = ClassifierModel
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # it updates at every rollout anyway

    def new_memory(
        self, model: ClassifierModel, experts: ExpertSteps, worlds: int, *, key: Key[Array, ""]
    ) -> RewardScale:
        """No reward seen yet."""
        del model, experts, key
        return RewardScale(Moments.start(1), jnp.zeros((worlds, 1)))

    def number_of_costs(self, observed: int) -> int:
        """None: it changes the reward, and no price would shrink that."""
        del observed
        return 0

    def judge(self, learned: Learned, rollout: Rollout, moment: Moment) -> Judged:
        """No costs, and rewards r / scale + weight * (log D - its mean)."""
        del moment
        model, memory = learned.model, learned.memory
        rewards, memory = shaped_rewards(model, memory, rollout, self.weight)
        none = np.zeros((*rollout.rewards.shape, 0), np.float32)
        return Judged(learned._replace(memory=memory), none, np.asarray(rewards))

    def loss(self, model: ClassifierModel, batch: Minibatch) -> Float[Array, ""]:
        """The cross-entropy of telling experts from the policy."""
        return cross_entropy(model, batch.experts, batch.policy)


@jax.jit
def shaped_rewards(
    model: ClassifierModel, memory: RewardScale, rollout: Rollout, weight: float
) -> tuple[Float[Array, "T n"], RewardScale]:
    """The rewards to learn from, and the scale with this rollout added."""
    ended = rollout.terminated | rollout.truncated
    signals = jnp.asarray(rollout.rewards)[..., None]
    sums, returns = running_returns(memory.sums, signals, ended, jnp.array([DISCOUNT]))
    moments = memory.moments.updated(returns)
    steps = Steps(rollout.observations, rollout.actions, jnp.ones(ended.shape, bool))
    praise = jnp.log(jax.nn.sigmoid(model.logit(steps)) + SMALLEST)
    praise = praise - praise.mean()
    scaled = moments.rescale(signals)[..., 0]
    return scaled + weight * praise, RewardScale(moments, sums)
