"""The price of a unit of cost: the Lagrange multiplier, one per constraint.

    maximise  E[reward]  subject to  E[cost_k] <= budget_k          (equation 4 of the paper)
    min over nu >= 0, max over policies:  E[reward] - sum_k nu_k (E[cost_k] - budget_k)

Dual ascent raises nu_k while cost k is above its budget and lowers it while it is below. The
reference code never lets it fall below its start; here it may. A budget of 0 is allowed: then nu
rises as long as there is any cost, and never falls.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from tacit.argument_checks import check_choice
from tacit.errors import ArgumentError

# Adam's long memory for the size of costs (1000 updates) is wanted: with a shorter one, the rare
# violations of a policy that hardly violates raise the price as fast as the first ones did.
ADAM = optax.scale_by_adam(b2=0.999)


LEAST_SHARE, LEAST_PRICE = 1e-3, 1e-2


@dataclass(frozen=True)
class Multiplier:
    """How the price of cost is set.

    Fields:
        kind: "lagrange": dual ascent, nu = softplus(theta) with Adam on theta. "pid": nu =
            proportional * error + integral * (sum of errors, not below 0) + derivative * (rise of
            the cost), not below 0. "penalty": nu = `start` wherever the cost is above its budget
            and 0 otherwise; nothing is learned. "share": log nu moves by at most `rate` per
            update, up where the share of episodes that break the rule (the mean of their worst
            step's cost) is above its budget and down where it is below.
        budget: cost that is allowed, one number for every constraint or one for each.
        budget_per: "step": the mean cost of a step; "episode": of a whole episode, undiscounted;
            "worst": of an episode's worst step, which is what "share" is about.
        start: nu before the first update.
        rate: of the ascent: theta moves by about this much per update ("lagrange").
        largest: cap on nu, None for none.
        proportional, integral, derivative: gains of "pid".
    """

    kind: Literal["lagrange", "pid", "penalty", "share"] = "lagrange"
    budget: float | tuple[float, ...] = 0.0
    budget_per: Literal["step", "episode", "worst"] = "step"
    start: float = 1.0
    rate: float = 0.1
    largest: float | None = None
    proportional: float = 10.0
    integral: float = 1.0
    derivative: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.budget, list):
            object.__setattr__(self, "budget", tuple(self.budget))
        check_choice("kind", self.kind, ("lagrange", "pid", "penalty", "share"))
        check_choice("budget_per", self.budget_per, ("step", "episode", "worst"))
        for budget in self.budgets_given:
            if not budget >= 0:
                raise ArgumentError(f"a budget of cost must be at least 0, not {budget!r}")
        if not self.start > 0:
            raise ArgumentError(f"the multiplier must start above 0, not at {self.start!r}")
        if not self.rate >= 0:
            raise ArgumentError(f"the multiplier's rate must be at least 0, not {self.rate!r}")
        if self.largest is not None and not self.largest >= self.start:
            raise ArgumentError(
                f"the largest multiplier, {self.largest!r}, is below its start, {self.start!r}"
            )

    @property
    def budgets_given(self) -> tuple[float, ...]:
        """The budgets as they were given, one or many."""
        return self.budget if isinstance(self.budget, tuple) else (self.budget,)

    def budgets(self, constraints: int) -> Float[Array, " k"]:
        """One budget per constraint."""
        given = self.budgets_given
        if len(given) not in (1, constraints):
            raise ArgumentError(
                f"{len(given)} budgets were given for {constraints} constraints: give one number "
                "for all, or one for each"
            )
        return jnp.broadcast_to(jnp.asarray(given, dtype=jnp.float32), (constraints,))


class MultiplierState(NamedTuple):
    """The state of the multiplier between updates; `price` is nu.

    `allowance` is added to the budget. Where the cost is learned, it may be set to what the experts
    themselves spend: a learned cost is nowhere quite zero, so that no policy could keep a budget of
    zero at any price.
    """

    price: Float[Array, " k"]
    theta: Float[Array, " k"]
    adam: optax.OptState
    integral: Float[Array, " k"]
    last_cost: Float[Array, " k"]
    allowance: Float[Array, " k"]


def start(settings: Multiplier, constraints: int) -> MultiplierState:
    """The state before the first update, with every nu at its start."""
    settings.budgets(constraints)
    price = jnp.full(constraints, settings.start, dtype=jnp.float32)
    theta = price + jnp.log(-jnp.expm1(-price))
    zero = jnp.zeros(constraints)
    return MultiplierState(price, theta, ADAM.init(theta), zero, zero, zero)


def ascend(
    settings: Multiplier, state: MultiplierState, costs: Float[Array, " k"]
) -> MultiplierState:
    """Move the price by unnormalised mean costs, per step or per episode; returns the new state."""
    error = costs - settings.budgets(costs.shape[0]) - state.allowance
    theta, adam, integral = state.theta, state.adam, state.integral
    if settings.kind == "lagrange":
        direction, adam = ADAM.update(error, state.adam)
        theta = theta + settings.rate * jnp.asarray(direction)
        price = jax.nn.softplus(theta)
    elif settings.kind == "pid":
        integral = jnp.maximum(integral + error, 0.0)
        rise = jnp.maximum(costs - state.last_cost, 0.0)
        price = jnp.maximum(
            settings.proportional * error
            + settings.integral * integral
            + settings.derivative * rise,
            0.0,
        )
    elif settings.kind == "share":
        # In units of the budget, and as fast down as up: a policy far above it may come back late.
        direction = jnp.clip(error / (costs - error + LEAST_SHARE), -1.0, 1.0)
        price = state.price * jnp.exp(settings.rate * direction)
        price = jnp.maximum(price, LEAST_PRICE)
    else:
        price = jnp.where(error > 0, settings.start, 0.0)
    if settings.largest is not None:
        price = jnp.minimum(price, settings.largest)
        top = settings.largest + jnp.log(-jnp.expm1(-settings.largest))
        theta = jnp.minimum(theta, top)
    return MultiplierState(price, theta, adam, integral, costs, state.allowance)
