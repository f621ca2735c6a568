"""CA-ICRL by counting how far experts went, the default (Algorithm 1, ICML 2024; ours: the votes).

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

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.argument_checks import check_choice
from tacit.control.learner import Rollout
from tacit.control.settings import PPO
from tacit.inference.confidence.belief import READINGS, Reading
from tacit.inference.confidence.votes import COUNTED_VOTES, CountedVotes
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Inputs
from tacit.inference.method import Learned, Method, Round
from tacit.inference.reach.extent import LEVELS, RunningReach, followed, reach_of
from tacit.inference.reach.model import Reach, ReachModel
from tacit.inference.reach.quantities import Quantities

SHARE_OF_PROMISE, A_FEW = 1 / 4, 0.02


@dataclass(frozen=True)
class ReachCAICRL(Method):
    """Settings of CA-ICRL by reach.

    Fields:
        objective: what tells it from CA-ICRL with an encoder.
        reading: how a confidence reads a feasibility off the belief: `graded`, `hard` or `soft`;
            see `tacit.inference.confidence.belief`.
        votes: "visits": where one expert has been is allowed. "visits-fallible": experts may err,
            and what most of those who were tempted did not do is forbidden.
        ratios: further quantities, each one number of the observation divided by another, written
            as their places: ("22/6",) on the highway is the gap ahead as a time.
        about: places of the quantities that a rule may be about, ratios after the observation; None
            for all.
        able: whether the policy that is tempted begins as an imitation of the experts: where steps
            are too few to learn the task from nothing, and who cannot do it shows no will.
    """

    every: int = 1
    temptation: float = 0.25
    objective: Literal["reach"] = "reach"
    reading: Reading = "graded"
    votes: CountedVotes = "visits"
    ratios: tuple[str, ...] = ()
    about: tuple[int, ...] | None = None
    able: bool = False

    name: ClassVar[str] = "ca-icrl"
    only_feasible_rewards: ClassVar[bool] = True
    told: ClassVar[tuple[str, ...]] = ("rules", "expert_cost")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("objective", self.objective, ("reach",))
        check_choice("reading", self.reading, READINGS)
        check_choice("votes", self.votes, COUNTED_VOTES)
        for name, kind in (("ratios", str), ("about", int)):
            given = getattr(self, name)
            if isinstance(given, str | int):
                given = (given,)
            if given is not None:
                object.__setattr__(self, name, tuple(kind(part) for part in given))

    @property
    def any_confidence(self) -> bool:
        """Confidence is used after learning."""
        return True

    @property
    def free_temptation(self) -> bool:
        """Where experts err, it matters how many go where: what costs is not yet to be avoided."""
        return self.votes == "visits-fallible"

    @property
    def able_temptation(self) -> bool:
        """As asked for."""
        return self.able

    @property
    def quantities(self) -> Quantities:
        """What is measured, and what a rule may be about."""
        return Quantities.of(self.ratios, self.about)

    def number_of_costs(self, quantities: int) -> int:
        """One for each quantity: what is spent on one must not be taken from another."""
        return self.quantities.number(quantities)

    def start(
        self, inputs: Inputs, experts: ExpertSteps, forward: PPO, *, key: Key[Array, ""]
    ) -> Learned:
        """The experts are counted; nobody was tempted yet."""
        del key
        self.quantities.check(inputs.centre.shape[0])
        worlds = forward.intended or forward.worlds
        tempted = Reach.nowhere(self.quantities.number(inputs.centre.shape[0]), worlds)
        return self.counted(inputs, experts, tempted)

    def with_experts(self, learned: Learned, experts: ExpertSteps) -> Learned:
        """Other experts are counted; those who were tempted stay, and new episodes begin."""
        return self.counted(learned.model.inputs, experts, learned.model.tempted)

    def counted(self, inputs: Inputs, experts: ExpertSteps, tempted: Reach) -> Learned:
        """How far experts went, beside those who were tempted."""
        fallible = self.votes == "visits-fallible"
        reach, extremes = reach_of(experts, self.quantities, dwelling=fallible)
        model = ReachModel(
            inputs, reach, extremes, tempted, self.reading, self.votes, self.quantities
        )
        running = RunningReach.start(
            tempted.episodes, reach, experts.mean_return, LEVELS if fallible else 1
        )
        return Learned(model, (), running)

    def interrupted(self, learned: Learned) -> Learned:
        """The running episodes are forgotten, the ones before are not."""
        return learned._replace(memory=learned.memory.interrupted())

    def judge(
        self, learned: Learned, rollout: Rollout, confidence: float
    ) -> tuple[Learned, Float[np.ndarray, "T n Q"]]:
        """The cost of every quantity of every step; and how far the episodes went by now.

        As all learned costs, of the observation before the step: where an episode ends is charged
        to nobody.
        """
        costs = costs_of(learned.model, rollout.observations, confidence)
        worlds = learned.model.tempted.episodes
        intended = jax.tree.map(lambda field: np.asarray(field)[:, :worlds], rollout)
        measured = self.quantities.measured(jnp.asarray(intended.observations))
        intended = intended._replace(observations=measured)
        return learned._replace(memory=followed(learned.memory, intended)), np.asarray(costs)

    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Those who are tempted now add to those who were before."""
        del key
        tempted = learned.model.tempted.widened(learned.memory.reach())
        model = eqx.tree_at(lambda model: model.tempted, learned.model, tempted)
        rules = float(len(model.rules(given.confidence)))
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
