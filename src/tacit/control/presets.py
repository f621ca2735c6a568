"""Settings of PPO-Lagrange that were found to work, one per task.

The reference settings (5 worlds x 2048 steps, minibatches of 64 or 128, 10 or 20 epochs) were the
start; docs/training.md tells what was tried and what came of it.
"""

from tacit.control.multiplier import Multiplier
from tacit.control.ppo import PPO
from tacit.environments.task import SimulatedTask

PRESETS: dict[str, PPO] = {
    "BlockedHalfCheetah": PPO(
        steps=6_144_000,
        minibatch=256,
        learning_rate=6e-4,
        final_learning_rate=0.1,
        epochs=5,
        target_kl=0.02,
        multiplier=Multiplier(start=5.0, rate=0.1),
    ),
}


def preset(task: SimulatedTask) -> PPO:
    """The settings for `task`; those of `PPO()` for a task that has none of its own."""
    return PRESETS.get(task.name, PPO())
