"""Which policy an inference ends with, by what it has learned itself."""

from contextlib import closing

import numpy as np
from jaxtyping import Bool

from tacit.control.actor import Actor
from tacit.control.play import Episodes, as_function, play
from tacit.control.trainer import Trainer
from tacit.inference.constraint import Constraint

EPISODES = 64
INFEASIBLE = 0.5
"""A step that costs more is not allowed; what is merely unknown costs less at any confidence."""
ERRORS = 2.0


def chosen_policy(trainer: Trainer, constraint: Constraint, threads: int | None) -> Actor:
    """The last policy, or the imitation that it began as where that is clearly better.

    Both play the same 64 fresh episodes without exploration; nobody looks at the true rule.

    1. Where the last policy breaks the *learned* rule in more than 1 - confidence of the episodes,
       the one of the two that breaks it less often is chosen: a promise goes before a gain.
    2. Else each policy is worth its mean return, where an episode that breaks the learned rule
       counts as 0, or as the worst episode if that is below 0.
    3. The imitation is chosen if it is worth more by two standard errors.
    """
    last, imitation = trainer.actor, trainer.now.imitation
    if imitation is None:
        return last
    seed = trainer.world_seed(trainer.iteration)
    with closing(trainer.task.worlds(EPISODES, threads=threads)) as worlds:
        played = [play(worlds, as_function(actor), seed=seed) for actor in (imitation, last)]
    returns = [episodes.rewards.sum(axis=1) for episodes in played]
    broken = [breaks(episodes, constraint) for episodes in played]
    if constraint.promises and broken[1].mean() > 1 - constraint.confidence:
        return imitation if broken[0].mean() < broken[1].mean() else last
    nothing = min(0.0, *(earned.min() for earned in returns))
    imitated, learned = (
        np.where(against, nothing, earned) for against, earned in zip(broken, returns, strict=True)
    )
    gain = imitated - learned
    return imitation if gain.mean() > ERRORS * gain.std() / np.sqrt(len(gain)) else last


def breaks(episodes: Episodes, constraint: Constraint) -> Bool[np.ndarray, " m"]:
    """Whether each episode breaks the learned rule: one of its steps is not allowed."""
    present = np.arange(episodes.actions.shape[1]) < episodes.lengths[:, None]
    costs = np.zeros(present.shape)
    costs[present] = constraint.cost(
        episodes.observations[:, :-1][present], episodes.actions[present]
    )
    return costs.max(axis=1) > INFEASIBLE
