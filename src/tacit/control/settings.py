"""Settings of constrained proximal policy optimisation, and their checks."""

import math
from dataclasses import dataclass, field

import optax
from jaxtyping import Array, Float, Int

from tacit.argument_checks import check_count
from tacit.control.multiplier import Multiplier
from tacit.errors import ArgumentError


@dataclass(frozen=True)
class PPO:
    """Settings of PPO-Lagrange and PPO-Penalty.

    Fields:
        steps: environment steps of the whole run.
        worlds: number of worlds that are stepped together.
        rollout: steps of every world between two updates.
        minibatch: steps per gradient step; divides worlds * rollout.
        epochs: passes over the batch per update, fewer when `target_kl` stops them.
        learning_rate: of Adam, for policy and critics.
        final_learning_rate: the share of it that is left at the end; it falls in a straight line.
        clip: how far the probability ratio may move before its gradient is cut.
        target_kl: the policy's epochs stop once KL(old, new) exceeds 1.5 times this; None: never.
        entropy_weight: weight of the policy's entropy in its objective.
        discount: of later rewards.
        cost_discount: of later costs.
        reward_trace: lambda of the reward's advantage estimate.
        cost_trace: lambda of the costs' advantage estimates.
        hidden: units of each hidden layer, the same for policy and critics.
        smallest_std: floor on the standard deviation of continuous actions.
        largest_gradient: gradients are scaled down to this norm, policy and critics each.
        normalise_observations: by their running mean and variance.
        normalise_rewards: by the running scale of their discounted sum.
        normalise_costs: by the running scale of their discounted sum; budgets and the multiplier
            always see true costs.
        relative_costs: whether the mean cost of the rollout is subtracted from the cost of each
            step, and cost advantages are scaled to a deviation of one, as those of the reward are.
            A learned cost needs this, because it is high everywhere as long as the policy is unlike
            the experts: ending an episode early would save cost, and the differences between
            steps would vanish beside those of the reward. Budgets see the costs as they are.
            None for yes where the cost is learned by inference, and no where it is given.
        charge_once: whether a step is charged only for the amount by which it is worse than all
            steps before it in its episode, up to 1. The critic of a cost of 0 or 1 then gives the
            (discounted) probability that the rule will still be broken. This helps, with a
            `cost_discount` near one, where noise can break the rule. Cost advantages, which are
            small then, are scaled as above.
        intent: share of the worlds in which the policy acts without exploration, to tell what it
            aims at from what it tries. These worlds teach the critics only: as samples of the
            policy, actions without noise would suggest that noise is bad.
        multiplier: how the price of cost is set.
    """

    steps: int = 1_000_000
    worlds: int = 64
    rollout: int = 128
    minibatch: int = 64
    epochs: int = 10
    learning_rate: float = 3e-4
    final_learning_rate: float = 1.0
    clip: float = 0.2
    target_kl: float | None = 0.01
    entropy_weight: float = 0.0
    discount: float = 0.99
    cost_discount: float = 0.99
    reward_trace: float = 0.95
    cost_trace: float = 0.95
    hidden: tuple[int, ...] = (64, 64, 64)
    smallest_std: float = 0.01
    largest_gradient: float = 0.5
    normalise_observations: bool = True
    normalise_rewards: bool = True
    normalise_costs: bool = True
    relative_costs: bool | None = None
    charge_once: bool = False
    intent: float = 0.0
    multiplier: Multiplier = field(default_factory=Multiplier)

    def __post_init__(self) -> None:
        self.check_kinds()
        for name in ("steps", "worlds", "rollout", "minibatch", "epochs"):
            check_count(name, getattr(self, name))
        if self.batch % self.minibatch:
            raise ArgumentError(
                f"minibatch {self.minibatch} does not divide the batch of {self.worlds} worlds * "
                f"{self.rollout} steps = {self.batch}"
            )
        shares = ("discount", "cost_discount", "reward_trace", "cost_trace", "final_learning_rate")
        for name in shares:
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{name} must lie in [0, 1], not {getattr(self, name)!r}")
        if self.charge_once and self.relative_costs:
            raise ArgumentError("charge_once and relative_costs exclude each other")
        if not 0 <= self.intent < 1:
            raise ArgumentError(f"intent must lie in [0, 1), not {self.intent!r}")
        for name in ("learning_rate", "clip", "smallest_std", "largest_gradient", "target_kl"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(f"{name} must be above 0 and finite, not {value!r}")
        if not 0 <= self.entropy_weight < math.inf:
            raise ArgumentError(f"entropy_weight must be at least 0, not {self.entropy_weight!r}")

    def check_kinds(self) -> None:
        """Raise an error unless `multiplier` and `hidden` have the right types."""
        if not isinstance(self.multiplier, Multiplier):
            raise ArgumentError(f"multiplier must be a Multiplier, not {self.multiplier!r}")
        if not isinstance(self.hidden, tuple | list):
            raise ArgumentError(f"hidden must be a tuple such as (64, 64), not {self.hidden!r}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            check_count("hidden", units)

    @property
    def scales_costs(self) -> bool:
        """Whether cost advantages have a deviation of one, as those of the reward have."""
        return bool(self.relative_costs or self.charge_once)

    @property
    def batch(self) -> int:
        """Steps per update."""
        return self.worlds * self.rollout

    @property
    def intended(self) -> int:
        """Number of worlds without exploration; they are the first ones."""
        if not self.intent:
            return 0
        return max(1, min(round(self.intent * self.worlds), self.worlds - 1))

    @property
    def iterations(self) -> int:
        """Updates of the whole run, the last one included when steps do not divide evenly."""
        return -(-self.steps // self.batch)

    def optimiser(self) -> optax.GradientTransformation:
        """Adam's directions on clipped gradients, to be multiplied by the learning rate."""
        return optax.chain(
            optax.clip_by_global_norm(self.largest_gradient), optax.scale_by_adam(eps=1e-5)
        )

    def rate(self, updates: Int[Array, ""]) -> Float[Array, ""]:
        """The learning rate after a number of updates.

        It follows updates and not gradient steps, of which there are fewer where the KL stops them.
        """
        passed = updates / self.iterations
        return self.learning_rate * (1 - (1 - self.final_learning_rate) * passed)
