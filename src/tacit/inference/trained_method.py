"""What methods share whose constraint is a model trained by gradient steps."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from tacit.argument_checks import check_count, fits
from tacit.control.learner import Rollout
from tacit.control.settings import PPO
from tacit.errors import ArgumentError
from tacit.inference.constraint_model import cost_of
from tacit.inference.experts import ExpertSteps
from tacit.inference.gradient_steps import DRIFT_LIMITS, Minibatch, gradient_passes
from tacit.inference.inputs import Inputs, Steps
from tacit.inference.method import Judged, Learned, Method, Moment, Round
from tacit.inference.replay import Replay, sample_steps

JUDGED_EXPERTS = 2048  # steps by which the experts' own cost is measured


@dataclass(frozen=True, kw_only=True)
class TrainedMethod(Method):
    """Settings that all methods share which train a model by gradient steps.

    Fields:
        passes: gradient steps of one update of the constraint, fewer when it drifts too far.
        minibatch: steps of experts, and as many of policies, per gradient step.
        learning_rate: of Adam, for the constraint.
        final_learning_rate: what it falls to, in a straight line over the run, as a share.
        past: share of the policies' steps that come from all past rounds.
        rounds: how many past rounds are kept.
        rows: steps kept of each round.
        budget: mean cost of a step that the policy may have above the experts' own.
    """

    passes: int = 20
    minibatch: int = 512
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.1
    past: float = 0.7
    rounds: int = 100
    rows: int = 1024
    budget: float = 0.0

    reported: ClassVar[tuple[str, ...]] = (
        "constraint_loss",
        "constraint_passes",
        "drift",
        "expert_cost",
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # Millimetres decide, and there are few updates: a slower constraint stays blind.
        "BiasedPendulum": {"every": 2, "passes": 40, "learning_rate": 3e-3},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_layers()
        for name in ("passes", "minibatch", "rounds", "rows"):
            check_count(name, getattr(self, name))
        for name in ("past", "final_learning_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{name} must lie in [0, 1], not {getattr(self, name)!r}")
        if not 0 < self.learning_rate < np.inf:
            raise ArgumentError(
                f"learning_rate must be above 0 and finite, not {self.learning_rate!r}"
            )
        if not self.budget >= 0:
            raise ArgumentError(f"budget must be at least 0, not {self.budget!r}")

    def check_layers(self) -> None:
        """Layers are a tuple of counts, and weights of terms not below 0."""
        layers = getattr(self, "hidden", ())
        if not isinstance(layers, tuple | list):
            raise ArgumentError(f"hidden must be a tuple such as (64, 64), not {layers!r}")
        if hasattr(self, "hidden"):
            object.__setattr__(self, "hidden", tuple(layers))
        for units in layers:
            check_count("hidden", units)
        for name in ("regulariser", "penalty", "weight", "prior"):
            value = getattr(self, name, 0)
            for number in value if isinstance(value, tuple | list) else (value,):
                if not (fits(number, float) and 0 <= number < np.inf):
                    raise ArgumentError(f"{name} must be at least 0 and finite, not {value!r}")

    def rate(self, passed: float) -> float:
        """The learning rate when a share of the run is over."""
        return self.learning_rate * (1 - (1 - self.final_learning_rate) * passed)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam's directions, to be multiplied by the learning rate."""
        return optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam(eps=1e-5))

    def begin(
        self, inputs: Inputs, experts: ExpertSteps, forward: PPO, *, key: Key[Array, ""]
    ) -> Learned:
        """A model before learning, and what is kept beside it."""
        first, second = jax.random.split(key)
        model = self.new_model(inputs, len(experts), key=first)
        memory = self.new_memory(model, experts, forward.worlds, key=second)
        return Learned(model, self.optimiser.init(model), memory)

    @abstractmethod
    def new_model(self, inputs: Inputs, experts: int, *, key: Key[Array, ""]) -> Any:
        """The constraint model before learning."""

    def new_memory(
        self, model: Any, experts: ExpertSteps, worlds: int, *, key: Key[Array, ""]
    ) -> Any:
        """What else is kept; nothing for most methods."""
        del model, experts, worlds, key
        return ()

    def sample(self, rollout: Rollout, generator: np.random.Generator) -> Steps:
        """What of a rollout goes into the replay."""
        return sample_steps(rollout, self.rows, generator)

    def new_replay(self, rollout: Rollout, generator: np.random.Generator) -> Replay:
        """An empty replay for samples of rollouts like this one."""
        return Replay.start(self.rounds, self.sample(rollout, generator))

    def remember(
        self, replay: Replay | None, rollout: Rollout, generator: np.random.Generator
    ) -> None:
        """Put a sample into the replay."""
        assert replay is not None
        replay.add(self.sample(rollout, generator), generator)

    def allowance(self, expert_cost: float, confidence: float) -> float:
        """The mean cost of a step that the policy may have."""
        del confidence
        return self.budget + expert_cost

    def log_feasibility(
        self, model: Any, memory: Any, steps: Steps, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """Log phi of the samples, for importance weights; without it they are equal."""
        del model, memory, confidence
        return jnp.zeros(steps.present.shape)

    @abstractmethod
    def loss(self, model: Any, batch: Minibatch) -> Float[Array, ""]:
        """What the constraint's gradient steps make small."""

    def experts_sample(self, given: Round, number: int) -> Steps:
        """Samples of the experts like those in the replay."""
        return given.experts.draw(number, given.generator)

    def batches(self, given: Round) -> tuple[Steps, Steps]:
        """Steps of experts and of policies, [passes, minibatch] each."""
        number = self.passes * self.minibatch
        experts = self.experts_sample(given, number)
        assert given.replay is not None
        policy = given.replay.draw(number, self.past, given.generator, given.mixture)
        return self.stacked(experts), self.stacked(policy)

    def stacked(self, steps: Steps) -> Steps:
        """One minibatch per pass, along a new first axis."""
        shape = (self.passes, self.minibatch)
        return Steps(*(jnp.asarray(field).reshape(*shape, *field.shape[1:]) for field in steps))

    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Several gradient steps on the constraint."""
        experts, policy = self.batches(given)
        model, optimiser, facts = gradient_passes(
            self,
            learned,
            experts,
            policy,
            jnp.asarray(self.rate(given.passed)),
            jnp.asarray(given.length),
            jnp.asarray(given.confidence),
            DRIFT_LIMITS,
            key=key,
        )
        return learned._replace(model=model, optimiser=optimiser), facts


@dataclass(frozen=True, kw_only=True)
class StepCosts(TrainedMethod):
    """A method whose model says what a step costs: all but CA-ICRL.

    Fields:
        hidden: units of each hidden layer of the model.
    """

    hidden: tuple[int, ...] = (64, 64)

    kind: ClassVar[type[Any]]
    """The class of the model, which has `start(inputs, hidden, key=...)`."""

    def new_model(self, inputs: Inputs, experts: int, *, key: Key[Array, ""]) -> Any:
        """The model before learning."""
        del experts
        return self.kind.start(inputs, self.hidden, key=key)

    def judge(self, learned: Learned, rollout: Rollout, moment: Moment) -> Judged:
        """The model's cost of every step; the reward stays as it is."""
        seen, done = rollout.observations, rollout.actions
        costs = np.asarray(cost_of(learned.model, seen, done, moment.confidence))
        return Judged(learned, costs[..., None], np.asarray(rollout.rewards))

    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """Mean cost of some steps of the experts."""
        del width
        steps = given.experts.draw(JUDGED_EXPERTS, given.generator)
        costs = cost_of(learned.model, steps.observations, steps.actions, given.confidence)
        return float(costs.mean())
