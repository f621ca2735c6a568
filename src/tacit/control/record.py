"""What a training remembers: its episodes, its best policy, and everything else that changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from tacit.control.actor import Actor
from tacit.control.learner import Learner, Progress
from tacit.errors import DivergenceError

REMEMBERED = 100
COLUMNS = 4
# The column of `running` that tells whether an episode began in the middle.
PARTIAL = 3


def feasible_score(rewards: Float[np.ndarray, " m"], violated: Bool[np.ndarray, " m"]) -> float:
    """Mean reward with violating episodes counted as 0, or as the worst one where that is lower.

    This is the feasible reward where rewards are positive. Where they are negative, 0 would make
    violating an advantage.
    """
    return float(np.where(violated, min(0.0, rewards.min()), rewards).mean())


@dataclass
class EpisodeLedger:
    """Sums of the running episodes and the last 100 that ended.

    Fields:
        running: [n, 4] for each world's episode the reward so far, whether a rule was broken, the
            length so far, and whether it began in the middle: such an episode is not entered.
        ended: [<= 100, 4] reward, feasible reward (0 if violated), violated, length; oldest first.
        number: of episodes that ended so far.
    """

    running: Float[np.ndarray, "n 4"]
    ended: Float[np.ndarray, "m 4"]
    number: int = 0

    @classmethod
    def start(cls, worlds: int) -> "EpisodeLedger":
        """A ledger without episodes."""
        return cls(np.zeros((worlds, 4)), np.zeros((0, COLUMNS)))

    def add(
        self,
        rewards: Float[np.ndarray, "T n"],
        costs: Float[np.ndarray, "T n k"],
        ended: Bool[np.ndarray, "T n"],
    ) -> None:
        """Enter a rollout; an episode counts as violated if any true cost in it is above 0.

        Without costs it is not known whether the rule was broken, and what depends on it is NaN.
        """
        violated = np.asarray((costs > 0).any(axis=-1), np.float64)
        if not costs.shape[-1]:
            violated[:] = np.nan
        finished = [self.ended]
        for reward, violation, end in zip(rewards, violated, ended, strict=True):
            self.running[:, 0] += reward
            self.running[:, 1] = np.maximum(self.running[:, 1], violation)
            self.running[:, 2] += 1
            if end.any():
                whole = end & (self.running[:, PARTIAL] == 0)
                total, broken, length, _ = self.running[whole].T
                finished.append(np.stack([total, total * (1 - broken), broken, length], axis=1))
                self.running[end] = 0
                self.number += int(whole.sum())
        self.ended = np.concatenate(finished)[-REMEMBERED:]

    def summary(self) -> dict[str, float]:
        """Means over the last 100 episodes, as far as known; empty before the first one ends."""
        if not len(self.ended):
            return {}
        reward, feasible, violation, length = self.ended.mean(axis=0).tolist()
        means = {
            "reward": reward,
            "feasible_reward": feasible,
            "violation": violation,
            "episode_length": length,
            "episodes": self.number,
        }
        return {name: value for name, value in means.items() if not np.isnan(value)}

    def score(self) -> float | None:
        """`feasible_score` of the last 100 episodes; None before so many have ended."""
        if len(self.ended) < REMEMBERED:
            return None
        return feasible_score(self.ended[:, 0], self.ended[:, 2] > 0)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, as arrays."""
        padded = np.full((REMEMBERED, COLUMNS), np.nan)
        padded[: len(self.ended)] = self.ended
        return {"running": self.running.copy(), "ended": padded, "number": np.array(self.number)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "EpisodeLedger":
        """The ledger that `arrays` came from."""
        ended = np.asarray(arrays["ended"])
        kept = ended[~np.isnan(ended[:, 0])]
        return cls(np.array(arrays["running"]), kept, int(arrays["number"]))


class Best(NamedTuple):
    """The actor with the highest `EpisodeLedger.score` so far, and the steps taken until then."""

    actor: Actor
    score: float
    steps: int

    def arrays(self) -> dict[str, Any]:
        """Everything, as a tree of arrays and numbers."""
        return {"actor": self.actor.arrays(), "score": self.score, "steps": self.steps}

    @classmethod
    def from_arrays(cls, tree: Mapping[str, Any]) -> "Best | None":
        """The one that `arrays` came from; None where its score is not finite."""
        if not np.isfinite(tree["score"]):
            return None
        return cls(Actor.from_arrays(tree["actor"]), float(tree["score"]), int(tree["steps"]))


@dataclass
class Training:
    """Everything that changes while a trainer trains.

    Fields:
        learner: the networks, with all that PPO remembers from one update to the next.
        observations: [n, o] what the worlds show now; not saved, the worlds know it themselves.
        ledger: the true rewards and violations of the episodes.
        iteration: rollouts so far.
        rests_until: the iteration up to which the policy rests after `begin_as`, 0 before that.
        best: the best actor so far, None before 100 episodes have ended.
        imitation: the actor that `begin_as` made, None before that.
        seconds: time spent in `roll_out` and `learn`.
    """

    learner: Learner
    observations: np.ndarray
    ledger: EpisodeLedger
    iteration: int = 0
    rests_until: int = 0
    best: Best | None = None
    imitation: Actor | None = None
    seconds: float = 0.0

    def arrays(self, actor: Actor) -> dict[str, Any]:
        """Everything but the observations, as one tree; `actor` fills the places of missing ones.

        Checkpoints must have the same names and shapes from the first on.
        """
        best = self.best or Best(actor, -np.inf, 0)
        return {
            "learner": self.learner,
            "iteration": self.iteration,
            "rests_until": self.rests_until,
            "imitation": (self.imitation or actor).arrays(),
            "seconds": self.seconds,
            "ledger": self.ledger.arrays(),
            "best": best.arrays(),
        }

    @classmethod
    def from_arrays(cls, tree: dict[str, Any], observations: np.ndarray) -> "Training":
        """The training that `arrays` came from."""
        rests_until = int(tree["rests_until"])
        return cls(
            learner=jax.tree.map(jnp.asarray, tree["learner"]),
            observations=observations,
            ledger=EpisodeLedger.from_arrays(tree["ledger"]),
            iteration=int(tree["iteration"]),
            rests_until=rests_until,
            best=Best.from_arrays(tree["best"]),
            imitation=Actor.from_arrays(tree["imitation"]) if rests_until else None,
            seconds=float(tree["seconds"]),
        )


def update_facts(progress: Progress, task: str, iteration: int, steps: int) -> dict[str, float]:
    """The numbers of one update; an error names the first that is not finite."""
    progress = jax.tree.map(np.asarray, progress)
    facts: dict[str, float] = {
        "steps": steps,
        "iteration": iteration,
        "kl": float(progress.kl),
        "clipped": float(progress.clipped),
        "epochs": int(progress.epochs),
        "entropy": float(progress.entropy),
        "value_error": float(progress.value_error[0]),
    }
    for place in range(len(progress.costs)):
        suffix = "" if len(progress.costs) == 1 else f" {place}"
        facts[f"cost{suffix}"] = float(progress.costs[place])
        facts[f"multiplier{suffix}"] = float(progress.prices[place])
        facts[f"cost_value_error{suffix}"] = float(progress.value_error[1 + place])
    for name, value in facts.items():
        if not np.isfinite(value):
            raise DivergenceError(
                f"training on {task} diverged: {name} is {value} after {steps} "
                "steps; a lower learning_rate or largest multiplier may help"
            )
    return facts
