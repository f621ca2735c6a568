"""Book-keeping of episodes while many worlds run: what ended, with which reward and cost."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

REMEMBERED = 100
COLUMNS = 4
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
        running: [n, 4] reward, whether violated, and length so far of each world's episode, and
            whether it is only a part of one, which will not be entered.
        ended: [<= 100, 4] reward, feasible reward (0 if violated), violated, length; oldest first.
        number: of episodes that ended so far.
    """

    running: Float[np.ndarray, "n 4"]
    ended: Float[np.ndarray, "m 4"]
    number: int = 0

    @classmethod
    def start(cls, worlds: int) -> "EpisodeLedger":
        """Nothing has happened."""
        return cls(np.zeros((worlds, 4)), np.zeros((0, COLUMNS)))

    def add(
        self,
        rewards: Float[np.ndarray, "T n"],
        costs: Float[np.ndarray, "T n k"],
        ended: Bool[np.ndarray, "T n"],
    ) -> None:
        """Enter a rollout; an episode counts as violated if any true cost in it is above 0.

        Where there are no costs nobody knows, and what depends on it is NaN.
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
        """How good the last 100 episodes were; None before so many have ended."""
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
