"""Rules of your own: "one 2 x 2 block is forbidden, I do not know which", answered exactly."""

import numpy as np

import tacit

ROWS = (
    ".....",
    ".xx..",
    "Sxx.G",
    ".....",
    ".....",
)
task = tacit.make("GridWorld", layout=ROWS, horizon=12)
cells = np.asarray(task.positions)  # row and column of every state
demonstrations = tacit.collect(tacit.train_expert(task), 10, seed=1)

# Every rule says of each cell whether it is allowed. All are equally likely beforehand.
blocks, allowed = [], []
for row in range(4):
    for column in range(4):
        steps = cells - np.array([row, column])
        inside = np.all((steps >= 0) & (steps <= 1), axis=1)
        if not inside[task.initial > 0].any():  # nobody starts where it is forbidden
            blocks.append((row, column))
            allowed.append(~inside)
family = tacit.RuleFamily(task, np.array(allowed))

posterior = tacit.exact_posterior(family, demonstrations)
order = np.argsort(-posterior.probability)[:3]
for place in order:
    print(f"block at {blocks[place]}: probability {posterior.probability[place]:.3f}")

result = tacit.infer(task, demonstrations, confidence=0.8)
states = np.arange(len(cells))
learned = result.constraint.feasibility(states, np.zeros_like(states)) >= 1
exact = posterior.allowed(0.8)
same = (learned == exact).mean()
print(f"{result.method}, which knows nothing of blocks, agrees with it on {same:.0%} of the cells")
