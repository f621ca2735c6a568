"""One episode as a group of arrays in a Minari file: written, and read with every check."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np

from tacit.demonstrations.checks import LARGEST_BYTES, flags, place
from tacit.demonstrations.spaces import parse_space, row_shape
from tacit.demonstrations.trajectories import Episode
from tacit.errors import DemonstrationError

FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")
SPACES = {"observations": "observation_space", "actions": "action_space"}
UNREADABLE = (OSError, RuntimeError, KeyError, TypeError, ValueError, AttributeError)


def minari_fields(episode: Episode, facts: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of one episode as Minari lays them out."""
    last = np.arange(len(episode)) == len(episode) - 1
    fields = {
        "observations": episode.observations,
        "actions": episode.actions,
        "rewards": episode.rewards,
        "terminations": last & episode.terminated,
        "truncations": last & (not episode.terminated),
    }
    for name, space in SPACES.items():
        if row_shape(parse_space(facts[space])) == ():
            fields[name] = fields[name][:, 0]
    if episode.costs is not None:
        # Minari's collector records the info of reset first; a reset costs nothing.
        fields["infos/cost"] = np.insert(episode.costs, 0, 0)
    return fields


def child(group: h5py.Group, name: str, episode: int) -> h5py.Group | h5py.Dataset | None:
    """A member that lies in this very file, or None."""
    with readable(place(episode, name)):
        link = group.get(name, getlink=True)
        if link is None:
            return None
        node = group[name] if isinstance(link, h5py.HardLink) else None
    if node is None or isinstance(node, h5py.Datatype):
        raise DemonstrationError(f"{place(episode, name)}: is a link or a type, not data")
    return node


def read_array(group: h5py.Group, name: str, episode: int) -> np.ndarray:
    """One array of numbers of an episode."""
    node = child(group, name, episode)
    where = place(episode, name)
    if node is None:
        raise DemonstrationError(f"{where}: is missing; every episode needs it, record it again")
    if isinstance(node, h5py.Group):
        raise DemonstrationError(
            f"{where}: is a dictionary with keys {', '.join(sorted(node))}; record it as one array "
            "(gymnasium.wrappers.FlattenObservation) or pick keys and use Trajectories.from_arrays"
        )
    if node.is_virtual or node.external or node.dtype.kind not in "biuf":
        raise DemonstrationError(f"{where}: holds {node.dtype} that cannot be read as numbers")
    if node.nbytes > LARGEST_BYTES:
        raise DemonstrationError(f"{where}: declares {node.nbytes} bytes; the file is damaged")
    with readable(where):
        return np.asarray(node[()])


def read_episode(file: h5py.File, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of one episode, with the checks that only the file allows."""
    episode = int(name.removeprefix("episode_"))
    group = child(file, name, episode)
    if not isinstance(group, h5py.Group):
        raise DemonstrationError(f"episode {episode}: is missing or not a group of arrays")
    fields: dict[str, Any] = {field: read_array(group, field, episode) for field in FIELDS}
    steps = len(fields["rewards"]) if fields["rewards"].ndim else 0
    with readable(place(episode, "total_steps")):
        promised = int(group.attrs.get("total_steps", steps))
    if promised != steps:
        raise DemonstrationError(
            f"{place(episode, 'rewards')}: has {steps} rows, but the episode promises {promised} "
            "steps; the file is damaged, get a fresh copy"
        )
    for field, space in SPACES.items():
        fields[field] = as_rows(fields[field], field, episode, parse_space(facts.get(space)))
    fields["terminated"] = ending(fields, steps, episode)
    infos = child(group, "infos", episode)
    if isinstance(infos, h5py.Group) and "cost" in infos:
        costs = read_array(infos, "cost", episode)
        fields["costs"] = costs[1:] if costs.ndim == 1 and len(costs) == steps + 1 else costs
    return fields


def as_rows(array: np.ndarray, field: str, episode: int, space: dict[str, Any]) -> np.ndarray:
    """Array [t, size]; refuses rows that are not what the space says, as with packed images."""
    declared = row_shape(space)
    if declared is not None and array.shape[1:] != declared:
        raise DemonstrationError(
            f"{place(episode, field)}: rows have shape {array.shape[1:]}, but the data set's space "
            f"says {declared}; images and other packed values cannot be read"
        )
    return array[:, None] if array.ndim == 1 else array


def ending(fields: Mapping[str, np.ndarray], steps: int, episode: int) -> bool:
    """Whether the task ended the episode; nothing may end before its last step."""
    for field in ("terminations", "truncations"):
        marks = flags(fields[field], field, episode)
        if marks.shape != (steps,):
            raise DemonstrationError(
                f"{place(episode, field)}: has shape {marks.shape}, {steps} rewards need ({steps},)"
            )
        if (early := np.flatnonzero(marks[:-1])).size:
            raise DemonstrationError(
                f"{place(episode, field, int(early[0]))}: the episode ends here but goes on to "
                f"step {steps - 1}; split it into two"
            )
    return bool(fields["terminations"][-1]) if steps else False


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Say in words that HDF5 could not make sense of something."""
    try:
        yield
    except DemonstrationError:
        raise
    except UNREADABLE as error:
        raise DemonstrationError(
            f"{what} cannot be read ({error}); it is damaged, truncated or not HDF5, get a fresh "
            "copy"
        ) from error
