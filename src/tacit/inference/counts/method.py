"""What both methods of tables share: from a belief to a constraint and the best policy."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

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
from tacit.inference.constraint import Constraint
from tacit.inference.counts.model import TableModel
from tacit.inference.counts.visits import check_experts, visits_of
from tacit.inference.experts import fingerprint
from tacit.inference.method import ExactMethod
from tacit.inference.result import Result
from tacit.precision import in_double_precision
from tacit.runs.settings_file import installed_versions


@dataclass(frozen=True, kw_only=True)
class TableMethod(ExactMethod):
    """What both methods of tables share.

    Fields:
        reading: how a confidence level reads the belief: `graded`, `hard` or `soft`; see
            `tacit.inference.confidence.belief`.
    """

    reading: Reading = "graded"

    heeds_confidence: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("reading", self.reading, READINGS)

    @property
    def visits_prove(self) -> bool:
        """Whether one visit proves that a query is allowed, also one by an expert who erred."""
        return False

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
        check_experts(demonstrations, proofs=self.visits_prove)
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
            settings=self.described(task, demonstrations, confidence, seed),
            task=task,
        )

    def described(
        self, task: TabularTask, demonstrations: Trajectories, confidence: float, seed: int
    ) -> dict[str, Any]:
        """All that is needed to do it again."""
        return {
            "task": task.name,
            "tables_sha256": tables_sha256(task),
            "method": self.name,
            "settings": self.settings(),
            "confidence": float(confidence),
            "seed": seed,
            "demonstrations": len(demonstrations),
            "demonstrations_sha256": fingerprint(demonstrations),
            "versions": installed_versions(),
        }


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
