"""Settings of PPO-Lagrange that were found to work, one per task."""

from tacit.control.ppo import PPO
from tacit.environments.task import SimulatedTask

PRESETS: dict[str, PPO] = {}


def preset(task: SimulatedTask) -> PPO:
    """The settings for `task`; those of `PPO()` for a task that has none of its own."""
    return PRESETS.get(task.name, PPO())
