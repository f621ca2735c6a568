"""The driving tasks for Gymnasium: one car, or many at once."""

import operator
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from tacit.environments.jax_environment import JaxEnvironment, JaxVectorEnvironment
from tacit.environments.jax_world import cost_of_one
from tacit.environments.worlds import RENDER_MODES, Outcome, Step
from tacit.errors import ArgumentError
from tacit.highway.driving_step import DriveState, HighwayTask
from tacit.highway.observation import FEATURES, gap_and_speed, reasons_in
from tacit.highway.scenarios import Scenario


@eqx.filter_jit
def start_scenario(task: HighwayTask, scenario: Array) -> tuple[DriveState, Array]:
    """`task.start`, compiled."""
    return task.start(scenario)


def describe(
    task: HighwayTask,
    scenario: Scenario,
    number: int,
    observation: Float[np.ndarray, " 74"],
    costs: Float[np.ndarray, " k"],
) -> dict[str, Any]:
    """What `info` says: costs of both rules, how the episode ended, which scenario it was."""
    gap, speed = gap_and_speed(observation)
    ended = reasons_in(observation)
    return {
        "cost": cost_of_one(costs),
        "cost_distance": float(gap < task.gap),
        "cost_velocity": float(speed > task.speed),
        "reason": ended[0] if ended else None,
        "is_success": "goal_reached" in ended[:1],
        "scenario": number,
        "ego_id": scenario.ego,
        "initial_cost": float(any(name in scenario.violates for name in task.constraints)),
    }


class HighwayEnvironment(JaxEnvironment):
    """One car among recorded traffic.

    `reset(options={"scenario": k})` picks a scenario; otherwise one is drawn.

    Fields:
        scenarios: all of them, see `Scenario`.
    """

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES], "render_fps": 25}  # noqa: RUF012
    task: HighwayTask

    def __init__(
        self, task: HighwayTask, scenarios: Sequence[Scenario], *, render_mode: str | None = None
    ) -> None:
        super().__init__(task, render_mode=render_mode)
        self.scenarios = scenarios
        self.observation = np.zeros(len(FEATURES), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " 74"], dict[str, Any]]:
        """Start the scenario in `options`, or one drawn at random."""
        number = chosen_scenario(options, len(self.scenarios))
        observation, _ = super().reset(seed=seed)
        if number is not None:
            self.state, start = start_scenario(self.task, jnp.int32(number))
            observation = np.array(start)
        return observation, self.info_of(
            observation, np.array(self.task.costs(jnp.asarray(observation)))
        )

    def info_of(
        self, observation: Float[np.ndarray, " 74"], costs: Float[np.ndarray, " k"]
    ) -> dict[str, Any]:
        """What `info` says after a step or a start."""
        self.observation = observation
        number = int(self.state.scenario)
        return describe(self.task, self.scenarios[number], number, observation, costs)

    def draw(self) -> UInt8[np.ndarray, "height width 3"]:
        """The road around the ego."""
        from tacit.highway.picture import draw

        return draw(self.task, self.state, self.observation)


class HighwayVectorEnvironment(JaxVectorEnvironment):
    """Many cars, each in a scenario of its own."""

    task: HighwayTask

    def __init__(self, task: HighwayTask, scenarios: Sequence[Scenario], num_envs: int = 1) -> None:
        super().__init__(task, num_envs)
        self.scenarios = scenarios

    def step(self, actions: np.ndarray) -> Outcome:
        """Take one action in every world; worlds whose episode ends start the next one."""
        self.driven = np.array(self.worlds.here().state.scenario)
        return super().step(actions)

    def last_info(self, step: Step, world: int) -> dict[str, Any]:
        """What `final_info` says of one car."""
        number = int(self.driven[world])
        scenario, observation = self.scenarios[number], step.arrived[world]
        return describe(self.task, scenario, number, observation, step.costs[world])


def chosen_scenario(options: dict[str, Any] | None, number: int) -> int | None:
    """The scenario that `options` ask for, checked."""
    if not options:
        return None
    unknown = sorted(set(options) - {"scenario"})
    if unknown:
        raise ArgumentError(f"reset knows the option 'scenario' only, not {unknown[0]!r}")
    try:
        scenario = operator.index(options["scenario"])
    except TypeError:
        scenario = -1
    if not 0 <= scenario < number:
        raise ArgumentError(
            f"option 'scenario' must be a whole number from 0 to {number - 1}, "
            f"not {options['scenario']!r}"
        )
    return scenario
