"""CA-ICRL on tabular tasks with counted votes, by sampling alone: what the exact lab checks.

    tempted <- where soft PPO goes that has nothing to pay
    repeat three times                                                           (Algorithm 1)
        at each of five confidences, against the costs of the present belief
            policies <- soft PPO at a low price of cost and at a high one
            policies <- soft PPO in addition to the best mixture so far, at its price of cost
        tempted  <- the larger of tempted and where the best mixture of all policies so far goes

What exact control finds, both of two ways that are as good as each other, or sometimes going and
sometimes waiting, PPO does not: it settles on one of them. A mixture has both. What it would pay
for more budget, and what it does not do, say which policy it lacks (Frank and Wolfe; Dantzig and
Wolfe). The belief is the same for all confidences; `sampled_ending` acts on it at one.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.control.conduct import watch_policies
from tacit.control.policy_mixture import Mixture, pairs_of, soft_mixture, spent_by
from tacit.control.ppo import PPO
from tacit.control.sampled_planning import Orders, soft_policies
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import tabular_compiled
from tacit.errors import DivergenceError
from tacit.inference.confidence.belief import step_cost
from tacit.inference.confidence.votes import counted_votes
from tacit.inference.counts.counted import LEVELS
from tacit.inference.data_set import DataSet
from tacit.inference.sampling_plans import LEAST_PRICE, PLANS, SWEPT, Plan

backend = jax.default_backend
OF_PLANS = ("visits", "policies", "presence", "prices")


class SampledRounds:
    """The rounds of many data sets, side by side.

    All randomness comes from the seeds and the places of plans, so that `state` and `restore`
    continue bit for bit.

    Arguments:
        task: what policies act in; its true cost is not looked at.
        data_sets: one for each run.
        seeds: likewise.
        settings: of PPO, for one policy.
    """

    def __init__(
        self, task: TabularTask, data_sets: list[DataSet], seeds: list[int], settings: PPO
    ) -> None:
        self.task, self.settings, self.compiled = task, settings, tabular_compiled(task)
        self.keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        self.visitors = jnp.asarray(np.stack([data.visitors for data in data_sets]))
        self.numbers = jnp.asarray([float(data.number) for data in data_sets])
        self.tempted = np.zeros(self.visitors.shape, np.float32)
        # Of every plan where its policies go, what they do and where, and their price.
        runs, steps = (len(PLANS), len(seeds)), (task.horizon, task.number_of_states)
        self.visits = np.zeros((*runs, self.visitors.shape[1]), np.float32)
        self.policies = np.zeros((*runs, *steps, task.number_of_actions), np.float32)
        self.presence = np.zeros((*runs, *steps), np.float32)
        self.prices = np.zeros(runs, np.float32)
        self.iteration, self.seconds = 0, 0.0

    @property
    def finished(self) -> bool:
        """Whether all policies have been trained."""
        return self.iteration >= len(PLANS)

    @property
    def steps(self) -> int:
        """Environment steps of each run so far."""
        return self.iteration * self.settings.iterations * self.settings.batch

    def belief(self) -> tuple[Float[Array, "runs X"], Float[Array, "runs X"]]:
        """Alpha and beta of every run's queries, from the votes so far."""

        def votes(visitors: Array, number: Array, tempted: Array) -> tuple[Array, Array]:
            return counted_votes(visitors, number, tempted, "visits")

        return jax.vmap(votes)(self.visitors, self.numbers, jnp.asarray(self.tempted))

    def costs(self, level: float) -> Float[Array, "runs X"]:
        """What every query costs at a confidence, by the votes so far."""
        return step_cost(*self.belief(), level, "graded", self.task.budget)

    def next_plans(self) -> list[int]:
        """The places of those that are trained next: the rest of a round, if that is any faster."""
        number, rest = PLANS[self.iteration].round, range(self.iteration, len(PLANS))
        places = [place for place in rest if PLANS[place].round == number]
        return places if backend() != "cpu" else places[:1]

    def orders(self, plan: Plan) -> Orders:
        """What the policies of a plan are asked for, in every run."""
        costs, runs = self.costs(plan.level), len(self.keys)
        if plan.price is not None:
            nobody = jnp.zeros(self.policies.shape[1:])
            return Orders(costs, jnp.full(runs, plan.price), nobody)
        met = sum(other.round < plan.round for other in PLANS)
        mixtures = self.mixtures(plan.level, met)
        prices = [max(mixed.price, LEAST_PRICE) for mixed in mixtures]
        others = [
            np.tensordot(mixed.weights, self.pairs(run, met), 1)
            for run, mixed in enumerate(mixtures)
        ]
        return Orders(costs, jnp.asarray(prices), jnp.asarray(np.stack(others), jnp.float32))

    def advance(self) -> dict[str, float]:
        """Train the policies of the next plans; what is told are means over the runs."""
        began, places = time.perf_counter(), self.next_plans()
        each = [self.orders(PLANS[place]) for place in places]
        orders = Orders(*(jnp.concatenate(parts) for parts in zip(*each, strict=True)))
        keys = jnp.concatenate([self.keys_of(place) for place in places])
        temperature = float(self.task.temperature)
        policies = soft_policies(self.compiled, self.settings, temperature, orders, keys)
        conduct = watch_policies(self.compiled, policies, orders.costs, temperature)
        for name, values in {"policy": policies, **conduct._asdict()}.items():
            if not np.isfinite(np.asarray(values)).all():
                raise DivergenceError(
                    f"ca-icrl on {self.task.name} diverged: {name} is not finite after "
                    f"{self.iteration} of {len(PLANS)} policies; a lower learning_rate may help"
                )
        kept = (conduct.visits, policies, conduct.presence, orders.price)
        for name, values in zip(OF_PLANS, kept, strict=True):
            shape = (len(places), len(self.keys), *values.shape[1:])
            getattr(self, name)[places] = np.asarray(values).reshape(shape)
        self.iteration += len(places)
        self.tempt()
        self.seconds += time.perf_counter() - began
        return {
            "policies": float(self.iteration),
            "steps": self.steps,
            "reward": float(conduct.reward.mean()),
            "soft_return": float(conduct.soft_return.mean()),
            "cost": float(conduct.cost.mean()),
            "multiplier": float(orders.price.mean()),
            "seconds": self.seconds,
        }

    def keys_of(self, place: int) -> Key[Array, " runs"]:
        """Of the luck of each run with a plan."""
        return jax.vmap(lambda key: jax.random.fold_in(key, place))(self.keys)

    def tempt(self) -> None:
        """At the end of a sweep: where the best mixtures go, at all of its confidences."""
        if self.iteration == 1:
            self.tempted = self.visits[0].copy()
        if self.iteration not in SWEPT:
            return
        met, tempted = self.iteration, self.tempted.copy()
        for level in LEVELS:
            for run, mixed in enumerate(self.mixtures(level, met)):
                goes = mixed.weights @ self.visits[:met, run]
                tempted[run] = np.maximum(tempted[run], goes)
        self.tempted = tempted

    def mixtures(self, level: float, met: int) -> list[Mixture]:
        """Of each run the best mixture of its first policies at a confidence.

        Policies of early rounds did not know these costs, and may be right for them all the same.
        """
        found, temperature = [], float(self.task.temperature)
        for run, costs in enumerate(np.asarray(self.costs(level), float)):
            pairs = self.pairs(run, met)
            spent = spent_by(pairs, costs)
            found.append(
                soft_mixture(pairs, self.task.rewards, temperature, spent, self.task.budget)
            )
        return found

    def pairs(self, run: int, met: int) -> Float[np.ndarray, "k H S A"]:
        """How often the first policies of a run are in each state and take each action."""
        return pairs_of(self.policies[:met, run], self.presence[:met, run])

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as one tree of arrays."""
        return {
            "iteration": self.iteration,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in ("tempted", *OF_PLANS)},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration, self.seconds = int(state["iteration"]), float(state["seconds"])
        for name in ("tempted", *OF_PLANS):
            setattr(self, name, np.array(state[name], np.float32))
