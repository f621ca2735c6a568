"""CA-ICRL: confidence aware inverse constrained reinforcement learning (Algorithm 1, ICML 2024).

Every expert votes for or against a step (or a trajectory), the votes are counted in a Beta belief
over its feasibility, and a confidence lambda reads a constraint off the belief:

    alpha = 1 + sum_i for_i,   beta = 1 + sum_i against_i            (section 3.1)
    phi*  = (1 - lambda)-quantile of Beta(alpha, beta)               (equation 9)

    repeat
        policy   <- PPO-Lagrange with cost 1 - phi*, for `every` updates
        samples  <- the policy's steps, and those of its predecessors
        encoder  <- gradient steps on the objective, with importance weights
                    nu = phi_w / phi_wbar, ended when they drift        (equations 8, 12)
        experts  <- encoded once more, and remembered until the next update

Objectives, with v(x) standing for the log-feasibility of a sample:

`quantile`, the paper's: v = log phi*.

    -E_experts[v] + E_policy[nu v]

`evidence`, a variational bound with the right dependence on N; lambda is not in it, so that one
belief answers at every confidence: v = E[log phi] = psi(alpha) - psi(alpha + beta), and

    -E_experts[v] + E_policy[nu v] + (prior / N) E[KL(Beta(alpha, beta) || Beta(1, 1))]

`contrast`, ours, for votes `visits`: no likelihood, the encoder only learns who passes where; see
`voters`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.argument_checks import check_choice, check_count
from tacit.control.learner import Rollout
from tacit.errors import ArgumentError
from tacit.inference.confidence.belief import READINGS, Reading
from tacit.inference.confidence.quantile import beta_quantile
from tacit.inference.constraint_model import cost_of
from tacit.inference.counts.likelihood import divergence_from_prior, log_feasibility
from tacit.inference.encoder.belief_model import BeliefModel, BeliefShape, blank_steps, new_model
from tacit.inference.encoder.encoders import ENCODERS, Encoder, make_encoder
from tacit.inference.encoder.model import GRANULARITIES, ConfidenceModel, Granularity
from tacit.inference.encoder.voters import Voters, contrast, past_policies
from tacit.inference.encoder.votes import DEEP_VOTES, DeepVotes, ExpertMemory, PolicyMemory
from tacit.inference.experts import ExpertSteps
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.inputs import Inputs, Steps
from tacit.inference.method import Judged, Learned, Moment, Round
from tacit.inference.replay import sample_steps, sample_windows
from tacit.inference.trained_method import JUDGED_EXPERTS, TrainedMethod

Objective = Literal["quantile", "evidence", "contrast"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
WINDOWS = 4
SMALLEST = 1e-6
# Violated steps per episode that the reading `graded` prices evidence by.
GRADED_BUDGET = 0.02
# Two, whatever the machine: numbers must not depend on how many cores it has.
HELPERS = ThreadPoolExecutor(max_workers=2)


class Memory(NamedTuple):
    """Who votes, and how the encoder saw them after the last update."""

    voters: Voters
    experts: ExpertMemory
    policies: PolicyMemory | None


@dataclass(frozen=True, kw_only=True)
class CAICRL(TrainedMethod):
    """The method `ca-icrl`, the paper's own: experts vote on every step through an encoder.

    Fields:
        objective: `quantile` (the paper's), `evidence` or `contrast`.
        votes: `independent` (the paper's), `abstain`, or `visits` with the objective `contrast`;
            None for what fits.
        reading: how a confidence reads a cost off the belief: `soft` (the paper's), `hard` or
            `graded`; see `tacit.inference.confidence.belief`.
        granularity: `step`, or `trajectory`: a step then costs what it takes from the feasibility
            of its trajectory. A trajectory is as much of an episode as one rollout shows.
        window: steps of the pieces of trajectories that are learned from.
        encoder: `transformer`, `bidaf` or `attention`, or an `Encoder` of your own: its name, or
            its class.
        width: numbers in a token.
        heads: of the attention.
        layers: of the transformer.
        tokens: steps kept of each expert, drawn anew for every update.
        voters: experts that vote, drawn anew for every update; each speaks for N / voters.
        compared: experts that a gradient step encodes, likewise.
        prior: weight of the divergence from the prior, objective `evidence`.
        temptations: past rounds that votes `visits` look at.
    """

    minibatch: int = 256
    objective: Objective = "quantile"
    votes: DeepVotes | None = None
    reading: Reading = "soft"
    granularity: Granularity = "step"
    window: int = 64
    encoder: str | type[Encoder] = "transformer"
    width: int = 32
    heads: int = 2
    layers: int = 4
    tokens: int = 16
    voters: int = 100
    compared: int = 32
    prior: float = 1.0
    temptations: int = 8

    name: ClassVar[str] = "ca-icrl"
    heeds_confidence: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.votes is None:
            fitting = "visits" if self.objective == "contrast" else "independent"
            object.__setattr__(self, "votes", fitting)
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("votes", self.votes, DEEP_VOTES)
        check_choice("reading", self.reading, READINGS)
        if isinstance(self.encoder, type) and issubclass(self.encoder, Encoder):
            # One that only inherits a name would be taken for the one it inherits from.
            name = self.encoder.__dict__.get("name")
            if name is None:
                raise ArgumentError(f"encoder {self.encoder.__name__} has no `name` of its own")
            object.__setattr__(self, "encoder", name)
        check_choice("encoder", self.encoder, tuple(ENCODERS))
        check_choice("granularity", self.granularity, GRANULARITIES)
        check_count("window", self.window)
        for name in ("width", "heads", "layers", "tokens", "voters", "compared", "temptations"):
            check_count(name, getattr(self, name))
        if (self.objective == "contrast") != (self.votes == "visits"):
            raise ArgumentError(
                f"objective {self.objective!r} does not go with votes {self.votes!r}: 'contrast' "
                "goes with 'visits', the others with 'independent' or 'abstain'"
            )

    @property
    def any_confidence(self) -> bool:
        """The paper's objective trains for one confidence."""
        return self.objective != "quantile"

    def check_sizes(self, observed: int) -> None:
        """The encoder must be one that can be made like this; nothing is computed."""
        sizes = str(self.encoder), observed, self.width, self.heads, self.layers
        jax.eval_shape(partial(make_encoder, *sizes, key=jax.random.key(0)))

    def made(self, experts: int) -> BeliefShape:
        """The shapes of the belief for N experts."""
        visits = self.votes == "visits"
        return BeliefShape(
            votes=self.votes,
            granularity=self.granularity,
            encoder=str(self.encoder),
            width=self.width,
            heads=self.heads,
            layers=self.layers,
            experts=min(self.voters, experts),
            tokens=self.tokens,
            rounds=self.temptations if visits else 0,
            windows=WINDOWS if visits else 0,
        )

    def new_model(self, inputs: Inputs, experts: int, *, key: Key[Array, ""]) -> ConfidenceModel:
        """The encoder before learning; see `VoteHead` for what it says then."""
        return new_model(inputs, self.made(experts), experts, key=key)

    def new_memory(
        self, model: ConfidenceModel, experts: ExpertSteps, worlds: int, *, key: Key[Array, ""]
    ) -> Memory:
        """Voters before the first update; there is nobody to be tempted yet."""
        del worlds
        generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        voters = self.drawn(experts, generator)
        made = self.made(len(experts))
        if made.rounds:
            blank = blank_steps(model.inputs, (made.rounds, made.windows, made.tokens))
            voters = voters._replace(policies=blank, used=jnp.zeros(made.rounds, bool))
        return remembered(model, voters)

    def drawn(self, experts: ExpertSteps, generator: np.random.Generator) -> Voters:
        """Voters; their steps in order of time only where those of the policies are."""
        voters = Voters.draw(experts, self.voters, self.tokens, generator)
        return voters if self.granularity == "trajectory" else voters.shuffled(generator)

    def constraint(self, learned: Learned) -> BeliefModel:
        """What encoder and voters make of a step."""
        memory: Memory = learned.memory
        return BeliefModel(
            model=learned.model,
            memory=memory.experts,
            policies=memory.policies,
            reading=self.reading,
            budget=GRADED_BUDGET,
            made=self.made(int(memory.voters.number)),
        )

    def sample(self, rollout: Rollout, generator: np.random.Generator) -> Steps:
        """Steps, or windows of them."""
        if self.granularity == "step":
            return sample_steps(rollout, self.rows, generator)
        number = max(1, self.rows // self.window)
        return sample_windows(rollout, number, self.window, generator)

    def experts_sample(self, given: Round, number: int) -> Steps:
        """Steps of experts, or windows of them."""
        if self.granularity == "step":
            return super().experts_sample(given, number)
        return given.experts.windows(number, self.window, given.generator)

    def judge(self, learned: Learned, rollout: Rollout, moment: Moment) -> Judged:
        """The cost of every step; the reward stays as it is."""
        costs = self.costs(self.constraint(learned), rollout, moment.confidence)
        return Judged(learned, costs[..., None], np.asarray(rollout.rewards))

    def costs(
        self, constraint: BeliefModel, rollout: Rollout, confidence: float
    ) -> Float[np.ndarray, "T n"]:
        """The cost of every step of a rollout."""
        if self.granularity == "step":
            halves = (
                np.array_split(np.asarray(field), 2)
                for field in (rollout.observations, rollout.actions)
            )
            costs = HELPERS.map(partial(half_costs, constraint, confidence), *halves)
            return np.concatenate(list(costs))
        turned = [np.swapaxes(field, 0, 1) for field in (rollout.observations, rollout.actions)]
        ended = np.asarray(rollout.terminated | rollout.truncated).T
        begins = np.concatenate([np.ones_like(ended[:, :1]), ended[:, :-1]], axis=1)
        costs = trajectory_cost(constraint, *turned, confidence, begins)
        return np.asarray(costs).T

    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """Mean cost of a step of the experts."""
        if self.granularity == "step":
            steps = given.experts.draw(JUDGED_EXPERTS, given.generator)
        else:
            # As long as what a rollout shows of an episode: a longer piece spreads cost thinner.
            number = max(1, JUDGED_EXPERTS // width)
            steps = given.experts.windows(number, width, given.generator)
        constraint = self.constraint(learned)
        costs = cost_of(constraint, steps.observations, steps.actions, given.confidence)
        return float((costs * steps.present).sum() / steps.present.sum())

    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Choose who votes, take gradient steps, and encode the voters for the rollouts to come."""
        voters = self.drawn(given.experts, given.generator)
        if self.granularity == "trajectory":
            # The drift adds up over the samples of a trajectory, which are windows here.
            given = given._replace(length=max(1.0, given.length / self.window))
        made = self.made(len(given.experts))
        if made.rounds:
            assert given.replay is not None
            steps, used = past_policies(given.replay, made.rounds, made.windows, made.tokens)
            voters = voters._replace(policies=steps, used=jnp.asarray(used))
        learned = learned._replace(memory=learned.memory._replace(voters=voters))
        learned, facts = super().update(learned, given, key=key)
        return learned._replace(memory=remembered(learned.model, voters)), facts

    def log_feasibility(
        self, model: ConfidenceModel, memory: Memory, steps: Steps, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """Log phi of each sample (of each window); 0 for `contrast`, which has no likelihood."""
        if self.objective == "contrast":
            return super().log_feasibility(model, memory, steps, confidence)
        voters = memory.voters.some(self.compared, key=jax.random.key(0))
        return self.log_values(model, voters, steps, confidence)[0]

    def log_values(
        self, model: ConfidenceModel, voters: Voters, steps: Steps, confidence: Array | float
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """V and the divergence from the prior of every sample."""
        alpha, beta = model.belief(steps, voters.experts_by(model))
        if self.granularity == "trajectory":
            alpha, beta = alpha[..., -1], beta[..., -1]
        if self.objective == "quantile":
            values = jnp.log(beta_quantile(1 - confidence, alpha, beta) + SMALLEST)
        else:
            values = log_feasibility(alpha, beta, None)
        return values, divergence_from_prior(alpha, beta)

    def loss(self, model: ConfidenceModel, batch: Minibatch) -> Float[Array, ""]:
        """What the objective makes small."""
        voters = batch.memory.voters.some(self.compared, key=batch.key)
        pair = batch.experts, batch.policy
        if self.objective == "contrast":
            return contrast(model, voters, *pair, key=jax.random.fold_in(batch.key, 1))
        both = Steps(*map(jnp.concatenate, zip(*pair, strict=True)))
        values, divergence = self.log_values(model, voters, both, batch.confidence)
        for_experts, for_policy = jnp.split(values, 2)
        loss = (batch.weights * for_policy).mean() - for_experts.mean()
        if self.objective == "evidence":
            loss = loss + self.prior / voters.number * divergence.mean()
        return loss


@jax.jit
def remembered(model: ConfidenceModel, voters: Voters) -> Memory:
    """The voters, encoded once for all rollouts until the next update."""
    return Memory(voters, voters.experts_by(model), voters.policies_by(model))


def half_costs(
    constraint: BeliefModel, confidence: float, observations: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """Costs of a half of the steps: the comparison with experts runs on one core, so two may."""
    return np.asarray(cost_of(constraint, observations, actions, confidence))


@jax.jit
def trajectory_cost(
    constraint: BeliefModel, observations: Array, actions: Array, confidence: float, begins: Array
) -> Float[Array, "n T"]:
    """Costs of whole rollouts, in which episodes begin where `begins` is true."""
    return constraint.cost(observations, actions, confidence, begins)
