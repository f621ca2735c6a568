"""ICL: inverse constraint learning from soft constraints (Gaurav et al., ICLR 2023).

No likelihood: the cost is made as large as possible on what past policies did, while the experts
keep to a budget.

    fit a density to the experts' steps
    repeat
        policy      <- PPO-Penalty with cost c and budget, for `every` updates
        mixture     <- all policies so far, each weighted by how unlike the experts it is
        c           <- gradient steps on
                       maximise  J_c(mixture) - penalty * max(0, J_c(experts) - budget)

J_c is the mean cost of a step here (the paper's is discounted and summed), c = 1 - z lies in
(0, 1), and the weight of a policy is the share of its steps that the density finds unlikely. The
newest policy has a share of its own beside the mixture (1 - `past`).
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from tacit.control.multiplier import Multiplier
from tacit.control.networks import Perceptron
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask
from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.experts import ExpertSteps
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.inputs import Inputs, Steps
from tacit.inference.method import Learned, Round
from tacit.inference.trained_method import StepCosts

FITTED = 10_000
SMALLEST_WEIGHT = 0.01  # no policy is forgotten altogether
# A coupling stretches a feature by at most e^2; those of a flow of four, by e^4.
LARGEST_LOG_STRETCH = 2.0
LARGEST_GRADIENT = 10.0
LOOK_EVERY = 50


class Flow(eqx.Module):
    """A density over step features: RealNVP (Dinh, Sohl-Dickstein, Bengio, ICLR 2017).

    log p(x) = log N(z; 0, I) + log |det dz/dx|, where z is (x - centre) / scale after some affine
    couplings. Each one keeps one half of the features (those of even or of odd index, by turns)
    and moves the other: y <- y exp(s(kept)) + t(kept), which adds the sum of s to log |det dz/dx|.
    s stays within +-`LARGEST_LOG_STRETCH`, so that z grows with x everywhere: steps far from all
    that was seen are unlikely, whatever the networks say there.

    A single feature has no other half, thus no couplings: its density is the Gaussian of centre
    and scale. So is that of a flow that has not been trained, feature by feature.
    """

    centre: Float[Array, " f"]
    scale: Float[Array, " f"]
    couplings: list[Perceptron]

    @classmethod
    def start(
        cls, size: int, *, layers: int = 4, hidden: Sequence[int] = (64,), key: Key[Array, ""]
    ) -> "Flow":
        """A standard normal density over `size` features, ready to be trained."""
        halves = (size + 1) // 2, size // 2
        couplings = [
            Perceptron(
                (halves[index % 2], *hidden, 2 * halves[1 - index % 2]),
                last_gain=0.0,
                key=layer_key,
            )
            for index, layer_key in enumerate(jax.random.split(key, layers))
            if size > 1
        ]
        return cls(jnp.zeros(size), jnp.ones(size), couplings)

    def latents(
        self, features: Float[Array, "*n f"]
    ) -> tuple[Float[Array, "*n f"], Float[Array, "*n"]]:
        """The z and log |det dz/dx| of each step; z holds one half after the other."""
        values = (features - self.centre) / self.scale
        kept, moved = values[..., ::2], values[..., 1::2]
        log_stretch = jnp.zeros(values.shape[:-1]) - jnp.log(self.scale).sum()
        for coupling in self.couplings:
            shift, stretch = jnp.split(coupling(kept), 2, axis=-1)
            stretch = LARGEST_LOG_STRETCH * jnp.tanh(stretch / LARGEST_LOG_STRETCH)
            kept, moved = moved * jnp.exp(stretch) + shift, kept
            log_stretch = log_stretch + stretch.sum(axis=-1)
        return jnp.concatenate([kept, moved], axis=-1), log_stretch

    def log_density(self, features: Float[Array, "*n f"]) -> Float[Array, "*n"]:
        """The log p(x) of each step, in nats."""
        latents, log_stretch = self.latents(features)
        constant = features.shape[-1] * math.log(2 * math.pi)
        return log_stretch - (jnp.square(latents).sum(axis=-1) + constant) / 2


def fit_flow(
    features: Float[Array, "n f"],
    *,
    key: Key[Array, ""],
    layers: int = 4,
    hidden: Sequence[int] = (64,),
    noise: float = 0.02,
    steps: int = 2000,
    minibatch: int = 256,
    learning_rate: float = 3e-3,
) -> Flow:
    """The flow of highest likelihood, by Adam with a rate that falls to 0 as a cosine.

    The density fitted is that of the features with Gaussian noise of standard deviation `noise`
    added, drawn anew at each step. Features which the experts hold constant, or which are a one
    among zeros, have no density of their own; with the noise, and a scale of
    sqrt(variance + noise^2), a constant one is a standard normal one to the couplings.

    A tenth of the rows is held out; of the couplings, looked at every `LOOK_EVERY` steps (of which
    there are whole multiples, rounded up), those are kept under which it is likeliest. Without
    this, a thousand demonstrated steps of 24 features are learned by heart, and the experts' next
    ones count as unlike them.
    """
    start_key, shuffle_key, train_key = jax.random.split(key, 3)
    flow = dataclasses.replace(
        Flow.start(features.shape[-1], layers=layers, hidden=hidden, key=start_key),
        centre=features.mean(axis=0),
        scale=jnp.sqrt(features.var(axis=0) + noise**2),
    )
    shuffled = jax.random.permutation(shuffle_key, features)
    number_held = max(1, features.shape[0] // 10)
    held, trained = shuffled[:number_held], shuffled[number_held:]
    # One row alone has to serve as both.
    trained = trained if trained.shape[0] else held
    settings = FlowSettings(noise, -(-steps // LOOK_EVERY), minibatch, learning_rate)
    return _trained(flow, trained, held, settings, key=train_key)


class FlowSettings(NamedTuple):
    """How a flow is fitted; see `fit_flow`. A round is `LOOK_EVERY` steps."""

    noise: float
    rounds: int
    minibatch: int
    learning_rate: float


@eqx.filter_jit
def _trained(
    flow: Flow,
    features: Float[Array, "n f"],
    held: Float[Array, "m f"],
    settings: FlowSettings,
    *,
    key: Key[Array, ""],
) -> Flow:
    start, couplings_of = ravel_pytree(flow.couplings)
    rate = optax.cosine_decay_schedule(settings.learning_rate, settings.rounds * LOOK_EVERY)
    optimiser = optax.chain(optax.clip_by_global_norm(LARGEST_GRADIENT), optax.adam(rate))
    held_key, loop_key = jax.random.split(key)

    def loss(parameters: Float[Array, " p"], batch: Float[Array, "b f"]) -> Float[Array, ""]:
        candidate = dataclasses.replace(flow, couplings=couplings_of(parameters))
        return -candidate.log_density(batch).mean()

    def blurred(rows: Float[Array, "*b f"], noise_key: Key[Array, ""]) -> Float[Array, "*b f"]:
        return rows + settings.noise * jax.random.normal(noise_key, rows.shape)

    held = blurred(held, held_key)

    def step(carry: tuple, batch: Float[Array, "b f"]) -> tuple[tuple, None]:
        parameters, state = carry
        change, state = optimiser.update(jax.grad(loss)(parameters, batch), state)
        return (parameters + change, state), None

    def round_of_steps(carry: tuple, round_key: Key[Array, ""]) -> tuple[tuple, None]:
        inner, best, lowest = carry
        row_key, noise_key = jax.random.split(round_key)
        shape = LOOK_EVERY, settings.minibatch
        rows = jax.random.randint(row_key, shape, 0, features.shape[0])
        inner, _ = jax.lax.scan(step, inner, blurred(features[rows], noise_key))
        found = loss(inner[0], held)
        better = found < lowest
        return (inner, jnp.where(better, inner[0], best), jnp.where(better, found, lowest)), None

    carry = (start, optimiser.init(start)), start, loss(start, held)
    keys = jax.random.split(loop_key, settings.rounds)
    (_, best, _), _ = jax.lax.scan(round_of_steps, carry, keys)
    return dataclasses.replace(flow, couplings=couplings_of(best))


def threshold_of(flow: Flow, expert_features: Float[Array, "n f"]) -> Float[Array, ""]:
    """-log p above which a step is unlike the experts': mean plus standard deviation of theirs.

    From the code of ICL (Gaurav, Rezaee, Liu, Poupart, ICLR 2023; github.com/ashishgaurav13/ICL,
    icl.py), where the steps are those to which the flow was fitted.
    """
    surprise = -flow.log_density(expert_features)
    return surprise.mean() + surprise.std()


def unlikeness(
    flow: Flow, features: Float[Array, "n f"], threshold: Float[Array, ""]
) -> Float[Array, ""]:
    """Share of steps that are unlike the experts': mean over x of [-log p(x) > threshold].

    As in the code of ICL (tools/algorithms/constrained_ppo.py and cost_adjustment.py). There, a
    policy's is the mean of those of its episodes; a past policy is drawn for the mixture with
    probability w_i / sum_j w_j, where w are the policies' unlikenesses; and J_c of the mixture
    sums the drawn episodes with such weights again, of their own unlikenesses.
    """
    return jnp.mean(-flow.log_density(features) > threshold, dtype=features.dtype)


class Mixture(NamedTuple):
    """The experts' density, and the weight of every round in the replay."""

    flow: Flow
    threshold: Float[Array, ""]
    weights: Float[Array, " R"]


