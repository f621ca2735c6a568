"""An experiment of your own: two methods over seeds, into a folder; the same call goes on."""

import json
from pathlib import Path

import numpy as np

import tacit

OUT = Path("experiment")
METHODS = {
    "counts": tacit.methods.Counts(),
    "likelihood": tacit.methods.Likelihood(objective="evidence"),
}
SEEDS = (1, 2, 3)

task = tacit.make("Chain")
expert = tacit.train_expert(task)


def measure(name, seed):
    """One cell: learn from demonstrations of its own, and write down what came of it."""
    file = OUT / f"{name}-{seed}.json"
    if file.exists():  # finished before: a killed experiment continues
        return json.loads(file.read_text())
    demonstrations = tacit.collect(expert, 20, seed=seed)
    result = tacit.infer(
        task,
        demonstrations,
        method=METHODS[name],
        confidence=0.9,
        seed=seed,
        folder=OUT / f"{name}-{seed}",
    )
    report = tacit.evaluate(result)
    found = {"violation": float(report.violation), "reward": float(report.reward)}
    part = file.with_suffix(".part")
    part.write_text(json.dumps({**found, "settings": result.settings}, default=str))
    part.rename(file)  # whole or not at all
    return found


for name in METHODS:
    cells = [measure(name, seed) for seed in SEEDS]
    violation, reward = ([cell[key] for cell in cells] for key in ("violation", "reward"))
    print(
        f"{name}: violation {np.mean(violation):.4f} (worst {max(violation):.4f}), "
        f"reward {np.mean(reward):.2f} over {len(SEEDS)} seeds"
    )
