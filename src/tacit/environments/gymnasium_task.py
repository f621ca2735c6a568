"""Any Gymnasium environment as a task: an id, an environment, or a function that makes one."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from tacit.argument_checks import check_count
from tacit.environments.gymnasium_source import (
    Environment,
    Source,
    label_of,
    source_of,
)
from tacit.environments.gymnasium_worlds import GymnasiumWorlds, spaces_of
from tacit.environments.gymnasium_wrappers import (
    CostFunction,
    CostReporting,
    FlatEnvironment,
    cost_vector,
)
from tacit.environments.task import SimulatedTask
from tacit.environments.worlds import check_finite
from tacit.errors import TaskError

PROBE_SEED = 0
UNKNOWN = "unknown"


def gymnasium_task(
    environment: str | EnvSpec | Environment | Callable[..., Environment],
    *,
    cost: CostFunction | Literal["unknown"] | None = None,
    horizon: int | None = None,
    name: str | None = None,
    **make_options: Any,
) -> SimulatedTask:
    """A Gymnasium environment as a task, e.g. `gymnasium_task("CartPole-v1", cost=too_far_left)`.

    The worlds and the environment of the task have flat spaces: observations as
    `gymnasium.spaces.utils.flatten` gives them, in floats; actions as a float32 box (clipped to the
    environment's own bounds) or as the numbers 0..n-1. One reset and one step are taken here, to
    see whether there is a cost and how many numbers it has.

    Arguments:
        environment: a registered id, an environment, or a function called once for each world. Of
            an environment, the first world is the environment itself; it stays open when the worlds
            are closed. More worlds are made from its `spec`, or copied where it has none.
        cost: `cost(observation, action, next_observation)` is the true cost of a step, a number or
            a row of them for several constraints; it sees observations and actions in the
            environment's own form. None: the environment puts it into `info["cost"]`. "unknown":
            nobody knows it, which is why it is to be inferred; then no violations are counted.
        horizon: cut episodes short after this many steps, if the environment does not do so before.
        name: what to call the task; by default the id, or the name of the environment's class.
        **make_options: passed on to `gymnasium.make` or to the function.
    """
    check_arguments(cost, horizon)
    source = source_of(environment, make_options)
    first = source.first()
    try:
        label = label_of(first)
        name = name or label
        own_limit = first.spec.max_episode_steps if first.spec else None
        prepare = partial(prepared, cost=cost, horizon=horizon, name=name)
        probed = prepare(first)
        observation_space, action_space = spaces_of([probed], name)
        number_of_costs = 0 if cost == UNKNOWN else count_costs(probed, name)
    finally:
        first.close()
    limits = [limit for limit in (horizon, own_limit) if limit is not None]
    described = cost
    if callable(cost):
        described = getattr(cost, "__qualname__", type(cost).__name__)
    return SimulatedTask(
        name=name,
        options={"environment": label, "cost": described, "horizon": horizon, **make_options},
        observation_space=observation_space,
        action_space=action_space,
        horizon=min(limits, default=None),
        constraints=constraint_names(number_of_costs),
        make_worlds=partial(make_worlds, source, prepare, number_of_costs, name),
        make_environment=lambda render_mode: prepare(source.fresh(render_mode)),
    )


def check_arguments(cost: object, horizon: object) -> None:
    """A cost that can be called and a horizon that is a whole number, if given at all."""
    if cost is not None and cost != UNKNOWN and not callable(cost):
        raise TaskError(
            "cost must be a function cost(observation, action, next_observation) or 'unknown', "
            f"not {cost!r}"
        )
    if horizon is None:
        return
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise TaskError(f"horizon must be None or a whole number of at least 1, not {horizon!r}")


def prepared(
    environment: Environment,
    *,
    cost: CostFunction | Literal["unknown"] | None,
    horizon: int | None,
    name: str,
) -> Environment:
    """`environment` with its cost in `info`, flat spaces and the task's horizon."""
    if not isinstance(cost, str):
        environment = CostReporting(environment, cost, name)
    environment = FlatEnvironment(environment, name)
    return environment if horizon is None else gymnasium.wrappers.TimeLimit(environment, horizon)


def count_costs(environment: Environment, name: str) -> int:
    """How many costs a step reports, found by taking one."""
    environment.reset(seed=PROBE_SEED)
    environment.action_space.seed(PROBE_SEED)
    info = environment.step(environment.action_space.sample())[4]
    costs = cost_vector(info["cost"], name)
    check_finite(name, cost=costs[None])
    return len(costs)


def constraint_names(number: int) -> tuple[str, ...]:
    """`cost`, or `cost 0`, `cost 1` and so on."""
    return ("cost",) if number == 1 else tuple(f"cost {index}" for index in range(number))


def make_worlds(
    source: Source,
    prepare: Callable[[Environment], Environment],
    number_of_costs: int,
    name: str,
    number: int,
    threads: int | None = None,
) -> GymnasiumWorlds:
    """`number` worlds; `threads` is ignored, as environments are stepped one after the other."""
    environments: list[Environment] = []
    try:
        for index in range(check_count("the number of worlds", number)):
            environments.append(source.fresh() if index else source.first())
        if len({id(environment) for environment in environments}) < number:
            raise TaskError(
                f"the function that makes {name} returned the same environment twice; it must make "
                f"a new one each time"
            )
        return GymnasiumWorlds(
            [prepare(environment) for environment in environments],
            number_of_costs=number_of_costs,
            name=name,
        )
    except Exception:
        for environment in environments:
            environment.close()
        raise