@dataclass(frozen=True, kw_only=True)
class ICL(StepCosts):
    """The method `icl`: the cost that past policies run up and the experts keep within a budget.

    Fields:
        budget: mean cost of a step that experts and policy may have; not on top of the experts'.
        penalty: for experts above the budget.
    """

    budget: float = 0.05
    penalty: float = 10.0

    name: ClassVar[str] = "icl"
    kind: ClassVar[type[ClassifierModel]] = ClassifierModel

    @classmethod
    def forward(cls, task: SimulatedTask) -> PPO:
        """As for all methods, but PPO-Penalty."""
        penalty = Multiplier(kind="penalty", start=2.0)
        return dataclasses.replace(super().forward(task), multiplier=penalty)

    def new_memory(
        self, model: ClassifierModel, experts: ExpertSteps, worlds: int, *, key: Key[Array, ""]
    ) -> Mixture:
        """An untrained density and no policies."""
        del experts, worlds
        flow = Flow.start(model.inputs.size, key=key)
        return Mixture(flow, jnp.zeros(()), jnp.zeros(self.rounds))

    def allowance(self, expert_cost: float, confidence: float) -> float:
        """The budget itself; it is the cost that is kept below it on the experts."""
        del expert_cost, confidence
        return self.budget

    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Weigh the newest policy, then let the cost learn from the mixture."""
        assert given.replay is not None
        inputs, memory = learned.model.inputs, learned.memory
        if given.replay.rounds == 1:
            memory = fitted(inputs, memory, given, key=jax.random.fold_in(key, 0))
        newest = Steps.on_host(
            *(np.asarray(field)[given.replay.newest] for field in given.replay.steps)
        )
        unlike = unlikeness(
            memory.flow, inputs(newest.observations, newest.actions), memory.threshold
        )
        weights = memory.weights.at[given.replay.newest].set(unlike)
        learned = learned._replace(memory=memory._replace(weights=weights))
        weighed = given._replace(mixture=np.asarray(weights) + SMALLEST_WEIGHT)
        return super().update(learned, weighed, key=jax.random.fold_in(key, 1))

    def loss(self, model: ClassifierModel, batch: Minibatch) -> Float[Array, ""]:
        """-J_c(mixture) + penalty * max(0, J_c(experts) - budget)."""
        for_experts = jax.nn.sigmoid(-model.logit(batch.experts)).mean()
        for_mixture = jax.nn.sigmoid(-model.logit(batch.policy)).mean()
        return self.penalty * jax.nn.relu(for_experts - self.budget) - for_mixture


def fitted(inputs: Inputs, memory: Mixture, given: Round, *, key: Key[Array, ""]) -> Mixture:
    """The mixture with a density of the experts' steps."""
    steps = given.experts.draw(FITTED, given.generator)
    features = inputs(jnp.asarray(steps.observations), jnp.asarray(steps.actions))
    flow = fit_flow(features, key=key)
    return memory._replace(flow=flow, threshold=threshold_of(flow, features))
