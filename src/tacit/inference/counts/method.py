"""The methods of tables, exact: CA-ICRL (Algorithm 1) with votes counted, or learned."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from tacit.argument_checks import check_choice, check_confidence
from tacit.control.planning import Dynamics, Plan, constrained_plan
from tacit.control.table_policy import TablePolicy
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import tables_sha256
from tacit.inference.confidence.belief import READINGS, Reading, forward_budget, step_cost
from tacit.inference.confidence.quantile_table import QuantileTable
from tacit.inference.confidence.votes import (
    COUNTED_VOTES,
    LEARNED_VOTES,
    CountedVotes,
    LearnedVotes,
)
from tacit.inference.constraint import Constraint
from tacit.inference.counts.counted import count_votes
from tacit.inference.counts.likelihood import learn_votes
from tacit.inference.counts.model import TableModel
from tacit.inference.counts.visits import check_experts, visits_of
from tacit.inference.experts import fingerprint
from tacit.inference.method import ExactMethod
from tacit.inference.result import Result
from tacit.precision import in_double_precision
from tacit.runs.settings_file import installed_versions

Objective = Literal["evidence", "quantile"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


@dataclass(frozen=True, kw_only=True)
class TableMethod(ExactMethod):
    """What both methods of tables share.

    Fields:
        reading: how a confidence level reads the belief: `graded`, `hard` or `soft`; see
            `tacit.inference.confidence.belief`.
    """

    reading: Reading = "graded"

    def __post_init__(self) -> None:
        check_choice("reading", self.reading, READINGS)

    @abstractmethod
    def belief(
        self,
        dynamics: Dynamics,
        visitors: jax.Array,
        mean_visits: jax.Array,
        number: float,
        *,
        task: TabularTask,
        confidence: float,
    ) -> Any:
        """Alpha, beta and more of one data set; pure, so that data sets may be a `vmap` axis.

        Arguments:
            dynamics: of the task.
            visitors: [X] how many experts visited each query.
            mean_visits: [X] steps that an expert spends at each query, on average.
            number: N.
            task: the table.
            confidence: lambda, for a belief that is trained for one.
        """

    @abstractmethod
    def facts(self, belief: Any) -> dict[str, float]:
        """What to tell of how the belief came about."""

    def constraint(self, task: TabularTask, alpha: Any, beta: Any, confidence: float) -> Constraint:
        """A belief about a task's queries as a constraint."""
        model = TableModel(
            alpha=np.asarray(alpha),
            beta=np.asarray(beta),
            reading=self.reading,
            budget=float(task.budget),
            number_of_actions=task.number_of_actions,
            rule_on=task.rule_on or "state",
        )
        return Constraint(
            model=model,
            confidence=float(confidence),
            spaces=model.spaces(),
            any_confidence=self.any_confidence,
            facts={"method": self.name, "task": task.name},
            names=("state",),
        )

    @in_double_precision
    def learn(
        self, task: TabularTask, demonstrations: Trajectories, confidence: float, seed: int
    ) -> Result:
        """The rule and the best policy that keeps it; `seed` is kept only, as nothing is drawn."""
        check_confidence(confidence)
        check_experts(demonstrations, proofs=getattr(self, "votes", "") == "visits")
        visits, dynamics = visits_of(task, demonstrations), Dynamics.of(task)
        mean_visits = visits.mean(axis=0)
        belief = self.belief(
            dynamics,
            jnp.asarray((visits > 0).sum(axis=0).astype(float)),
            jnp.asarray(mean_visits),
            float(len(visits)),
            task=task,
            confidence=confidence,
        )
        constraint = self.constraint(task, belief.alpha, belief.beta, confidence)
        plan = forward_control(
            dynamics,
            jnp.asarray(belief.alpha),
            jnp.asarray(belief.beta),
            jnp.asarray(mean_visits),
            float(confidence),
            task.budget,
            reading=self.reading,
            horizon=task.horizon,
        )
        model = constraint.model
        assert isinstance(model, TableModel)
        return Result(
            constraint=constraint,
            policy=TablePolicy(np.asarray(plan.policy)),
            metrics={
                **self.facts(belief),
                "learned_cost": float(plan.cost),
                "multiplier": float(plan.multiplier),
                "expert_cost": float(mean_visits @ model.costs(confidence)),
                "allowed_share": float(model.allowed(confidence).mean()),
            },
            settings={
                "task": task.name,
                "tables_sha256": tables_sha256(task),
                "method": self.name,
                "settings": self.settings(),
                "confidence": float(confidence),
                "seed": seed,
                "demonstrations": len(demonstrations),
                "demonstrations_sha256": fingerprint(demonstrations),
                "versions": installed_versions(),
            },
            task=task,
        )


