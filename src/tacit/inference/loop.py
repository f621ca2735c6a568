"""The loop of Algorithm 1, the same for every method.

    repeat
        policy      <- `every` updates of forward control against the present constraint
        replay      <- what the policy did
        constraint  <- the method's update: experts against replay
        budget      <- the experts' own cost under the new constraint, plus the method's budget

The budget is relative because a learned cost is nowhere quite zero: against a fixed one that even
the experts exceed, the multiplier would rise without end.
"""

import dataclasses
import time
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from tacit.control.judgement import no_costs
from tacit.control.learner import Rollout
from tacit.control.ppo import PPO
from tacit.control.trainer import Trainer
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, DivergenceError
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Inputs
from tacit.inference.method import Learned, Method, Round
from tacit.inference.replay import Replay

FITTED_EXPERTS = 10_000
EXPLODED = 1e5
# What the result tells of the last update of the policy.
LAST: tuple[str, ...] = ("cost", "multiplier")
# What the trainer tells of each cost where there are many.
MANY: tuple[str, ...] = ("cost", "multiplier", "cost_value_error")
# Streams of random numbers that must not be the same.
MODEL, UPDATES, FITTING, CLONING = 1_000_003, 1_000_033, 1_000_037, 1_000_039


class Inference:
    """One run of a method on a simulated task, one update of the policy at a time.

    All randomness comes from `seed` and the number of the iteration, so that `state` and `restore`
    continue bit for bit.

    Arguments:
        task: what policies act in; its true cost is measured and never learned from.
        experts: the demonstrations.
        method: what is learned, with its settings.
        confidence: asked for by the user; only CA-ICRL knows what to do with it.
        forward: settings of PPO.
        seed: of everything random.
        threads: for the simulator, None for all cores.
    """

    def __init__(
        self,
        task: SimulatedTask,
        experts: ExpertSteps,
        method: Method,
        confidence: float,
        forward: PPO,
        *,
        seed: int,
        threads: int | None = None,
    ) -> None:
        self.task, self.experts, self.method = task, experts, method
        self.confidence, self.seed = confidence, seed
        changes_rewards = method.rewards_too
        if forward.charge_once:
            raise ArgumentError("charge_once is for a cost of 0 or 1; a learned one lies between")
        wanted = "worst" if method.number_of_costs(2) != 1 else "step"
        if forward.multiplier.budget_per != wanted:
            raise ArgumentError(
                f"multiplier.budget_per must be {wanted!r} here: so is measured what the experts "
                "spend, and the policy may spend"
            )
        if forward.relative_costs is None:
            forward = dataclasses.replace(forward, relative_costs=True)
        self.trainer = Trainer(
            task,
            forward,
            seed=seed,
            cost=no_costs if changes_rewards else self.costs,
            constraints=0 if changes_rewards else self.number_of_costs,
            reward=self.judge if changes_rewards else self.feasible_rewards,
            threads=threads,
        )
        self.key = jax.random.fold_in(jax.random.key(seed), MODEL)
        self.learned = self.beginning(Inputs.blank(self.observation_size, task.action_space))
        self.replay = method.new_replay(self.blank_rollout(), self.generator())
        self.rollout: Rollout | None = None
        self.worst = np.zeros((0, 0), np.float32)
        self.seconds = 0.0
        # Repeated until the next update of the constraint.
        told = method.told if method.rewards_too else method.told + LAST
        self.latest: dict[str, float] = dict.fromkeys(told, 0.0)

    @property
    def observation_size(self) -> int:
        """Numbers in an observation."""
        return self.task.observation_space.shape[0]

    @property
    def number_of_costs(self) -> int:
        """Costs that the method gives, each with a price of its own."""
        return self.method.number_of_costs(self.observation_size)

    @property
    def finished(self) -> bool:
        """Whether all steps of the settings have been taken."""
        return self.trainer.finished

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.trainer.steps

    @property
    def iteration(self) -> int:
        """Updates of the policy so far."""
        return self.trainer.iteration

    def beginning(self, inputs: Inputs) -> Learned:
        """Nothing learned yet."""
        # Updates have the numbers from 1 on.
        key = jax.random.fold_in(self.key, 0)
        return self.method.start(inputs, self.experts, self.trainer.settings, key=key)

    def generator(self, stream: int = UPDATES) -> np.random.Generator:
        """Random draws of this iteration."""
        return np.random.default_rng([self.seed, self.iteration, stream, *self.trainer.turn_words])

    def advance(self) -> dict[str, float]:
        """One update of the policy and, when it is time, one of the constraint."""
        began = time.perf_counter()
        able = self.iteration == 0 and self.method.able_temptation
        if able or self.iteration == self.imitates_at:
            self.begin_as_experts()
        facts = self.summed(self.trainer.advance())
        if self.iteration == 1 or self.iteration % self.method.every == 0:
            self.latest.update(self.update_constraint(facts))
        self.latest.update({name: facts[name] for name in LAST if name in facts})
        facts.update(self.latest)
        self.check(facts)
        self.seconds += time.perf_counter() - began
        facts["seconds"] = self.seconds
        return facts

    @property
    def imitates_at(self) -> int:
        """The iteration after which the policy begins anew as an imitation, or -1."""
        share = self.method.temptation
        return -1 if share == 1 else round(share * self.trainer.settings.iterations)

    def begin_as_experts(self) -> None:
        """The policy starts from what the experts do: where it has been tempted, or to be so."""
        generator = self.generator(CLONING)

        def draw(number: int) -> tuple[np.ndarray, np.ndarray]:
            steps = self.experts.draw(number, generator)
            return np.asarray(steps.observations), np.asarray(steps.actions)

        self.trainer.begin_as(draw)
        self.learned = self.method.interrupted(self.learned)

    def summed(self, facts: dict[str, float]) -> dict[str, float]:
        """What is told of many costs: the mean cost of a step, and the highest of the prices."""
        if self.number_of_costs == 1 or self.method.rewards_too:
            return facts
        prices = [value for name, value in facts.items() if name.startswith("multiplier ")]
        kept = {name: value for name, value in facts.items() if name.rpartition(" ")[0] not in MANY}
        return {**kept, "cost": float(self.worst.mean()), "multiplier": max(prices)}

    def update_constraint(self, facts: dict[str, float]) -> dict[str, float]:
        """Let the method learn from what the policy did; returns what to write down."""
        assert self.rollout is not None
        generator = self.generator()
        self.method.remember(self.replay, self.rollout, generator)
        given = Round(
            experts=self.experts,
            replay=self.replay,
            generator=generator,
            passed=self.iteration / self.trainer.settings.iterations,
            length=facts.get("episode_length", float(self.task.horizon or 1000)),
            confidence=self.confidence,
        )
        key = jax.random.fold_in(self.key, self.iteration)
        self.learned, news = self.method.update(self.learned, given, key=key)
        if not self.method.rewards_too:
            own = self.method.experts_cost(self.learned, given, self.trainer.settings.rollout)
            self.trainer.allow(self.method.allowance(own, self.confidence))
            news["expert_cost"] = own
        return news

    def judge(self, rollout: Rollout) -> Float[np.ndarray, "T n ..."]:
        """What the method says about a rollout: costs, or rewards where it changes those."""
        if self.iteration == 1:
            self.learned = self.beginning(self.fitted_inputs(rollout))
        self.rollout = rollout
        self.learned, verdict = self.method.judge(self.learned, rollout, self.confidence)
        return verdict

    def costs(self, rollout: Rollout) -> Float[np.ndarray, "T n k"]:
        """The learned costs of every step."""
        verdict = self.judge(rollout)
        costs = verdict if verdict.ndim == 3 else verdict[..., None]
        if self.method.free_temptation and self.iteration <= self.imitates_at:
            costs = np.zeros_like(costs)
        self.worst = costs.max(axis=-1)
        return costs

    def feasible_rewards(self, rollout: Rollout) -> Float[np.ndarray, "T n"]:
        """What is earned counts as far as the step is feasible; what is lost counts in full."""
        rewards = np.asarray(rollout.rewards)
        if not self.method.only_feasible_rewards:
            return rewards
        return np.where(rewards > 0, rewards * (1 - self.worst), rewards)

    def fitted_inputs(self, rollout: Rollout) -> Inputs:
        """Features on the scale of the experts and of this first rollout."""
        seen = np.asarray(rollout.observations).reshape(-1, self.observation_size)
        steps = self.experts.draw(FITTED_EXPERTS, self.generator(FITTING))
        return Inputs.fit(self.task.action_space, np.asarray(steps.observations), seen)

    def check(self, facts: dict[str, float]) -> None:
        """Raise an error that names what went out of bounds, and when."""
        for name, value in facts.items():
            if not np.isfinite(value) or (name == "multiplier" and value > EXPLODED):
                raise DivergenceError(
                    f"{self.method.name} on {self.task.name} diverged: {name} is {value:g} after "
                    f"{self.trainer.steps} steps; a lower learning rate of the constraint, or a "
                    "cap on the multiplier (multiplier.largest), may help"
                )

    def turn_to(self, confidence: float, experts: ExpertSteps, share: float) -> None:
        """Go on from here under another confidence or with other experts: a warm start.

        The last `share` of the run is done again, with its learning rates and with other random
        numbers. What is known of how far policies want to go is kept. Such a run cannot be saved.
        """
        others = experts is not self.experts
        self.confidence, self.experts = confidence, experts
        self.learned = self.method.with_experts(self.learned, experts)
        self.trainer.rewind(share)
        self.key = jax.random.fold_in(self.key, self.trainer.turns)
        if others and self.method.temptation < 1:
            # What the experts before knew must not help those who come now.
            self.begin_as_experts()

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as one tree of arrays."""
        trainer = self.trainer.state()
        if not self.trainer.worlds.resumable:
            self.learned = self.method.interrupted(self.learned)
        return {
            "trainer": trainer,
            "learned": self.learned,
            "replay": {} if self.replay is None else self.replay.state(),
            "seconds": self.seconds,
            "latest": dict(self.latest),
        }

    def blank_rollout(self) -> Rollout:
        """A rollout of zeros, to see the shapes of samples."""
        settings = self.trainer.settings
        shape = (settings.rollout, settings.worlds)
        discrete = self.experts.actions.ndim == 2
        size = () if discrete else self.experts.actions.shape[2:]
        zeros: Any = np.zeros
        return Rollout(
            observations=zeros((*shape, self.observation_size), np.float32),
            arrived=zeros((*shape, self.observation_size), np.float32),
            actions=zeros((*shape, *size), np.int32 if discrete else np.float32),
            rewards=zeros(shape, np.float32),
            costs=zeros((*shape, 1), np.float32),
            terminated=zeros(shape, bool),
            truncated=zeros(shape, bool),
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.trainer.restore(state["trainer"])
        self.learned = jax.tree.map(jax.numpy.asarray, state["learned"])
        self.replay = Replay.from_state(state["replay"]) if state["replay"] else None
        self.seconds = float(state["seconds"])
        self.latest = {name: float(value) for name, value in state["latest"].items()}

    def close(self) -> None:
        """Free the worlds."""
        self.trainer.close()
