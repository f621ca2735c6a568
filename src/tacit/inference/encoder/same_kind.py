"""Who passes where: what the encoder learns when votes are visits.

With m(x, tau) the probability that the step x and the trajectory tau are of the same kind (both an
expert's, or both a policy's), the loss is the cross-entropy of

    m(expert step, expert) = 1,  m(policy step, expert) = 0,
    m(policy step, policy) = 1,  m(expert step, policy) = 0.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tacit.inference.encoder.memory import ExpertMemory
from tacit.inference.encoder.model import ConfidenceModel
from tacit.inference.encoder.voters import Voters
from tacit.inference.inputs import Steps


def same_kind_loss(
    model: ConfidenceModel, voters: Voters, experts: Steps, policy: Steps, *, key: Key[Array, ""]
) -> Float[Array, ""]:
    """The cross-entropy; of the policies, one window of every round is used."""
    assert voters.policies is not None
    assert voters.used is not None
    window = jax.random.randint(key, (), 0, voters.policies.present.shape[1])
    one = Steps(*(field[:, window] for field in voters.policies))
    one = one._replace(present=one.present & voters.used[:, None])
    rounds = len(voters.used)
    blank = jnp.zeros((rounds, one.present.shape[1]), jnp.int32)
    passing = voters.experts_by(model)
    tempted = model.remember(one, jnp.zeros(rounds, jnp.int32), blank, float(rounds))
    total = jnp.zeros(())
    for memory, mine, others in ((passing, experts, policy), (tempted, policy, experts)):
        there = memory.voters / jnp.maximum(memory.voters.sum(), 1)
        for_mine = jax.nn.log_sigmoid(whole_logit(model, mine, memory)) @ there
        for_others = jax.nn.log_sigmoid(-whole_logit(model, others, memory)) @ there
        total = total - for_mine.mean() - for_others.mean()
    return total


def whole_logit(model: ConfidenceModel, steps: Steps, memory: ExpertMemory) -> Float[Array, "B S"]:
    """Log odds that sample and trajectory are of the same kind; of windows, that of the whole."""
    logits = model.passing_logit(steps, memory)
    return logits if logits.ndim == 2 else logits[:, -1]
