"""Tabular tasks as pure JAX functions and as simulators, for methods that learn by trying."""

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tacit.environments.jax_environment import JaxEnvironment
from tacit.environments.jax_task import task_from_jax
from tacit.environments.jax_world import JaxStep
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import draw_agent
from tacit.environments.task import SimulatedTask
from tacit.runs.tree_file import fingerprint


class TabularState(NamedTuple):
    """The number of the state where one world stands, and the steps of the episode so far."""

    place: Int[Array, ""]
    steps: Int[Array, ""]


@dataclass(frozen=True, eq=False)
class TabularWorld:
    """A `TabularTask` as a `JaxWorld`; made by `tabular_world`.

    The observation is [S + 1]: a one for the state among zeros, then the share of the horizon that
    has passed, from 0 at the start to 1 at the end. With a finite horizon the best action depends
    on the time that is left, so a policy must be able to see it.

    Reward and cost of a step are `rewards[s, a]` and `costs[s, a]` of the state it was taken *in*.
    An episode *terminates* at the horizon: nothing is earned after it, and the observation
    tells the time. (`TabularEnvironment` shows the state alone, from which the
    end cannot be foreseen, and so calls the same moment a truncation.)

    Fields:
        name: the task's.
        horizon: number of steps of an episode.
        cumulative: [S, A, S] running sums of the transitions over the next state.
        cumulative_initial: [S] running sum of the start distribution.
        rewards: [S, A].
        costs: [S, A].
        clock: [horizon + 1] the share that has passed after each number of steps. It is looked up,
            because XLA divides by multiplying, which is inexact and may end above one.
        constraints: there is one rule.
    """

    name: str
    horizon: int
    cumulative: Float[Array, "S A S"]
    cumulative_initial: Float[Array, " S"]
    rewards: Float[Array, "S A"]
    costs: Float[Array, "S A"]
    clock: Float[Array, " H"]
    constraints: tuple[str, ...] = ("cost",)

    @property
    def number_of_states(self) -> int:
        """S, the number of states."""
        return self.rewards.shape[0]

    @property
    def observation_names(self) -> tuple[str, ...]:
        """One for each state, and the time."""
        return (*(f"state {place}" for place in range(self.number_of_states)), "time")

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        """Everything lies between 0 and 1."""
        return gymnasium.spaces.Box(0, 1, (self.number_of_states + 1,), np.float32)

    @property
    def action_space(self) -> gymnasium.spaces.Discrete:
        """The numbers of the actions."""
        return gymnasium.spaces.Discrete(self.rewards.shape[1])

    def reset(self, key: PRNGKeyArray) -> tuple[TabularState, Float[Array, " o"]]:
        """Start in a state drawn from the start distribution."""
        state = TabularState(draw(self.cumulative_initial, key), jnp.int32(0))
        return state, self.observe(state)

    def step(self, state: TabularState, action: Array, key: PRNGKeyArray) -> JaxStep:
        """Move on by the transitions of state and action."""
        pair = state.place, action
        arrived = TabularState(draw(self.cumulative[pair], key), state.steps + jnp.int32(1))
        return JaxStep(
            state=arrived,
            observation=self.observe(arrived),
            reward=self.rewards[pair],
            costs=self.costs[pair][None],
            terminated=arrived.steps >= self.horizon,
            truncated=jnp.zeros((), bool),
        )

    def observe(self, state: TabularState) -> Float[Array, " o"]:
        """The state as zeros and a one, then the share of the horizon that has passed."""
        place = jax.nn.one_hot(state.place, self.number_of_states, dtype=jnp.float32)
        return jnp.append(place, self.clock[state.steps])


@lru_cache(maxsize=16)
def tabular_world(task: TabularTask) -> TabularWorld:
    """`task` in float32, with the running sums from which next states are drawn.

    Float32 resolves probabilities to about 1e-7: what is rarer may never happen. The same task
    gives the same world again, so that programs compiled for it are used again.
    """
    return TabularWorld(
        name=task.name,
        horizon=task.horizon,
        cumulative=running_sum(task.transitions),
        cumulative_initial=running_sum(task.initial),
        rewards=jnp.asarray(task.rewards, jnp.float32),
        costs=jnp.asarray(task.costs, jnp.float32),
        clock=jnp.asarray(np.arange(task.horizon + 1) / task.horizon, jnp.float32),
    )


def running_sum(distributions: Float[np.ndarray, "... S"]) -> Float[Array, "... S"]:
    """Running sums that end at exactly one, so that rounding selects no impossible state."""
    sums = np.cumsum(distributions, axis=-1)
    return jnp.asarray(sums / sums[..., -1:], jnp.float32)


def draw(cumulative: Float[Array, " S"], key: PRNGKeyArray) -> Int[Array, ""]:
    """A state drawn from the distribution with these running sums."""
    # The type is given, as otherwise JAX's global precision would change what is drawn.
    luck = jax.random.uniform(key, dtype=jnp.float32)
    return jnp.sum(cumulative <= luck, dtype=jnp.int32)


class TabularWorldEnvironment(JaxEnvironment):
    """One world of a simulated tabular task, with a picture."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self, task: TabularTask, world: TabularWorld, *, render_mode: str | None = None
    ) -> None:
        super().__init__(world, render_mode=render_mode)
        self.tabular = task

    def draw(self) -> UInt8[np.ndarray, "height width 3"]:
        """The map with the agent on it."""
        return draw_agent(self.tabular, int(self.state.place))


def tables_sha256(task: TabularTask) -> str:
    """A sha256 of everything that decides what happens in a task and what is learned on it."""
    tables = ("transitions", "rewards", "costs", "initial")
    numbers = ("horizon", "temperature", "budget", "rule_on")
    return fingerprint(
        {name: getattr(task, name) for name in tables},
        {name: getattr(task, name) for name in numbers},
    )


def simulator_of(task: TabularTask | SimulatedTask) -> SimulatedTask:
    """A table as a task that can only be stepped; a simulated task as it is.

    Methods that do not look into the arrays of a table learn on it as on any simulator. The
    `threads` of its worlds are ignored: XLA decides.
    """
    if isinstance(task, SimulatedTask):
        return task
    world = tabular_world(task)
    options = {"horizon": task.horizon, "tables_sha256": tables_sha256(task)}
    return dataclasses.replace(
        task_from_jax(world, options=options),
        make_environment=lambda render_mode: TabularWorldEnvironment(
            task, world, render_mode=render_mode
        ),
    )
