"""Limits on single numbers, by counting how far experts went: the default on simulators.

Of the family of CA-ICRL (Algorithm 1, ICML 2024); the votes are ours:

    for_i(v)  = expert i passed the value v of a quantity
    against   = where nobody did: N times the share of a policy's episodes that would
    alpha = 1 + for,   beta = 1 + against                               (section 3.1)
    allowed  <=>  P(phi >= 1/2) >= lambda                               (equation 9 at 1/2)

    repeat
        policy   <- PPO-Lagrange, a price for each quantity; what it earns counts as far as
                    the step is feasible, so that nothing draws it back to where it was tempted
        tempted  <- where the policy's episodes dwell when it does not explore, the furthest
                    of all rounds: what it means to do, not what it tries out
        budget   <- share of episodes that may leave the allowed values of a quantity:
                    as many as of fresh experts, 1 / (N + 1), and a few more,
                    but never more than a quarter of what the promise leaves, 1 - lambda
    but after `temptation` of the steps
        policy   <- an imitation of the experts: it has shown where it is drawn

The belief is counted, not trained: nothing in it could forget, saturate or imitate. What experts
and policies do differently matters only where the one goes further than all of the other, and
stays there; where experts err (`votes="visits-fallible"`), where policies that pay nothing for it
go further than most of them. lambda is used when the constraint is read off, so one belief answers
at every confidence.
"""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from tacit.argument_checks import check_choice
from tacit.control.learner import Rollout
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask
from tacit.inference.confidence.belief import COUNTED_VOTES, READINGS, CountedVotes, Reading
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Inputs
from tacit.inference.method import Judged, Learned, Method, Moment, Round
from tacit.inference.reach.extent import LEVELS, RunningExtent, extent_of, followed
from tacit.inference.reach.model import Extent, ReachModel
from tacit.inference.reach.quantities import Quantities

Start = Literal["nothing", "clone"]
STARTS: tuple[Start, ...] = get_args(Start)
SHARE_OF_PROMISE, A_FEW = 1 / 4, 0.02


