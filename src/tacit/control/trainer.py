"""Train one constrained learner on worlds that the host steps: rollout, update, repeat."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacit.control import learner as learning
from tacit.control.actor import Actor
from tacit.control.learner import Draw, Learner, Rollout, imitate
from tacit.control.ppo import update_critics, update_policy
from tacit.control.record import PARTIAL, Best, EpisodeLedger, Training, update_facts
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask
from tacit.environments.worlds import Worlds
from tacit.errors import ArgumentError

compiled = functools.partial(jax.jit, static_argnames="settings")
prepare = compiled(learning.prepare)
policy_pass = compiled(update_policy)
critic_pass = compiled(update_critics)
finish = jax.jit(learning.finish)

CHECKPOINT_EVERY = 20
REST, REST_SHARE = 10, 0.05
"""A policy that begins as an imitation rests for so many updates, but at most this share of all."""


class Trainer:
    """PPO on a simulated task, one update at a time.

    An iteration is `roll_out`, then `learn`. To train on other rewards or costs than the true
    ones, replace them in the rollout in between:

        rollout = trainer.roll_out()
        facts = trainer.learn(rollout._replace(costs=my_costs(rollout)))

    All randomness comes from `seed` and the number of the iteration, so that `state` and `restore`
    continue bit for bit. Worlds that cannot be saved are reset whenever `state` is taken.

    Arguments:
        task: the task to train on.
        settings: of PPO.
        seed: of networks, actions and worlds.
        constraints: how many costs the rollouts given to `learn` hold; None for the task's own.
        threads: for the worlds, None for all cores.

    Attributes:
        now: everything that changes while it trains.
    """

    def __init__(
        self,
        task: SimulatedTask,
        settings: PPO,
        *,
        seed: int,
        constraints: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.task, self.settings, self.seed = task, settings, seed
        self.worlds: Worlds = task.worlds(settings.worlds, threads=threads)
        self.number_of_costs = self.worlds.number_of_costs if constraints is None else constraints
        self.key = jax.random.key(seed)
        self.turns = 0
        self.now = Training(
            learner=self.fresh_learner(0),
            observations=self.worlds.reset(self.world_seed(0)),
            ledger=EpisodeLedger.start(settings.worlds),
        )
        self.now.ledger.running[:, PARTIAL] = self.worlds.stagger()
        self.helper = ThreadPoolExecutor(max_workers=1)

    @property
    def iteration(self) -> int:
        """Rollouts so far."""
        return self.now.iteration

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.iteration * self.settings.batch

    @property
    def finished(self) -> bool:
        """Whether all steps of the settings have been taken."""
        return self.iteration >= self.settings.iterations

    @property
    def actor(self) -> Actor:
        """The policy as it stands."""
        return Actor.of(self.now.learner, self.task.action_space, self.settings)

    def fresh_learner(self, iteration: int) -> Learner:
        """A learner that has seen nothing."""
        return learning.start(
            self.task.observation_space.shape[0],
            self.task.action_space,
            self.number_of_costs,
            self.task.horizon,
            self.settings,
            key=jax.random.fold_in(self.key, iteration),
        )

    @property
    def turn_words(self) -> tuple[int, ...]:
        """What makes random numbers differ after every `rewind`; nothing before the first."""
        return (self.turns,) if self.turns else ()

    def world_seed(self, iteration: int) -> int:
        """A seed for the worlds, drawn from this run's seed and the number of the iteration."""
        entropy = [self.seed, iteration, *self.turn_words]
        words = np.random.SeedSequence(entropy).generate_state(1, np.uint32)
        return int(words[0])

    def advance(self) -> dict[str, float]:
        """One rollout, and one update on its true rewards and costs; returns `learn`'s facts."""
        return self.learn(self.roll_out())

    def roll_out(self) -> Rollout:
        """Begin an iteration: step all worlds with the present policy.

        The true rewards and costs are entered into the ledger. The actions are as drawn; see
        `Rollout.within` for those that the worlds make of them.
        """
        began = time.perf_counter()
        now = self.now
        now.iteration += 1
        steps, number = self.settings.rollout, self.settings.worlds
        actor = self.actor
        noise = np.array(now.learner.policy.noise((steps, number), key=self.update_keys()[0]))
        noise[:, : self.settings.intended] = 0
        record = self.blank_record(noise)
        for place in range(steps):
            actions = actor.draw(now.observations, noise[place])
            record.observations[place] = now.observations
            record.actions[place] = actions
            step = self.worlds.step(actions)
            now.observations = step.observations
            record.arrived[place] = step.arrived
            record.rewards[place] = step.rewards
            record.costs[place] = step.costs
            record.terminated[place] = step.terminated
            record.truncated[place] = step.truncated
        now.ledger.add(record.rewards, record.costs, record.terminated | record.truncated)
        now.seconds += time.perf_counter() - began
        return Rollout(**vars(record))

    def update_keys(self) -> jax.Array:
        """Keys of this iteration: for the actions, the policy's update and the critics'."""
        return jax.random.split(jax.random.fold_in(self.key, self.iteration), 3)

    def blank_record(self, noise: np.ndarray) -> SimpleNamespace:
        """The fields of a rollout, to be filled; `noise` [T, n, a] is that of its actions."""
        shape = noise.shape[:2]
        discrete = self.actor.std is None
        size = self.now.observations.shape[-1]
        return SimpleNamespace(
            observations=np.empty((*shape, size), np.float32),
            arrived=np.empty((*shape, size), np.float32),
            actions=np.empty(shape if discrete else noise.shape, np.int32 if discrete else "f4"),
            rewards=np.empty(shape, np.float32),
            costs=np.empty((*shape, self.worlds.number_of_costs), np.float32),
            terminated=np.empty(shape, bool),
            truncated=np.empty(shape, bool),
        )

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Update the policy, the critics and the prices from the rollout that `roll_out` gave.

        The update uses the `rewards` [T, n] and `costs` [T, n, k] that stand in the rollout. The
        ledger, and so the choice of the best actor, uses the true ones.

        Returns:
            Facts about this iteration, for the metrics.
        """
        began = time.perf_counter()
        now = self.now
        rollout = self.checked(rollout)
        _, policy_key, critic_key = self.update_keys()
        learner, batch = prepare(now.learner, rollout, self.settings)
        rate = self.settings.rate(learner.updates)
        critics = self.helper.submit(
            critic_pass,
            learner.critics,
            learner.critic_optimiser,
            batch,
            rate,
            self.settings,
            key=critic_key,
        )
        policy = policy_pass(
            learner.policy,
            learner.policy_optimiser,
            batch,
            learner.multiplier.price,
            rate,
            self.settings,
            key=policy_key,
        )
        if now.iteration <= now.rests_until:
            policy = policy._replace(policy=learner.policy, optimiser=learner.policy_optimiser)
        actor = self.actor
        now.learner, progress = finish(learner, rollout, batch, policy, critics.result())
        facts = now.ledger.summary()
        facts.update(update_facts(progress, self.task.name, now.iteration, self.steps))
        self.keep_best(actor)
        now.seconds += time.perf_counter() - began
        facts["seconds"] = now.seconds
        return facts

    def checked(self, rollout: Rollout) -> Rollout:
        """The rollout with rewards and costs in float32, if they have the shapes they must have."""
        shape = (self.settings.rollout, self.settings.worlds)
        return rollout._replace(
            rewards=shaped("rewards", rollout.rewards, shape),
            costs=shaped("costs", rollout.costs, (*shape, self.number_of_costs)),
        )

    def allow(self, cost: float) -> None:
        """Let every cost be this much above its budget, from the next update on."""
        learner = self.now.learner
        allowance = jnp.full_like(learner.multiplier.allowance, cost)
        price = learner.multiplier._replace(allowance=allowance)
        self.now.learner = learner._replace(multiplier=price)

    def rewind(self, share: float) -> None:
        """Go back so that the last `share` of the run is repeated, with other random numbers.

        The state cannot be saved afterwards.
        """
        if not 0 < share < 1:
            raise ArgumentError(f"share must lie between 0 and 1, not {share!r}")
        self.turns += 1
        again = max(1, round(share * self.settings.iterations))
        now = self.now
        now.iteration = max(1, self.settings.iterations - again)
        now.learner = now.learner._replace(updates=jnp.asarray(now.iteration, jnp.int32))
        self.key = jax.random.fold_in(self.key, self.turns)
        self.forget_episodes()

    def begin_as(self, draw: Draw) -> None:
        """Replace the policy by an imitation of experts, and go on with the run.

        The policy stays as it is for some updates, until the critics know it.
        """
        now = self.now
        rest = max(1, min(REST, round(REST_SHARE * self.settings.iterations)))
        now.rests_until = now.iteration + rest
        fresh = self.fresh_learner(now.iteration)._replace(updates=now.learner.updates)
        now.learner = imitate(fresh, draw, self.task.action_space, self.settings)
        now.imitation, now.best = self.actor, None
        self.forget_episodes()

    def forget_episodes(self) -> None:
        """Begin new episodes in all worlds, with an empty ledger."""
        self.now.ledger = EpisodeLedger.start(self.settings.worlds)
        self.begin_episodes()
        self.now.ledger.running[:, PARTIAL] = self.worlds.stagger()

    def begin_episodes(self) -> None:
        """Begin new episodes in all worlds and drop the sums of the running ones."""
        now, learner = self.now, self.now.learner
        now.observations = self.worlds.reset(self.world_seed(now.iteration))
        now.ledger.running[:] = 0
        now.learner = learner._replace(
            sums=jnp.zeros_like(learner.sums), worst=jnp.zeros_like(learner.worst)
        )

    def keep_best(self, actor: Actor) -> None:
        """Remember the actor that played this rollout if it did better than any before."""
        score = self.now.ledger.score()
        if score is not None and (self.now.best is None or score > self.now.best.score):
            self.now.best = Best(actor, score, self.steps)

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs to go on from here, as one tree of arrays."""
        if self.turns:
            raise ArgumentError("a training that was rewound cannot be saved")
        if self.worlds.resumable:
            worlds = self.worlds.state()
        else:
            # Worlds that cannot be saved begin anew, now and whenever this state is restored.
            self.begin_episodes()
            worlds = {}
        return {**self.now.arrays(self.actor), "worlds": worlds}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        if self.worlds.resumable:
            observations = self.worlds.restore(state["worlds"])
        else:
            observations = self.worlds.reset(self.world_seed(int(state["iteration"])))
        self.now = Training.from_arrays(state, observations)

    def close(self) -> None:
        """Free the worlds and the helper thread."""
        self.helper.shutdown()
        self.worlds.close()


def checkpoint_every(trainer: Trainer) -> int:
    """Updates between checkpoints.

    Where a checkpoint cuts episodes off, they are so many that whole episodes fit in between.
    """
    if trainer.worlds.resumable or trainer.task.horizon is None:
        return CHECKPOINT_EVERY
    return max(CHECKPOINT_EVERY, 2 * -(-trainer.task.horizon // trainer.settings.rollout))


def shaped(name: str, given: Any, wanted: tuple[int, ...]) -> Any:
    """An array in float32, or an error where it has not the shape it must have."""
    values = np.asarray(given, dtype=np.float32)
    if values.shape != wanted:
        raise ArgumentError(
            f"the {name} in the rollout are an array of the shape {list(values.shape)}; for "
            f"{wanted[0]} steps of {wanted[1]} worlds it must be {list(wanted)}"
        )
    return values
