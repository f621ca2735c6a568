"""The loop of Algorithm 1, the same for every method that learns by acting.

    repeat
        rollout     <- the policy acts in all worlds
        costs       <- the method judges the rollout by the present constraint
        policy      <- one update of forward control (PPO-Lagrange) on these costs
        and after every `every` of these
            replay      <- what the policy did
            constraint  <- the method's update: experts against replay
            budget      <- the experts' own cost under the new constraint, plus the method's budget

The budget is relative because a learned cost is nowhere quite zero: against a fixed one that even
the experts exceed, the multiplier would rise without end.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np

from tacit.control.expert import check_training
from tacit.control.learner import Rollout
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer, checkpoint_every
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, DivergenceError
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces, check_named
from tacit.inference.experts import ExpertSteps, as_simulated, fingerprint
from tacit.inference.final_policy import chosen_policy
from tacit.inference.inputs import Inputs
from tacit.inference.method import Judged, Learned, Method, Moment, Round
from tacit.inference.replay import Replay
from tacit.inference.result import Result
from tacit.runs.resumable_run import ProgressCallback, run_until_finished
from tacit.runs.settings_file import installed_versions

FITTED_EXPERTS = 10_000
EXPLODED = 1e5
# What the result tells of the last update of the policy.
LAST: tuple[str, ...] = ("cost", "multiplier")
# What the trainer tells of each cost where there are many.
MANY: tuple[str, ...] = ("cost", "multiplier", "cost_value_error")
# Streams of random numbers that must not be the same.
MODEL, UPDATES, FITTING, CLONING = 1_000_003, 1_000_033, 1_000_037, 1_000_039


@dataclass
class Standing:
    """Where a run stands, beside its trainer.

    Fields:
        learned: what the method knows; None before the first rollout.
        replay: what past policies did; None where the method wants none.
        latest: the newest numbers of the constraint, repeated until its next update.
        seconds: time spent so far.
    """

    learned: Learned | None
    replay: Replay | None
    latest: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


class Inference:
    """One run of a method on a simulated task, one update of the policy at a time.

    All randomness comes from `seed` and the number of the iteration, so that `state` and `restore`
    continue bit for bit.

    Arguments:
        task: what policies act in; its true cost is measured and never learned from.
        experts: the demonstrations.
        method: what is learned, with its settings.
        confidence: asked for by the user; only methods of the CA-ICRL family heed it.
        forward: settings of PPO.
        seed: of everything random.
        threads: for the simulator, None for all cores.
        given: the task that the user gave, where that is a table.
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
        given: TabularTask | SimulatedTask | None = None,
    ) -> None:
        self.task, self.experts, self.method = task, experts, method
        self.confidence, self.seed, self.threads = confidence, seed, threads
        self.given = given or task
        if forward.charge_once:
            raise ArgumentError("charge_once is for a cost of 0 or 1; a learned one lies between")
        if forward.multiplier.budget_per != method.budget_per:
            raise ArgumentError(
                f"multiplier.budget_per must be {method.budget_per!r} here, as in "
                f"{type(method).__name__}.forward(task): so is measured what experts spend"
            )
        if forward.relative_costs is None:
            forward = dataclasses.replace(forward, relative_costs=True)
        method.check_sizes(task.observation_space.shape[0])
        self.number_of_costs = method.number_of_costs(task.observation_space.shape[0])
        self.trainer = Trainer(
            task, forward, seed=seed, constraints=self.number_of_costs, threads=threads
        )
        self.key = jax.random.fold_in(jax.random.key(seed), MODEL)
        # Only the shapes of its samples matter.
        noise = np.empty((forward.rollout, forward.worlds, *(task.action_space.shape or ())))
        blank = Rollout(**vars(self.trainer.blank_record(noise)))
        reported = method.reported + (LAST if self.number_of_costs else ())
        self.now = Standing(
            learned=None,
            replay=method.new_replay(blank, self.generator()),
            latest=dict.fromkeys(reported, 0.0),
        )

    @classmethod
    def of(
        cls,
        task: TabularTask | SimulatedTask,
        demonstrations: Trajectories,
        method: Method,
        confidence: float,
        *,
        seed: int,
        forward: PPO | None = None,
        threads: int | None = None,
    ) -> Self:
        """A run that has not begun, from what users give; a table becomes a simulator."""
        check_training(seed, forward)
        if not isinstance(method, Method):
            raise ArgumentError(f"this takes a method that learns by acting, not {method.name!r}")
        simulator, shown = as_simulated(task, demonstrations)
        experts = ExpertSteps.of(simulator, shown)
        forward = forward or method.forward(simulator)
        asked = simulator, experts, method, confidence, forward
        return cls(*asked, seed=seed, threads=threads, given=task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def finish(
        self,
        folder: Path | str | None = None,
        progress: ProgressCallback | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        """Run to the end; with a folder, from wherever the last attempt in it was stopped."""
        run_until_finished(
            self,
            folder,
            self.described(),
            label="inference",
            every=checkpoint_every(self.trainer),
            progress=progress,
            notice=notice,
        )

    def advance(self) -> dict[str, float]:
        """One update of the policy and, when it is time, one of the constraint."""
        started = time.perf_counter()
        if self.iteration in self.method.imitates_at(self.trainer.settings.iterations):
            self.begin_as_experts()
        rollout = self.trainer.roll_out()
        seen = rollout.within(self.task.action_space)
        judged = self.judge(seen)
        facts = self.trainer.learn(rollout._replace(costs=judged.costs, rewards=judged.rewards))
        facts = self.summed(facts, judged)
        if self.iteration == 1 or self.iteration % self.method.every == 0:
            self.now.latest.update(self.update_constraint(seen, facts))
        self.now.latest.update({name: facts[name] for name in LAST if name in facts})
        facts.update(self.now.latest)
        self.check(facts)
        self.now.seconds += time.perf_counter() - started
        facts["seconds"] = self.now.seconds
        return facts

    def begin_as_experts(self) -> None:
        """Let the policy begin anew as an imitation of the experts."""
        generator = self.generator(CLONING)

        def draw(number: int) -> tuple[np.ndarray, np.ndarray]:
            steps = self.experts.draw(number, generator)
            return np.asarray(steps.observations), np.asarray(steps.actions)

        self.trainer.begin_as(draw)
        if self.now.learned is not None:
            self.now.learned = self.method.forget_episodes(self.now.learned)

    def judge(self, rollout: Rollout) -> Judged:
        """What the method says about the rollout; it begins with the first one."""
        if self.now.learned is None:
            self.now.learned = self.beginning(self.fitted_inputs(rollout))
        turns = self.method.imitates_at(self.trainer.settings.iterations)
        exploring = self.iteration <= max(turns, default=-1)
        moment = Moment(self.confidence, exploring)
        judged = self.method.judge(self.now.learned, rollout, moment)
        self.now.learned = judged.learned
        return judged

    def update_constraint(self, rollout: Rollout, facts: dict[str, float]) -> dict[str, float]:
        """Let the method learn from what the policy did; returns what to write down."""
        assert self.now.learned is not None
        generator = self.generator()
        self.method.remember(self.now.replay, rollout, generator)
        given = Round(
            experts=self.experts,
            replay=self.now.replay,
            generator=generator,
            passed=self.iteration / self.trainer.settings.iterations,
            length=facts.get("episode_length", float(self.task.horizon or 1000)),
            confidence=self.confidence,
        )
        key = jax.random.fold_in(self.key, self.iteration)
        self.now.learned, news = self.method.update(self.now.learned, given, key=key)
        if wrong := (news.keys() ^ set(self.method.reported)) - {"expert_cost"}:
            raise ArgumentError(
                f"{type(self.method).__name__}.update must return what `reported` names and no "
                f"more: {', '.join(sorted(wrong))}"
            )
        if self.number_of_costs:
            width = self.trainer.settings.rollout
            own = self.method.experts_cost(self.now.learned, given, width)
            self.trainer.allow(self.method.allowance(own, self.confidence))
            news["expert_cost"] = own
        return news

    def beginning(self, inputs: Inputs) -> Learned:
        """What the method knows before anything is learned."""
        # Updates have the numbers from 1 on.
        key = jax.random.fold_in(self.key, 0)
        learned = self.method.begin(inputs, self.experts, self.trainer.settings, key=key)
        # Now, and not when hours of training are over.
        check_named(self.method.constraint(learned))
        return learned

    def generator(self, stream: int = UPDATES) -> np.random.Generator:
        """Random draws of this iteration."""
        return np.random.default_rng([self.seed, self.iteration, stream, *self.trainer.turn_words])

    def fitted_inputs(self, rollout: Rollout) -> Inputs:
        """Features on the scale of the experts and of the first rollout."""
        seen = np.asarray(rollout.observations).reshape(-1, rollout.observations.shape[-1])
        steps = self.experts.draw(FITTED_EXPERTS, self.generator(FITTING))
        return Inputs.fit(self.task.action_space, np.asarray(steps.observations), seen)

    def summed(self, facts: dict[str, float], judged: Judged) -> dict[str, float]:
        """Of many costs: the mean of a step's highest, and the highest of the prices."""
        if self.number_of_costs < 2:
            return facts
        prices = [value for name, value in facts.items() if name.startswith("multiplier ")]
        kept = {name: value for name, value in facts.items() if name.rpartition(" ")[0] not in MANY}
        worst = np.asarray(judged.costs).max(axis=-1)
        return {**kept, "cost": float(worst.mean()), "multiplier": max(prices)}

    def check(self, facts: dict[str, float]) -> None:
        """Raise an error that names what went out of bounds, and when."""
        for name, value in facts.items():
            if not np.isfinite(value) or (name == "multiplier" and value > EXPLODED):
                raise DivergenceError(
                    f"{self.method.name} on {self.task.name} diverged: {name} is {value:g} after "
                    f"{self.trainer.steps} steps; a lower learning rate of the constraint, or a "
                    "cap on the multiplier (multiplier.largest), may help"
                )

    def continue_at(self, confidence: float, experts: ExpertSteps, share: float) -> None:
        """Go on from here under another confidence or with other experts: a warm start.

        The last `share` of the run is done again, with its learning rates and with other random
        numbers. What is known of how far policies want to go is kept. Such a run cannot be saved.
        """
        assert self.now.learned is not None
        others = experts is not self.experts
        self.confidence, self.experts = confidence, experts
        self.now.learned = self.method.with_experts(self.now.learned, experts)
        self.trainer.rewind(share)
        self.key = jax.random.fold_in(self.key, self.trainer.turns)
        if others and self.method.temptation < 1:
            # What the experts before knew must not help those who come now.
            self.begin_as_experts()

    def described(self) -> dict[str, Any]:
        """All that decides the numbers of the run."""
        return {
            "task": self.task.name,
            "options": dict(self.task.options),
            **({"data_sha256": self.task.data_sha256} if self.task.data_sha256 else {}),
            "method": self.method.name,
            "settings": self.method.settings(),
            "confidence": float(self.confidence),
            "seed": self.seed,
            "demonstrations": len(self.experts),
            "demonstrations_sha256": fingerprint(self.experts),
            "ppo": dataclasses.asdict(self.trainer.settings),
        }

    def result(self) -> Result:
        """What the finished run has found out."""
        assert self.now.learned is not None
        ledger, described = self.trainer.now.ledger, self.described()
        constraint = Constraint(
            model=self.method.constraint(self.now.learned),
            confidence=float(self.confidence),
            spaces=Spaces(self.task.observation_space, self.task.action_space),
            any_confidence=self.method.any_confidence,
            facts={
                "method": self.method.name,
                "task": self.task.name,
                "seed": self.seed,
                "demonstrations": len(self.experts),
            },
            names=tuple(self.task.observation_names),
        )
        return Result(
            constraint=constraint,
            policy=chosen_policy(self.trainer, constraint, self.threads),
            metrics={
                **{f"training_{name}": value for name, value in ledger.summary().items()},
                **self.now.latest,
                "steps": self.steps,
                "minutes": self.now.seconds / 60,
            },
            training=ledger.ended.copy(),
            settings={**described, "versions": installed_versions()},
            task=self.given,
        )

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here, as one tree of arrays."""
        trainer = self.trainer.state()
        learned = self.now.learned
        if learned is None:
            # The pattern of what is to be restored.
            size = self.task.observation_space.shape[0]
            learned = self.beginning(Inputs.blank(size, self.task.action_space))
        elif not self.trainer.worlds.resumable:
            learned = self.now.learned = self.method.forget_episodes(learned)
        return {
            "trainer": trainer,
            "learned": learned,
            "replay": {} if self.now.replay is None else self.now.replay.state(),
            "seconds": self.now.seconds,
            "latest": dict(self.now.latest),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.trainer.restore(state["trainer"])
        self.now = Standing(
            learned=jax.tree.map(jax.numpy.asarray, state["learned"]),
            replay=Replay.from_state(state["replay"]) if state["replay"] else None,
            latest={name: float(value) for name, value in state["latest"].items()},
            seconds=float(state["seconds"]),
        )

    def close(self) -> None:
        """Free the worlds."""
        self.trainer.close()
