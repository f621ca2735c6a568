"""A probability for every step: the constraint of ICRL, BC2L and ICL, GACL's discriminator."""

from typing import ClassVar

import jax
from jaxtyping import Array, Float, Shaped

from tacit.inference.baselines.networks import NetworkModel
from tacit.inference.inputs import Steps


class ClassifierModel(NetworkModel):
    """z(s, a) in (0, 1): how likely a step is an expert's, or how feasible it is."""

    outputs: ClassVar[int] = 1

    def logit(self, steps: Steps) -> Float[Array, "*n"]:
        """Log odds of z."""
        return self.raw(steps.observations, steps.actions)[..., 0]

    def feasibility(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """z; it knows no confidence."""
        del confidence
        return jax.nn.sigmoid(self.raw(observations, actions)[..., 0])
