"""Learn a rule from demonstrations of a simulated robot: a cart with a pole, and a limit nearby."""

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

for rule in result.constraint.rules()[:3]:  # the true one: x is at least -0.015
    print("-", rule)

# The rule is right, but this expert can hardly keep it, and nobody learns better control from it.
discarded = demonstrations.provenance["discarded"]
print(f"the expert broke the true rule in {discarded} of {discarded + 20} episodes")
report = tacit.evaluate(result, episodes=50)
print(f"{result.method}: the policy breaks it in {float(report.violation):.0%} of its episodes")
print("and breaks the rule that it learned in", report.rule_violation, "where 0.2 is promised")

states = demonstrations.observations[:, 0].copy()
states[:, 0] = -0.02  # beyond the limit
for confidence in (0.5, 0.8, 0.95):
    cost = result.constraint.cost(states, demonstrations.actions[:, 0], confidence=confidence)
    print(f"at confidence {confidence} a step beyond the limit costs {cost.mean():.2f}")
