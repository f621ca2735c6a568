"""Which queries of a table the demonstrations visit; an error if they cannot be of this table."""

import warnings

import numpy as np

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError, DemonstrationError


def visits_of(task: TabularTask, demonstrations: Trajectories) -> np.ndarray:
    """[N, X] how many steps each demonstration spent at each query."""
    check_trajectories(demonstrations)
    states, actions = demonstrations.observations, demonstrations.actions
    for field, array, size in (
        ("observations", states, task.number_of_states),
        ("actions", actions, task.number_of_actions),
    ):
        if array.shape[2] != 1 or array.dtype.kind not in "iu":
            raise DemonstrationError(
                f"{field}: {task.name} has whole numbers, one per step, but the demonstrations "
                f"have {array.shape[2]} x {array.dtype}"
            )
        outside = np.argwhere((array < 0) | (array >= size))
        if len(outside):
            episode, step, _ = outside[0]
            raise DemonstrationError(
                f"{field}: episode {episode}, step {step} is {array[tuple(outside[0])]}, "
                f"but {task.name} has only 0 to {size - 1}"
            )
    if demonstrations.lengths.max() > task.horizon:
        episode = int(np.argmax(demonstrations.lengths))
        raise DemonstrationError(
            f"episode {episode} has {demonstrations.lengths[episode]} steps, "
            f"but the horizon of {task.name} is {task.horizon}"
        )
    check_moves(task, demonstrations)
    queries = task.queries(states[:, :-1, 0], actions[:, :, 0])
    episodes = np.broadcast_to(np.arange(len(queries))[:, None], queries.shape)
    visits = np.zeros((len(queries), task.number_of_queries))
    np.add.at(visits, (episodes[demonstrations.mask], queries[demonstrations.mask]), 1.0)
    return visits


def check_moves(task: TabularTask, demonstrations: Trajectories) -> None:
    """Every step must be possible in the task: a sign that the data belong to it."""
    states, actions = demonstrations.observations[:, :, 0], demonstrations.actions[:, :, 0]
    probability = task.transitions[states[:, :-1], actions, states[:, 1:]]
    impossible = np.argwhere((probability == 0) & demonstrations.mask)
    if len(impossible):
        episode, step = impossible[0]
        raise DemonstrationError(
            f"episode {episode}, step {step}: {task.name} never moves from state "
            f"{states[episode, step]} to {states[episode, step + 1]} by action "
            f"{actions[episode, step]}; are these demonstrations of another task?"
        )


def check_experts(demonstrations: Trajectories, *, proofs: bool) -> None:
    """They must be demonstrations; a warning if they show violations that would count as proof."""
    check_trajectories(demonstrations)
    if proofs and demonstrations.costs is not None and demonstrations.violated.any():
        warnings.warn(
            f"{demonstrations.violated.sum()} demonstrations have steps with a cost, which votes "
            "'visits' takes as proof that they are allowed: leave them out (take), or use "
            "votes='visits-fallible'",
            stacklevel=5,
        )


def check_trajectories(demonstrations: object) -> None:
    """Raise an error unless these are demonstrations."""
    if not isinstance(demonstrations, Trajectories):
        raise ArgumentError(f"demonstrations must be Trajectories, not {type(demonstrations)}")
