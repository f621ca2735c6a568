"""Settings of PPO that were found to work, per task.

The reference settings (5 worlds x 2048 steps, minibatches of 64 or 128, 10 or 20 epochs) were the
start; docs/notebook/training.md tells what was tried and what came of it.
"""

from dataclasses import replace

from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask

QUICK = PPO(epochs=5, learning_rate=1e-3, final_learning_rate=0.05, target_kl=0.02)

ROBOT = replace(
    QUICK,
    minibatch=256,
    learning_rate=6e-4,
    final_learning_rate=0.1,
    # From 1, the price grows too slowly: the policy has learned to run the forbidden way by then.
    multiplier=Multiplier(start=5.0, rate=0.1),
)

# Rewards come at the end only, some 220 steps after the start.
DRIVER = replace(ROBOT, minibatch=512, learning_rate=5e-4, discount=0.995, cost_discount=0.995)

# Tabular tasks: short episodes, and little to learn in each state.
TABLE = replace(QUICK, steps=200_000, worlds=64, rollout=40, minibatch=640)

PRESETS: dict[str, PPO] = {
    "HighwayDistance": DRIVER,
    "HighwayVelocity": DRIVER,
    "BlockedPoint": replace(
        QUICK,
        steps=400_000,
        rollout=50,
        minibatch=320,
        # Without a budget the policy keeps so far off that it loses an eighth of the reward.
        multiplier=Multiplier(start=5.0, rate=0.1, budget=4e-4),
    ),
    "BlockedHalfCheetah": replace(ROBOT, steps=6_144_000),
    "BlockedAnt": replace(ROBOT, steps=3_000_000),
    "BlockedWalker": replace(
        ROBOT, steps=4_000_000, rollout=64, discount=0.995, cost_discount=0.995
    ),
    # Strokes forth and back pay at once; swimming anywhere pays only in the long run.
    "BlockedSwimmer": replace(ROBOT, steps=5_000_000, discount=0.999, reward_trace=0.98),
    "BiasedPendulum": replace(
        QUICK,
        steps=4_000_000,
        minibatch=512,
        multiplier=Multiplier(kind="penalty", start=10.0),
    ),
}

EXPERTS: dict[str, PPO] = {
    # Noise carries it over the limit. It learns to swim away from it first only where that is
    # charged once, and with a critic that looks far ahead on large batches.
    "BlockedSwimmer": replace(
        PRESETS["BlockedSwimmer"],
        steps=20_000_000,
        worlds=512,
        minibatch=2048,
        learning_rate=3e-4,
        charge_once=True,
        cost_discount=0.9995,
        cost_trace=0.97,
        multiplier=Multiplier(kind="penalty", start=4.0),
    ),
}
"""Settings of experts on the true cost, for tasks where a learned cost needs other ones."""


def expert_preset(task: SimulatedTask) -> PPO:
    """The settings of an expert on `task`."""
    return EXPERTS.get(task.name) or preset(task)


def preset(task: SimulatedTask) -> PPO:
    """The settings for `task`; those of `PPO()` for a task that has none of its own."""
    tabular = "tables_sha256" in task.options
    return PRESETS.get(task.name, TABLE if tabular else PPO())