@dataclass(frozen=True, kw_only=True)
class Counts(TableMethod):
    """The method `counts`, the default on tables: votes are counted, and nothing is trained.

    Fields:
        votes: "visits": a state that one expert visited is allowed. "visits-fallible": experts may
            err, and those who stayed away speak against a state even where others went.
    """

    votes: CountedVotes = "visits"

    name: ClassVar[str] = "counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("votes", self.votes, COUNTED_VOTES)

    @property
    def any_confidence(self) -> bool:
        """Confidence is used after counting."""
        return True

    def belief(
        self,
        dynamics: Dynamics,
        visitors: jax.Array,
        mean_visits: jax.Array,
        number: float,
        *,
        task: TabularTask,
        confidence: float,
    ) -> Any:
        """Count the votes; see `count_votes`."""
        del mean_visits, confidence
        return count_votes(
            dynamics,
            visitors,
            number,
            task.budget,
            horizon=task.horizon,
            on_pairs=task.rule_on == "pair",
            votes=self.votes,
        )

    def facts(self, belief: Any) -> dict[str, float]:
        """How many rounds it took until no policy found a new way."""
        return {"rounds": float(belief.rounds)}


@dataclass(frozen=True, kw_only=True)
class Likelihood(TableMethod):
    """The method `likelihood`: votes are learned by the paper's gradient, with nothing sampled.

    Fields:
        objective: `evidence`, a variational bound, or `quantile`, the paper's equation 8.
        votes: `independent`, two sigmoids (the paper), or `abstain`, a softmax with no opinion.
    """

    objective: Objective = "evidence"
    votes: LearnedVotes = "independent"

    name: ClassVar[str] = "likelihood"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("votes", self.votes, LEARNED_VOTES)

    @property
    def any_confidence(self) -> bool:
        """The paper's objective trains for one confidence."""
        return self.objective != "quantile"

    def belief(
        self,
        dynamics: Dynamics,
        visitors: jax.Array,
        mean_visits: jax.Array,
        number: float,
        *,
        task: TabularTask,
        confidence: float,
    ) -> Any:
        """Learn the votes; see `learn_votes`."""
        quantile = self.objective == "quantile"
        return learn_votes(
            dynamics,
            visitors,
            mean_visits,
            number,
            horizon=task.horizon,
            votes=self.votes,
            table=QuantileTable.build(1 - confidence) if quantile else None,
        )

    def facts(self, belief: Any) -> dict[str, float]:
        """How far the model's visits are from the experts'."""
        return {"visit_gap": float(belief.gap)}


@partial(jax.jit, static_argnames=("reading", "horizon"))
def forward_control(
    dynamics: Dynamics,
    alpha: jax.Array,
    beta: jax.Array,
    mean_visits: jax.Array,
    confidence: jax.Array | float,
    budget: jax.Array | float,
    *,
    reading: Reading,
    horizon: int,
) -> Plan:
    """The best policy under the constraint at a confidence: the forward step of Algorithm 1.

    With the soft reading even the experts' own steps cost something, so that its budget is stated
    relative to them: epsilon plus the cost of the mean demonstration. The other readings charge
    nothing for what the experts have proved and keep to epsilon.
    """
    states, actions, _ = dynamics.transitions.shape
    budget = forward_budget(budget, confidence)
    cost = step_cost(alpha, beta, confidence, reading, budget)
    if reading == "soft":
        budget = budget + (mean_visits * cost).sum()
    costs = jnp.broadcast_to(cost.reshape(states, -1), (states, actions))
    return constrained_plan(dynamics, costs, budget, horizon)
