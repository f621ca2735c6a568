"""Does a rule still hold for somebody with other aims? A fresh agent under the learned rule alone.

A constraint that merely says "be like the experts" is no use to an agent with another reward. One
that is the rule keeps it from breaking the true one, whatever it is paid for.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from tacit.control.judgement import Judgement
from tacit.control.learner import Rollout
from tacit.control.multiplier import Multiplier
from tacit.control.ppo import PPO
from tacit.control.presets import preset
from tacit.control.trainer import Trainer
from tacit.environments.task import SimulatedTask
from tacit.evaluation.evaluate import EXECUTED_EPISODES
from tacit.evaluation.execution import FIRST_EXECUTED, execute
from tacit.evaluation.intervals import Estimate, rate_interval
from tacit.inference.constraint import LearnedConstraint

# With a tenth of the rate, one agent in four had not learned to keep a limit after 400,000 steps.
PRICE = Multiplier(start=5.0, rate=1.0, budget=0.005)


def transfer(
    constraint: LearnedConstraint,
    task: SimulatedTask,
    reward: Judgement,
    *,
    confidence: float | None = None,
    forward: PPO | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Estimate:
    """Share of a fresh agent's episodes that break the true rule.

    It learns by PPO-Lagrange; what it earns counts as far as the step is feasible.

    Arguments:
        constraint: all that it is told of the rule.
        task: what it acts in; its true costs are measured only.
        reward: what it is paid for instead of the task's reward: of a rollout's [T, n] steps, see
            `tacit.control.learner.Rollout`.
        confidence: at which the constraint is asked; its own by default.
        forward: settings of PPO but for the price of cost; None for those of the task.
        seed: of the agent.
        threads: for the simulator.
    """

    def costs(rollout: Rollout) -> Float[np.ndarray, "T n 1"]:
        seen, done = np.asarray(rollout.observations), np.asarray(rollout.actions)
        flat = constraint.cost(
            seen.reshape(-1, seen.shape[-1]), done.reshape(-1, *done.shape[2:]), confidence
        )
        return np.asarray(flat, np.float32).reshape(*seen.shape[:2], 1)

    def earned(rollout: Rollout) -> Float[np.ndarray, "T n"]:
        paid = np.asarray(reward(rollout), np.float32)
        return np.where(paid > 0, paid * (1 - costs(rollout)[..., 0]), paid)

    settings = dataclasses.replace(forward or preset(task), multiplier=PRICE)
    run = Trainer(task, settings, seed=seed, cost=costs, reward=earned, threads=threads)
    try:
        while not run.finished:
            run.advance()
        rows = execute(
            task, run.actor, episodes=EXECUTED_EPISODES, seed=FIRST_EXECUTED, threads=threads
        )
    finally:
        run.close()
    return rate_interval(int((rows[:, 2] > 0).sum()), len(rows))
