"""Does a rule still hold for somebody with other aims? A fresh agent under the learned rule alone.

A constraint that merely says "be like the experts" is no use to an agent with another reward. One
that is the rule keeps it from breaking the true one, whatever it is paid for.
"""

import dataclasses
from collections.abc import Callable
from contextlib import closing

import numpy as np

from tacit.control.learner import Rollout
from tacit.control.multiplier import Multiplier
from tacit.control.presets import preset
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer
from tacit.environments.task import SimulatedTask
from tacit.evaluation.evaluate import EXECUTED_EPISODES, FIRST_EXECUTED, execute
from tacit.evaluation.intervals import Estimate, rate_interval
from tacit.inference.constraint import Constraint

# With a tenth of the rate, one agent in four had not learned to keep a limit after 400,000 steps.
PRICE = Multiplier(start=5.0, rate=1.0, budget=0.005)


def transfer(
    constraint: Constraint,
    task: SimulatedTask,
    reward: Callable[[Rollout], np.ndarray],
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
    settings = dataclasses.replace(forward or preset(task), multiplier=PRICE)
    with closing(Trainer(task, settings, seed=seed, constraints=1, threads=threads)) as run:
        while not run.finished:
            rollout = run.roll_out()
            seen = rollout.within(task.action_space)
            steps = np.asarray(seen.observations), np.asarray(seen.actions)
            costs = constraint.cost(*steps, confidence)
            paid = np.asarray(reward(seen), np.float32)
            earned = np.where(paid > 0, paid * (1 - costs), paid)
            run.learn(rollout._replace(costs=costs[..., None], rewards=earned))
        rows = execute(
            task, run.actor, episodes=EXECUTED_EPISODES, seed=FIRST_EXECUTED, threads=threads
        )
    return rate_interval(int((rows[:, 2] > 0).sum()), len(rows))