@dataclass(frozen=True, kw_only=True)
class Reach(Method):
    """The method `reach`, the default on simulators: limits that the experts did not go beyond.

    Fields:
        reading: how a confidence reads a feasibility off the belief: `graded`, `hard` or `soft`;
            see `tacit.inference.confidence.belief`.
        votes: "visits": where one expert has been is allowed. "visits-fallible": experts may err,
            and what most of those who were tempted did not do is forbidden.
        ratios: further quantities, each one number of the observation divided by another, written
            as their places: ("22/6",) on the highway is the gap ahead as a time.
        about: places of the quantities that a rule may be about, ratios after the observation; None
            for all.
        start: how the policy that is to be tempted begins: from "nothing", or as a "clone" of the
            experts, where the steps are too few to learn the task from nothing: a policy that
            cannot do the task shows no aim.
    """

    every: int = 1
    temptation: float = 0.25
    reading: Reading = "graded"
    votes: CountedVotes = "visits"
    ratios: tuple[str, ...] = ()
    about: tuple[int, ...] | None = None
    start: Start = "nothing"

    name: ClassVar[str] = "reach"
    heeds_confidence: ClassVar[bool] = True
    budget_per: ClassVar[Literal["step", "worst"]] = "worst"
    reported: ClassVar[tuple[str, ...]] = ("rules", "expert_cost")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("reading", self.reading, READINGS)
        check_choice("votes", self.votes, COUNTED_VOTES)
        check_choice("start", self.start, STARTS)
        for name, kind in (("ratios", str), ("about", int)):
            given = getattr(self, name)
            if isinstance(given, str | int):
                given = (given,)
            if given is not None:
                object.__setattr__(self, name, tuple(kind(part) for part in given))

    @classmethod
    def forward(cls, task: SimulatedTask) -> PPO:
        """As for all methods, but a price that follows the share of episodes beyond a limit."""
        # Slow: a high price too early, and nothing else is learned than to keep the rule.
        price = Multiplier(kind="share", budget_per="worst", start=5.0, rate=0.03, largest=10.0)
        base = super().forward(task)
        return dataclasses.replace(base, multiplier=price, intent=0.25, relative_costs=False)

    @property
    def any_confidence(self) -> bool:
        """Confidence is used after learning."""
        return True

    @cached_property
    def quantities(self) -> Quantities:
        """What is measured, and what a rule may be about."""
        return Quantities.of(self.ratios, self.about)

    def imitates_at(self, iterations: int) -> tuple[int, ...]:
        """After the exploration phase, and at the start where that is asked for."""
        return ((0,) if self.start == "clone" else ()) + super().imitates_at(iterations)

    def check_sizes(self, observed: int) -> None:
        """There must be the quantities that the settings name."""
        self.quantities.check(observed)

    def number_of_costs(self, observed: int) -> int:
        """One for each quantity: what is spent on one must not be taken from another."""
        return self.quantities.number(observed)

    def begin(
        self, inputs: Inputs, experts: ExpertSteps, forward: PPO, *, key: Key[Array, ""]
    ) -> Learned:
        """The experts are counted; no policy was tempted yet."""
        del key
        worlds = forward.intended or forward.worlds
        tempted = Extent.nowhere(self.quantities.number(inputs.centre.shape[0]), worlds)
        return self.counted(inputs, experts, tempted)

    def with_experts(self, learned: Learned, experts: ExpertSteps) -> Learned:
        """Other experts are counted; what policies were tempted by stays; new episodes begin."""
        return self.counted(learned.model.inputs, experts, learned.model.tempted)

    def counted(self, inputs: Inputs, experts: ExpertSteps, tempted: Extent) -> Learned:
        """How far experts went, beside how far tempted policies went."""
        fallible = self.votes == "visits-fallible"
        reach, extremes = extent_of(experts, self.quantities, dwelling=fallible)
        model = ReachModel(
            inputs, reach, extremes, tempted, self.reading, self.votes, self.quantities
        )
        running = RunningExtent.start(
            tempted.episodes, reach, experts.mean_return, LEVELS if fallible else 1
        )
        return Learned(model, (), running)

    def forget_episodes(self, learned: Learned) -> Learned:
        """The running episodes are forgotten, the ones before are not."""
        return learned._replace(memory=learned.memory.forget_running())

    def judge(self, learned: Learned, rollout: Rollout, moment: Moment) -> Judged:
        """The cost of every quantity of every step; and how far the episodes went by now.

        As all learned costs, they are of the observation before the step, so that the place where
        an episode ends is charged to nobody. What is earned counts as far as the step is feasible;
        what is lost counts in full. Where experts may err, nothing costs while the policy explores:
        it matters how many policies go where, and so they must not avoid it yet.
        """
        costs = np.asarray(costs_of(learned.model, rollout.observations, moment.confidence))
        if self.votes == "visits-fallible" and moment.exploring:
            costs = np.zeros_like(costs)
        rewards = np.asarray(rollout.rewards)
        rewards = np.where(rewards > 0, rewards * (1 - costs.max(axis=-1)), rewards)
        worlds = learned.model.tempted.episodes
        intended = jax.tree.map(lambda field: np.asarray(field)[:, :worlds], rollout)
        measured = self.quantities.measured(jnp.asarray(intended.observations))
        running = followed(learned.memory, intended._replace(observations=measured))
        return Judged(learned._replace(memory=running), costs, rewards)

    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Add the policies that are tempted now to those that were before."""
        del key
        tempted = learned.model.tempted.widened(learned.memory.extent())
        model = eqx.tree_at(lambda model: model.tempted, learned.model, tempted)
        rules = float(len(model.rules(given.confidence, ())))
        return learned._replace(model=model), {"rules": rules}

    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """The share of fresh experts who would go further than all N on one side: 1 / (N + 1)."""
        del learned, width
        return 1 / (len(given.experts) + 1)

    def allowance(self, expert_cost: float, confidence: float) -> float:
        """The budget, within what the promise leaves."""
        return min(expert_cost + A_FEW, SHARE_OF_PROMISE * (1 - confidence))


@jax.jit
def costs_of(model: Any, observations: Array, confidence: float) -> Array:
    """`ReachModel.costs`, compiled."""
    return model.costs(observations, confidence)
