"""Settings of PPO for the rounds of CA-ICRL that samples on a table."""

from tacit.control.multiplier import Multiplier
from tacit.control.ppo import PPO
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError

ITERATIONS, PARTS = 300, 4

FIXED = (
    "rollout",
    "discount",
    "cost_discount",
    "entropy_weight",
    "normalise_observations",
    "normalise_rewards",
    "normalise_costs",
    "relative_costs",
    "charge_once",
    "intent",
)
FIXED_PRICE = ("kind", "rate", "largest")
"""What rounds rely on: whole episodes, rewards and costs as they are, prices that stay."""


def round_settings(task: TabularTask) -> PPO:
    """Settings of PPO for one round, in which a rollout is an episode of every world."""
    worlds = 64
    return PPO(
        steps=ITERATIONS * worlds * task.horizon,
        worlds=worlds,
        rollout=task.horizon,
        minibatch=worlds * task.horizon // PARTS,
        epochs=5,
        learning_rate=3e-3,
        final_learning_rate=0.05,
        target_kl=0.02,
        discount=1.0,
        cost_discount=1.0,
        # Worlds begin everywhere, so that critics know every state and may be trusted early.
        reward_trace=0.7,
        cost_trace=0.7,
        # One wide layer is nearly a table: where policies go is learned to .02, with two to .05.
        hidden=(256,),
        normalise_observations=False,
        normalise_rewards=False,
        normalise_costs=False,
        relative_costs=False,
        multiplier=Multiplier(kind="share", rate=0.0),
    )


def checked_settings(task: TabularTask, forward: PPO | None) -> PPO:
    """Settings that rounds can be played with."""
    proved = round_settings(task)
    if forward is None:
        return proved
    for given, wanted, names, prefix in (
        (forward, proved, FIXED, ""),
        (forward.multiplier, proved.multiplier, FIXED_PRICE, "multiplier."),
    ):
        for name in names:
            if getattr(given, name) != getattr(wanted, name):
                raise ArgumentError(
                    f"{prefix}{name} must be {getattr(wanted, name)!r} where CA-ICRL samples on "
                    f"{task.name}, not {getattr(given, name)!r}; change what "
                    "tacit.inference.round_settings.round_settings(task) gives"
                )
    return forward
