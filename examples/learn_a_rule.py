"""Learn a rule on a grid at three confidence levels and compare with the truth."""

import tacit

task = tacit.make("GridWorld", layout="open")
expert = tacit.train_expert(task)
demonstrations = tacit.collect(expert, 20, seed=1)

for confidence in (0.3, 0.7, 0.9):
    result = tacit.infer(
        task, demonstrations, confidence=confidence
    )  # by `counts`, the default here
    report = tacit.evaluate(result)
    print(f"confidence {confidence}: violation {report.violation}, reward {report.reward}")

print(f"{result.method} says, the strongest first:")
for rule in result.constraint.rules()[:3]:
    print("-", rule)
