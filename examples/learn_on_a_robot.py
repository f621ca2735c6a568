"""Learn a rule from demonstrations of a simulated robot: a cart with a pole and a wall nearby."""

import dataclasses

import numpy as np

import tacit


def balance(observations):
    """An expert written by hand: it only keeps the pole upright."""
    x, angle, speed, turning = observations.T
    return np.clip(x + 20 * angle + speed + 3 * turning, -3, 3)[:, None]


task = tacit.make("BiasedPendulum")
demonstrations = tacit.collect(tacit.Expert(task, balance), 20, seed=1)  # feasible ones only

# A taste, most of whose time goes into compiling: leave `forward` away for a real run.
settings = tacit.methods.Reach.forward(task)
forward = dataclasses.replace(settings, steps=8192, worlds=16, rollout=64, minibatch=128, epochs=3)
result = tacit.infer(task, demonstrations, confidence=0.8, seed=1, forward=forward)

report = tacit.evaluate(result, episodes=50)
print(
    f"{result.method}: violation {float(report.violation):.0%}, reward {float(report.reward):.1f}"
)
print("the learned rule is broken in", report.rule_violation, "of the episodes")
for rule in result.constraint.rules()[:3]:
    print("-", rule)

states, actions = demonstrations.observations[:, 0], demonstrations.actions[:, 0]
for confidence in (0.5, 0.8, 0.95):
    cost = result.constraint.cost(states, actions, confidence=confidence).mean()
    print(f"at confidence {confidence} the experts' first steps cost {cost:.2f} on average")

evidence = result.constraint.evidence(states[:1], actions[:1])
print(f"{evidence.votes_for[0]:.0f} experts speak for the first of them")
