"""CA-ICRL on tabular tasks with counted votes, by sampling alone: what the exact lab checks.

    tempted <- 0
    repeat, first where nothing costs and then three times                   (Algorithm 1)
        policies <- soft PPO from the beginning, against the costs of the present belief at each
                    of five confidences
        tempted  <- the larger of tempted and the share of their episodes that visit each query
    at the confidence that was asked for, at prices from low to high
        policy   <- soft PPO that begins as the experts do; and once knowing nothing
    the best mixture of all policies that were met, within the budget

Every round begins anew: a policy that has settled on a way does not leave it for one that it has
stopped trying. Those that are tempted know nothing, as an imitation of the experts would never find
what tempts. At the end an imitation is the better beginning; but where too little is proved to go
anywhere, it goes on all the same, and a policy that knows nothing finds that waiting is cheaper.
What exact control finds in between, sometimes going and sometimes waiting, PPO does not: it settles
on one of them. A mixture has both.
"""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tacit.constraints.belief import forward_budget, step_cost
from tacit.constraints.votes import counted_votes
from tacit.control.conduct import Conduct, watch_policies
from tacit.control.policy_mixture import best_mixture, mixed_policy, soft_mixture
from tacit.control.ppo import PPO
from tacit.control.sampled_planning import Orders, Played, play_rounds
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_compiled import tabular_compiled
from tacit.errors import ArgumentError, DivergenceError
from tacit.inference.counted_belief import LEVELS
from tacit.inference.data_set import DataSet
from tacit.inference.round_settings import TEMPTING_PRICE

