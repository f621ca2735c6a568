"""A task that can only be simulated: a name, two spaces and a way to make worlds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium.vector import VectorEnv

from tacit.environments.worlds import Worlds
from tacit.errors import TaskError

if TYPE_CHECKING:  # tasks that need no JAX are made without importing it
    from tacit.environments.jax_world import JaxWorld


@dataclass(frozen=True, eq=False)
class SimulatedTask:
    """A task whose dynamics are known only by stepping it.

    Fields:
        name: as given to `tacit.make`, e.g. "BlockedHalfCheetah".
        options: every option of the task with its value, for provenance.
        observation_space: of one world, flat.
        action_space: of one world.
        horizon: steps after which an episode is cut short; None where the environment decides.
        constraints: what is constrained, one name per true cost.
        make_worlds: `make_worlds(number, threads)` builds that many worlds; see `worlds`.
        make_environment: `make_environment(render_mode)` builds one Gymnasium environment.
        broken_starts: share of the starts that break a rule before anything is done; None where
            that is not known.
        data_sha256: of the recordings that the task replays; empty where there are none.
        jax_world: the pure functions of a task that is written in JAX; see `JaxWorld`.
        make_vector: `make_vector(number)` builds one Gymnasium environment of that many worlds,
            where there is a faster one than Gymnasium makes itself.
        observation_names: a word for every observed number, e.g. "x velocity". Where none are
            given they become "observation 0", "observation 1" and so on.
        made_by_name: whether `tacit.make` builds it again from its name and options.
    """

    name: str
    options: Mapping[str, Any]
    observation_space: gymnasium.spaces.Box
    action_space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
    horizon: int | None
    constraints: tuple[str, ...]
    make_worlds: Callable[[int, int | None], Worlds]
    make_environment: Callable[[str | None], gymnasium.Env[Any, Any]]
    broken_starts: float | None = None
    data_sha256: str = ""
    jax_world: "JaxWorld | None" = None
    make_vector: Callable[..., VectorEnv[Any, Any, Any]] | None = None
    observation_names: tuple[str, ...] = ()
    made_by_name: bool = False

    def __post_init__(self) -> None:
        size = self.observation_space.shape[0]
        names = tuple(self.observation_names)
        if not names:
            names = tuple(f"observation {place}" for place in range(size))
        if len(names) != size or not all(isinstance(name, str) and name for name in names):
            raise TaskError(
                f"observation_names of {self.name} must be {size} words, one for every observed "
                f"number, not {self.observation_names!r}"
            )
        object.__setattr__(self, "observation_names", names)

    def worlds(self, number: int, *, threads: int | None = None) -> Worlds:
        """`number` worlds of this task, on `threads` threads (None: as many as there are cores)."""
        return self.make_worlds(number, threads)

    def environment(self, *, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """One Gymnasium environment of this task; its true cost is `info["cost"]`."""
        return self.make_environment(render_mode)


def constraint_names(number: int) -> tuple[str, ...]:
    """What constraints without names are called: `cost`, or `cost 0`, `cost 1` and so on."""
    return ("cost",) if number == 1 else tuple(f"cost {index}" for index in range(number))
