"""An expert in your own Gymnasium environment: a cart that must not go far to the right."""

import tacit


def cost(observation, action, next_observation):
    """1 for every step that ends too far to the right."""
    return float(next_observation[0] > 0.2)


task = tacit.make("CartPole-v1", cost=cost, horizon=200)
settings = tacit.PPO(
    steps=98_304,
    worlds=16,
    rollout=128,
    minibatch=256,
    epochs=5,
    learning_rate=1e-3,
    multiplier=tacit.Multiplier(budget=0.5, budget_per="episode"),
)
expert = tacit.train_expert(task, seed=1, settings=settings)
print(f"reward {expert.reward:.0f}, violation {expert.violation:.0%}")

demonstrations = tacit.collect(expert, 20, seed=1)  # feasible episodes only
print(demonstrations.provenance["discarded"], "episodes were discarded")
print("furthest right:", demonstrations.observations[:, :, 0].max().round(2))