TEMPTING = (None, *LEVELS, *LEVELS, *LEVELS)
"""The confidence of every round that looks for temptation; at None nothing costs. All levels face
one belief, as in the exact computation: who learns at once what the level before has found is
tempted by less."""
SWEEPS = tuple(range(1, len(TEMPTING) + 1, len(LEVELS)))
"""After how many rounds what was found begins to count."""
PRICES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Of cost, for policies that begin as imitations; one that knows nothing has the highest."""
ENDS = (*((True, price) for price in PRICES), (False, PRICES[-1]))
"""Whether each of the last rounds begins as an imitation, and its price."""
EFFORT = (1,) * len(TEMPTING) + (2,) * len(ENDS)
"""How many times the steps of the settings each round takes: what is kept should be well made."""
ROUNDS = len(EFFORT)

OF_ROUNDS = ("visits", "policies", "presence", "prices")


class Ending(NamedTuple):
    """What a run ends with.

    Fields:
        policy: one that does what the mixture of those of k rounds does.
        weights: how often each is drawn.
        spent: what each costs.
        prices: what cost was worth to each.
    """

    policy: Float[np.ndarray, "H S A"]
    weights: Float[np.ndarray, " k"]
    spent: Float[np.ndarray, " k"]
    prices: Float[np.ndarray, " k"]


class SampledRounds:
    """The rounds of many data sets at their confidences, side by side.

    All randomness comes from the seeds and the number of the round, so that `state` and `restore`
    continue bit for bit, between rounds.

    Arguments:
        task: what policies act in; its true cost is not looked at.
        data_sets: one for each run.
        confidences: likewise.
        seeds: likewise.
        settings: of PPO, for one round.
    """

    def __init__(
        self,
        task: TabularTask,
        data_sets: list[DataSet],
        confidences: list[float],
        seeds: list[int],
        settings: PPO,
    ) -> None:
        self.task, self.settings = task, settings
        self.data_sets, self.seeds = data_sets, seeds
        self.compiled = tabular_compiled(task)
        self.confidences = jnp.asarray(confidences, jnp.float32)
        self.keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        self.visitors = jnp.asarray(np.stack([data.visitors for data in data_sets]))
        self.numbers = jnp.asarray([float(data.number) for data in data_sets])
        self.experts = jnp.asarray(np.stack([data.actions for data in data_sets]))
        runs, shape = len(data_sets), self.experts.shape[1:]
        self.tempted = np.zeros(self.visitors.shape, np.float32)
        # Of every round where its policies go, what they do and where, and their price.
        self.visits = np.zeros((ROUNDS, *self.visitors.shape), np.float32)
        self.policies = np.zeros((ROUNDS, runs, *shape), np.float32)
        self.presence = np.zeros((ROUNDS, runs, *shape[:2]), np.float32)
        self.prices = np.zeros((ROUNDS, runs), np.float32)
        self.iteration, self.seconds = 0, 0.0

    def at(self, runs: list[int], confidences: list[float]) -> "SampledRounds":
        """These runs, a run as often as it is named, so far and from here at other confidences.

        Temptation is the same for all of them: it need be found once.
        """
        if self.iteration > len(TEMPTING):
            raise ArgumentError("the rounds at the confidence of each run have begun")
        other = SampledRounds(
            self.task,
            [self.data_sets[run] for run in runs],
            confidences,
            [self.seeds[run] for run in runs],
            self.settings,
        )
        played = {name: getattr(self, name)[:, runs] for name in OF_ROUNDS}
        other.restore({**self.state(), **played, "tempted": self.tempted[runs]})
        return other

    @property
    def finished(self) -> bool:
        """Whether all rounds have been played."""
        return self.iteration >= ROUNDS

    @property
    def steps(self) -> int:
        """Environment steps of each run so far."""
        return sum(EFFORT[: self.iteration]) * self.settings.iterations * self.settings.batch

    @property
    def budgets(self) -> Float[Array, " runs"]:
        """What each run may cost at its confidence."""
        return jax.vmap(lambda level: forward_budget(self.task.budget, level))(self.confidences)

    def belief(self) -> tuple[Array, Array]:
        """Alpha and beta of every run's queries, from the votes so far."""

        def votes(visitors: Array, number: Array, tempted: Array) -> tuple[Array, Array]:
            return counted_votes(visitors, number, tempted, "visits")

        return jax.vmap(votes)(self.visitors, self.numbers, jnp.asarray(self.tempted))

    def costs(self, levels: Float[Array, " runs"]) -> Float[Array, "runs X"]:
        """What every query costs at a confidence of each run, by the votes so far."""

        def cost(alpha: Array, beta: Array, level: Array) -> Array:
            return step_cost(alpha, beta, level, "graded", self.task.budget)

        return jax.vmap(cost)(*self.belief(), levels)

    def orders(self) -> Orders:
        """What the next round is to do."""
        levels, end = self.confidences, self.iteration - len(TEMPTING)
        tempting = end < 0
        imitate, price = (False, TEMPTING_PRICE) if tempting else ENDS[end]
        free = tempting and TEMPTING[self.iteration] is None
        if tempting:
            levels = jnp.full_like(levels, TEMPTING[self.iteration] or 0.5)
        costs = self.costs(levels)
        return Orders(
            costs=jnp.zeros_like(costs) if free else costs,
            budget=jnp.full_like(levels, self.task.budget) if tempting else self.budgets,
            price=jnp.full_like(levels, price),
            firm=jnp.full(levels.shape, not tempting),
            imitate=jnp.full(levels.shape, imitate),
            experts=self.experts,
        )

    def advance(self) -> dict[str, float]:
        """One round; what is told are means over the runs."""
        began, place = time.perf_counter(), self.iteration
        keys = jax.vmap(lambda key: jax.random.fold_in(key, place))(self.keys)
        settings = replace(self.settings, steps=EFFORT[place] * self.settings.steps)
        orders, temperature = self.orders(), float(self.task.temperature)
        played = play_rounds(self.compiled, settings, temperature, orders, keys)
        conduct = watch_policies(self.compiled, played.policy, orders.costs, temperature)
        self.check(played, conduct)
        self.visits[place] = np.asarray(conduct.visits)
        self.policies[place] = np.asarray(played.policy)
        self.presence[place] = np.asarray(conduct.presence)
        self.prices[place] = np.asarray(played.price)
        self.iteration += 1
        if self.iteration in SWEEPS:
            self.tempt()
        self.seconds += time.perf_counter() - began
        return {
            "round": float(self.iteration),
            "steps": self.steps,
            "reward": float(conduct.reward.mean()),
            "soft_return": float(conduct.soft_return.mean()),
            "cost": float(conduct.cost.mean()),
            "multiplier": float(played.price.mean()),
            "seconds": self.seconds,
        }

    def check(self, played: Played, conduct: Conduct) -> None:
        """Raise an error that names what is no number, and when."""
        named = {**played._asdict(), **conduct._asdict()}
        for name, values in named.items():
            if not np.isfinite(np.asarray(values)).all():
                raise DivergenceError(
                    f"ca-icrl on {self.task.name} diverged: {name} is not finite in round "
                    f"{self.iteration + 1} of {ROUNDS}; a lower learning_rate may help"
                )

    def tempt(self) -> None:
        """Where policies go at each confidence of a sweep, none of them above the budget.

        They are the best mixture of all so far, as PPO settles on one of the ways that are as good
        as each other; and as much of each new one as the budget leaves: who spends more goes where
        nobody is tempted to, and a way that is not the best is a way all the same.
        """
        if self.iteration == 1:
            self.tempted = self.visits[0].copy()
            return
        met, tempted = np.arange(self.iteration), self.tempted.copy()
        for new, level in zip(met[-len(LEVELS) :], LEVELS, strict=True):
            costs = np.asarray(self.costs(jnp.full_like(self.confidences, level)), float)
            for run, charged in enumerate(costs):
                best, spent = self.mixture(run, charged, self.task.budget)
                alone = best_mixture(spent, met == new, self.task.budget)
                visits = np.stack([best, alone]) @ self.visits[met, run]
                tempted[run] = np.maximum(tempted[run], visits.max(axis=0))
        self.tempted = tempted

    def mixture(
        self, run: int, costs: Float[np.ndarray, " X"], budget: float
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """How often the policy of each round is drawn in the best mixture; and what each costs.

        Policies of early rounds did not know these costs, and may be right for them all the same.
        """
        states, actions = self.task.number_of_states, self.task.number_of_actions
        charged = np.broadcast_to(costs.reshape(states, -1), (states, actions))
        met = slice(0, self.iteration)
        pairs = self.presence[met, run, :, :, None] * self.policies[met, run]
        spent = (pairs * charged).sum(axis=(1, 2, 3))
        rewards, temperature = self.task.rewards, float(self.task.temperature)
        return soft_mixture(pairs, rewards, temperature, spent, budget), spent

    def ending(self, run: int) -> Ending:
        """What a run ends with: the best mixture at its confidence, by the final belief."""
        costs = np.asarray(self.costs(self.confidences)[run], float)
        weights, spent = self.mixture(run, costs, float(self.budgets[run]))
        policy = mixed_policy(self.policies[:, run], self.presence[:, run], weights)
        return Ending(policy, weights, spent, self.prices[:, run])

    def facts(self, ending: Ending) -> dict[str, float]:
        """What is told of a run at the end."""
        return {
            "rounds": float(self.iteration),
            "learned_cost": float(ending.weights @ ending.spent),
            "multiplier": float(ending.weights @ ending.prices),
            "steps": float(self.steps),
            "minutes": self.seconds / 60,
        }

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as one tree of arrays."""
        return {
            "iteration": self.iteration,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in ("tempted", *OF_ROUNDS)},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration, self.seconds = int(state["iteration"]), float(state["seconds"])
        for name in ("tempted", *OF_ROUNDS):
            setattr(self, name, np.array(state[name], np.float32))
