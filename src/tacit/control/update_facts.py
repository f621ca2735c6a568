"""What is written down about one update of the policy."""

import jax
import numpy as np

from tacit.control.learner import Progress
from tacit.errors import DivergenceError


def update_facts(progress: Progress, task: str, iteration: int, steps: int) -> dict[str, float]:
    """The update's numbers, each finite; an error that names the one which is not."""
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
