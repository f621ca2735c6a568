"""A task from your own arrays: a lift that experts never stop on the third floor."""

import numpy as np

import tacit

floors, moves = 6, (-1, 0, 1)
transitions = np.zeros((floors, len(moves), floors))
for floor in range(floors):
    for action, move in enumerate(moves):
        target = min(max(floor + move, 0), floors - 1)
        transitions[floor, action, target] += 0.95
        transitions[floor, action, floor] += 0.05  # sometimes the lift does not move
rewards = np.tile(np.arange(floors)[:, None] * 0.3, (1, len(moves)))
costs = np.zeros((floors, len(moves)))
costs[3, 1] = 1  # the rule is about a state *and* an action: do not wait on floor 3
task = tacit.TabularTask(
    transitions, rewards, costs, initial=np.eye(floors)[0], horizon=12, name="lift"
)

expert = tacit.train_expert(task)
demonstrations = tacit.collect(expert, 50, seed=1)
result = tacit.infer(task, demonstrations, confidence=0.8)
evidence = result.constraint.evidence(np.array([2, 3]), np.array([1, 1]))
print("votes for waiting on floors 2 and 3:", evidence.votes_for)
print("votes against:", evidence.votes_against.round(1))
print("allowed:", result.constraint.feasibility(np.array([2, 3]), np.array([1, 1])) >= 1)

answer = tacit.sufficient(task, demonstrations, confidence=0.8, reward=0.9 * expert.reward)
print(answer.reason)
