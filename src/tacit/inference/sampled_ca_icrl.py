"""CA-ICRL on tabular tasks with counted votes, by sampling alone: what the exact lab checks.

    tempted <- 0
    repeat, at no confidence first and then twice at each of five            (Algorithm 1)
        policy   <- soft PPO from the beginning, against the costs of the present belief
        tempted  <- the larger of tempted and the share of its episodes that visit each query
    twice, beginning as the experts do and knowing nothing
        policy   <- soft PPO at the confidence that was asked for
    the one with the higher soft return of those that keep to the budget

Every round begins anew: a policy that has settled on a way does not leave it for one that it has
stopped trying. Those that are tempted know nothing, as an imitation of the experts would never find
what tempts. At the end an imitation is the safer beginning; but where too little is proved to go
anywhere, it goes on all the same, and a policy that knows nothing finds that waiting is cheaper.
"""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tacit.constraints.belief import forward_budget, step_cost
from tacit.constraints.votes import counted_votes, visits_of
from tacit.control.multiplier import Multiplier
from tacit.control.ppo import PPO
from tacit.control.sampled_planning import Orders, Played, play_rounds
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_compiled import tabular_compiled
from tacit.errors import ArgumentError, DivergenceError
from tacit.inference.counted_belief import LEVELS

TEMPTING = (None, *LEVELS, *LEVELS)
"""The confidence of every round that looks for temptation; at None nothing costs."""
ENDS = (True, False)
"""Whether each of the last rounds begins as an imitation."""
ROUNDS = len(TEMPTING) + len(ENDS)

TEMPTING_PRICE, FINAL_PRICE = 1.0, 100.0
"""Who is to be tempted begins with a low price, who is to keep the rule with a high one."""

OVER_BUDGET, OVER_LEAST = 2.0, 1.3
"""What a policy may cost at the end to be preferred for its reward: so much above the budget, or
above the cheaper one. (Exact control needs 1 and 1.05; PPO does not settle as precisely.)"""

ITERATIONS, PARTS = 300, 4

FIXED = (
    "rollout",
    "discount",
    "cost_discount",
    "entropy_weight",
    "normalise_observations",
    "normalise_rewards",
    "normalise_costs",
    "relative_costs",
    "intent",
)
FIXED_PRICE = ("kind", "budget", "budget_per", "start")
"""What rounds rely on: whole episodes, rewards and costs as they are, prices that are ordered."""


def round_settings(task: TabularTask) -> PPO:
    """Settings of PPO for one round, in which a rollout is an episode of every world."""
    worlds = 64
    return PPO(
        steps=ITERATIONS * worlds * task.horizon,
        worlds=worlds,
        rollout=task.horizon,
        minibatch=worlds * task.horizon // PARTS,
        epochs=5,
        learning_rate=1e-3,
        final_learning_rate=0.05,
        target_kl=0.02,
        discount=1.0,
        cost_discount=1.0,
        hidden=(64, 64),
        normalise_observations=False,
        normalise_rewards=False,
        normalise_costs=False,
        relative_costs=False,
        multiplier=Multiplier(
            kind="share", budget_per="episode", start=FINAL_PRICE, rate=0.03, largest=1000.0
        ),
    )


def checked_settings(task: TabularTask, forward: PPO | None) -> PPO:
    """Settings that rounds can be played with."""
    proved = round_settings(task)
    if forward is None:
        return proved
    for given, wanted, names, prefix in (
        (forward, proved, FIXED, ""),
        (forward.multiplier, proved.multiplier, FIXED_PRICE, "multiplier."),
    ):
        for name in names:
            if getattr(given, name) != getattr(wanted, name):
                raise ArgumentError(
                    f"{prefix}{name} must be {getattr(wanted, name)!r} where CA-ICRL samples on "
                    f"{task.name}, not {getattr(given, name)!r}; change what "
                    "tacit.inference.sampled_ca_icrl.round_settings(task) gives"
                )
    return forward


