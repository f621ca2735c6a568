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
from tacit.control.best import Best
from tacit.control.episode_ledger import PARTIAL, EpisodeLedger
from tacit.control.imitation import Draw, imitate
from tacit.control.judgement import Judgement, checked
from tacit.control.learner import Learner, Rollout
from tacit.control.play import within
from tacit.control.ppo import PPO, update_critics, update_policy
from tacit.control.update_facts import update_facts
from tacit.environments.task import SimulatedTask
from tacit.environments.worlds import Worlds
from tacit.errors import ArgumentError

compiled = functools.partial(jax.jit, static_argnames="settings")
prepare = compiled(learning.prepare)
policy_pass = compiled(update_policy)
critic_pass = compiled(update_critics)
finish = jax.jit(learning.finish)

REST, REST_SHARE = 10, 0.05
"""Updates for which a policy that begins as an imitation rests, at most; and of the whole run."""


class Trainer:
    """PPO on a simulated task, one update at a time.

    All randomness comes from `seed` and the number of the iteration, so that `state` and `restore`
    continue bit for bit. Worlds that cannot be saved are reset whenever `state` is taken.

    Arguments:
        task: what to train on.
        settings: of PPO.
        seed: of networks, actions and worlds.
        cost: the cost to learn from, evaluated on a whole rollout [T, n] at once, giving [T, n, k];
            None for the task's true cost. It sees continuous actions cut to their box, as they
            are in demonstrations. The ledger always counts true rewards and violations.
        constraints: k of `cost`.
        reward: the reward to learn from, likewise, giving [T, n]; None for the task's.
        threads: for the worlds, None for all cores.
    """

    def __init__(
        self,
        task: SimulatedTask,
        settings: PPO,
        *,
        seed: int,
        cost: Judgement | None = None,
        constraints: int = 1,
        reward: Judgement | None = None,
        threads: int | None = None,
    ) -> None:
        self.task, self.settings, self.seed = task, settings, seed
        self.cost, self.reward = cost, reward
        self.worlds: Worlds = task.worlds(settings.worlds, threads=threads)
        self.key = jax.random.key(seed)
        self.number_of_costs = self.worlds.number_of_costs if cost is None else constraints
        self.learner: Learner = self.fresh_learner(0)
        self.iteration = 0
        self.turns = 0
        self.rests_until = 0
        self.ledger = EpisodeLedger.start(settings.worlds)
        self.best: Best | None = None
        self.imitation: Actor | None = None
        self.seconds = 0.0
        self.observations = self.worlds.reset(self.world_seed())
        self.ledger.running[:, PARTIAL] = self.worlds.stagger()
        self.helper = ThreadPoolExecutor(max_workers=1)

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
        return Actor.of(self.learner, self.task.action_space, self.settings)

    def fresh_learner(self, iteration: int) -> Learner:
        """One that has seen nothing."""
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

    def world_seed(self) -> int:
        """A seed for the worlds, drawn from this run's seed and the number of the iteration."""
        entropy = [self.seed, self.iteration, *self.turn_words]
        words = np.random.SeedSequence(entropy).generate_state(1, np.uint32)
        return int(words[0])

    def advance(self) -> dict[str, float]:
        """One rollout and one update; returns what to write down about it."""
        began = time.perf_counter()
        self.iteration += 1
        action_key, policy_key, critic_key = jax.random.split(
            jax.random.fold_in(self.key, self.iteration), 3
        )
        true = self.roll_out(action_key)
        ended = true.terminated | true.truncated
        self.ledger.add(*map(np.asarray, (true.rewards, true.costs, ended)))
        rollout = self.judged(true)
        learner, batch = prepare(self.learner, rollout, self.settings)
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
        if self.iteration <= self.rests_until:
            policy = policy._replace(policy=learner.policy, optimiser=learner.policy_optimiser)
        actor = self.actor
        self.learner, progress = finish(learner, rollout, batch, policy, critics.result())
        facts = self.ledger.summary()
        facts.update(update_facts(progress, self.task.name, self.iteration, self.steps))
        self.keep_best(actor)
        self.seconds += time.perf_counter() - began
        facts["seconds"] = self.seconds
        return facts

    def roll_out(self, key: jax.Array) -> Rollout:
        """Step all worlds with the present policy."""
        steps, number = self.settings.rollout, self.settings.worlds
        actor = self.actor
        noise = np.array(self.learner.policy.noise((steps, number), key=key))
        noise[:, : self.settings.intended] = 0
        discrete = actor.std is None
        size = self.observations.shape[-1]
        shape = (steps, number)
        record = SimpleNamespace(
            observations=np.empty((*shape, size), np.float32),
            arrived=np.empty((*shape, size), np.float32),
            actions=np.empty(shape if discrete else noise.shape, np.int32 if discrete else "f4"),
            rewards=np.empty(shape, np.float32),
            costs=np.empty((*shape, self.worlds.number_of_costs), np.float32),
            terminated=np.empty(shape, bool),
            truncated=np.empty(shape, bool),
        )
        for now in range(steps):
            actions = actor.draw(self.observations, noise[now])
            record.observations[now] = self.observations
            record.actions[now] = actions
            step = self.worlds.step(actions)
            self.observations = step.observations
            record.arrived[now] = step.arrived
            record.rewards[now] = step.rewards
            record.costs[now] = step.costs
            record.terminated[now] = step.terminated
            record.truncated[now] = step.truncated
        return Rollout(**vars(record))

    def judged(self, rollout: Rollout) -> Rollout:
        """The rollout with the rewards and costs to learn from, in place of the true ones."""
        if self.cost is None and self.reward is None:
            return rollout
        taken = within(self.task.action_space, np.asarray(rollout.actions))
        seen = rollout._replace(actions=taken)
        length, worlds = rollout.rewards.shape
        if self.cost is not None:
            wanted = (length, worlds, len(self.learner.multiplier.price))
            rollout = rollout._replace(costs=checked("cost", self.cost(seen), wanted))
        if self.reward is not None:
            wanted = (length, worlds)
            rollout = rollout._replace(rewards=checked("reward", self.reward(seen), wanted))
        return rollout

    def allow(self, cost: float) -> None:
        """Let every cost be this much above its budget, from the next update on."""
        price = self.learner.multiplier
        allowance = jnp.full_like(price.allowance, cost)
        self.learner = self.learner._replace(multiplier=price._replace(allowance=allowance))

    def rewind(self, share: float) -> None:
        """Let the last `share` of the run be done again from here, with other random numbers.

        The state cannot be saved afterwards.
        """
        if not 0 < share < 1:
            raise ArgumentError(f"share must lie between 0 and 1, not {share!r}")
        self.turns += 1
        again = max(1, round(share * self.settings.iterations))
        self.iteration = max(1, self.settings.iterations - again)
        self.learner = self.learner._replace(updates=jnp.asarray(self.iteration, jnp.int32))
        self.key = jax.random.fold_in(self.key, self.turns)
        self.forget_episodes()

    def begin_as(self, draw: Draw) -> None:
        """Begin anew as an imitation of experts, but go on with the run.

        The policy rests for some updates, until the critics know it.
        """
        rest = max(1, min(REST, round(REST_SHARE * self.settings.iterations)))
        self.rests_until = self.iteration + rest
        fresh = self.fresh_learner(self.iteration)._replace(updates=self.learner.updates)
        self.learner = imitate(fresh, draw, self.task.action_space, self.settings)
        self.imitation, self.best = self.actor, None
        self.forget_episodes()

    def forget_episodes(self) -> None:
        """New episodes in all worlds, and none are remembered."""
        self.ledger = EpisodeLedger.start(self.settings.worlds)
        self.begin_episodes()
        self.ledger.running[:, PARTIAL] = self.worlds.stagger()

    def begin_episodes(self) -> None:
        """New episodes in all worlds; what was summed up in the running ones is dropped."""
        self.observations = self.worlds.reset(self.world_seed())
        self.ledger.running[:] = 0
        self.learner = self.learner._replace(
            sums=jnp.zeros_like(self.learner.sums), worst=jnp.zeros_like(self.learner.worst)
        )

    def keep_best(self, actor: Actor) -> None:
        """Remember the actor that played this rollout if it did better than any before."""
        score = self.ledger.score()
        if score is not None and (self.best is None or score > self.best.score):
            self.best = Best(actor, score, self.steps)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as one tree of arrays."""
        if self.turns:
            raise ArgumentError("a training that was rewound cannot be saved")
        if self.worlds.resumable:
            worlds = self.worlds.state()
        else:
            # What cannot be saved is begun anew, now and whenever this state is taken up again.
            self.begin_episodes()
            worlds = {}
        best = self.best or Best(self.actor, -np.inf, 0)
        return {
            "learner": self.learner,
            "iteration": self.iteration,
            "rests_until": self.rests_until,
            "imitation": (self.imitation or self.actor).arrays(),
            "seconds": self.seconds,
            "ledger": self.ledger.arrays(),
            "worlds": worlds,
            "best": best.arrays(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.learner = jax.tree.map(jnp.asarray, state["learner"])
        self.iteration, self.seconds = int(state["iteration"]), float(state["seconds"])
        self.rests_until = int(state["rests_until"])
        imitation = {name: np.asarray(part) for name, part in state["imitation"].items()}
        self.imitation = Actor.from_arrays(imitation) if self.rests_until else None
        self.ledger = EpisodeLedger.from_arrays(state["ledger"])
        self.best = Best.from_arrays(state["best"])
        if self.worlds.resumable:
            self.observations = self.worlds.restore(state["worlds"])
        else:
            self.observations = self.worlds.reset(self.world_seed())

    def close(self) -> None:
        """Free the worlds and the helper thread."""
        self.helper.shutdown()
        self.worlds.close()