@dataclass(frozen=True)
class DataSet:
    """What one set of demonstrations says.

    Fields:
        visitors: [X] how many experts visited each query.
        actions: [H, S, A] how often they took each action.
        number: N.
    """

    visitors: Float[np.ndarray, " X"]
    actions: Float[np.ndarray, "H S A"]
    number: int

    @classmethod
    def of(cls, task: TabularTask, demonstrations: Trajectories) -> "DataSet":
        """Counted."""
        visits = visits_of(task, demonstrations)
        states = demonstrations.observations[:, :-1, 0]
        actions = demonstrations.actions.reshape(states.shape)
        shape = (task.horizon, task.number_of_states, task.number_of_actions)
        counts = np.zeros(shape, np.float32)
        steps = np.broadcast_to(np.arange(states.shape[1]), states.shape)
        taken = steps < demonstrations.lengths[:, None]
        np.add.at(counts, (steps[taken], states[taken], actions[taken]), 1)
        return cls((visits > 0).sum(axis=0).astype(np.float32), counts, len(visits))


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
        self.compiled = tabular_compiled(task)
        self.confidences = jnp.asarray(confidences, jnp.float32)
        self.keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        self.visitors = jnp.asarray(np.stack([data.visitors for data in data_sets]))
        self.numbers = jnp.asarray([float(data.number) for data in data_sets])
        self.experts = jnp.asarray(np.stack([data.actions for data in data_sets]))
        runs = len(data_sets)
        self.tempted = np.zeros(self.visitors.shape, np.float32)
        self.policies = np.zeros((len(ENDS), *self.experts.shape), np.float32)
        # Of each of the last rounds: cost, soft return and price.
        self.ends = np.zeros((len(ENDS), runs, 3), np.float32)
        self.iteration, self.seconds = 0, 0.0

    @property
    def finished(self) -> bool:
        """Whether all rounds have been played."""
        return self.iteration >= ROUNDS

    @property
    def steps(self) -> int:
        """Environment steps of each run so far."""
        return self.iteration * self.settings.iterations * self.settings.batch

    @property
    def budgets(self) -> Float[Array, " runs"]:
        """What each run may cost at its confidence."""
        return jax.vmap(lambda level: forward_budget(self.task.budget, level))(self.confidences)

    def belief(self) -> tuple[Array, Array]:
        """Alpha and beta of every run's queries, from the votes so far."""

        def votes(visitors: Array, number: Array, tempted: Array) -> tuple[Array, Array]:
            return counted_votes(visitors, number, tempted, "visits")

        return jax.vmap(votes)(self.visitors, self.numbers, jnp.asarray(self.tempted))

    def orders(self) -> Orders:
        """What the next round is to do."""
        place, budget = self.iteration, self.task.budget
        tempting = place < len(TEMPTING)
        levels = self.confidences
        if tempting:
            levels = jnp.full_like(levels, TEMPTING[place] or 0.5)
        alpha, beta = self.belief()

        def cost(alpha: Array, beta: Array, level: Array) -> Array:
            return step_cost(alpha, beta, level, "graded", budget)

        costs = jax.vmap(cost)(alpha, beta, levels)
        free = tempting and TEMPTING[place] is None
        return Orders(
            costs=jnp.zeros_like(costs) if free else costs,
            budget=jnp.full_like(levels, budget) if tempting else self.budgets,
            price=jnp.full_like(levels, TEMPTING_PRICE if tempting else FINAL_PRICE),
            imitate=jnp.full(levels.shape, not tempting and ENDS[place - len(TEMPTING)]),
            experts=self.experts,
        )

    def advance(self) -> dict[str, float]:
        """One round; what is told are means over the runs."""
        began = time.perf_counter()
        keys = jax.vmap(lambda key: jax.random.fold_in(key, self.iteration))(self.keys)
        played = play_rounds(
            self.compiled, self.settings, float(self.task.temperature), self.orders(), keys
        )
        self.check(played)
        conduct = played.conduct
        end = self.iteration - len(TEMPTING)
        if end < 0:
            self.tempted = np.maximum(self.tempted, np.asarray(conduct.visits))
        else:
            self.policies[end] = np.asarray(played.policy)
            told = (conduct.cost, conduct.soft_return, played.price)
            self.ends[end] = np.stack([np.asarray(part) for part in told], axis=-1)
        self.iteration += 1
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

    def check(self, played: Played) -> None:
        """Raise an error that names what is no number, and when."""
        named = {"policy": played.policy, "price": played.price, **played.conduct._asdict()}
        for name, values in named.items():
            if not np.isfinite(np.asarray(values)).all():
                raise DivergenceError(
                    f"ca-icrl on {self.task.name} diverged: {name} is not finite in round "
                    f"{self.iteration + 1} of {ROUNDS}; a lower learning_rate may help"
                )

    def chosen(self) -> np.ndarray:
        """Of each run the number of the better of the last policies.

        The one with the higher soft return among those that keep to the budget, or to the cost of
        the cheaper one where neither does.
        """
        costs, returns = self.ends[..., 0], self.ends[..., 1]
        budgets = np.asarray(self.budgets)
        limits = np.maximum(OVER_BUDGET * budgets, OVER_LEAST * costs.min(axis=0))
        return np.where(costs <= limits, returns, -np.inf).argmax(axis=0)

    def policy(self, run: int) -> Float[np.ndarray, "H S A"]:
        """The policy that a run ends with."""
        return self.policies[self.chosen()[run], run]

    def facts(self, run: int) -> dict[str, float]:
        """What is told of a run at the end."""
        cost, _, price = self.ends[self.chosen()[run], run]
        return {
            "rounds": float(self.iteration),
            "learned_cost": float(cost),
            "multiplier": float(price),
            "steps": float(self.steps),
            "minutes": self.seconds / 60,
        }

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as one tree of arrays."""
        return {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "tempted": self.tempted,
            "policies": self.policies,
            "ends": self.ends,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration, self.seconds = int(state["iteration"]), float(state["seconds"])
        for name in ("tempted", "policies", "ends"):
            setattr(self, name, np.array(state[name], np.float32))
