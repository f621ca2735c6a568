"""Read and write demonstrations in Minari's HDF5 layout, so that Minari reads and writes them too.

A data set is a group `episode_<i>` per episode with observations [t+1, ...], actions [t, ...],
rewards, terminations and truncations [t], and `infos/cost`. Minari keeps the facts about the whole
data set in `metadata.json` next to `main_data.hdf5`; a single file keeps them as root attributes.
Data and structure carry checksums, so that reading a damaged file is an error.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tacit.demonstrations.checks import LARGEST_BYTES, blame, flags, place
from tacit.demonstrations.episode_arrays import Episode, EpisodeArrays, PathName
from tacit.errors import DemonstrationError
from tacit.runs.atomic_write import atomic_write

FILE_SUFFIXES = (".hdf5", ".h5")
LAYOUT_VERSION = "0.5.0"
PROVENANCE = "tacit_provenance"
COUNTED = ("total_episodes", "total_steps", "data_format", "dataset_size", "jpeg_encoding")
MAIN_FILE = "main_data.hdf5"
METADATA = "metadata.json"
FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")
SPACES = {"observations": "observation_space", "actions": "action_space"}
UNREADABLE = (OSError, RuntimeError, KeyError, TypeError, ValueError, AttributeError)


def write_minari(trajectories: EpisodeArrays, path: PathName) -> None:
    """Write a single HDF5 file, or a Minari folder when the name has no HDF5 suffix."""
    path = Path(path)
    facts = description(trajectories, path)
    if path.suffix in FILE_SUFFIXES:
        if path.is_dir():
            raise DemonstrationError(f"{path}: is a folder; choose another name")
        with atomic_write(path) as part:
            write_episodes(trajectories, part, facts, attributes=True)
        return
    data = path / "data"
    refuse_foreign_folder(path, data)
    with atomic_write(data) as part:
        part.mkdir()
        write_episodes(trajectories, part / MAIN_FILE, facts, attributes=False)
        size = (part / MAIN_FILE).stat().st_size
        text = json.dumps({**facts, "dataset_size": round(size / 1e6, 1)})
        (part / METADATA).write_text(text, encoding="utf-8")


def refuse_foreign_folder(path: Path, data: Path) -> None:
    """Refuse to write to a folder that holds anything but an earlier data set."""
    if path.exists() and not path.is_dir():
        raise DemonstrationError(f"{path}: is a file without .hdf5 or .h5; choose another name")
    inside = {item.name for item in path.iterdir()} if path.is_dir() else set()
    known = {item.name for item in data.iterdir()} if data.is_dir() else set()
    visible = {name for name in inside if not name.startswith(".")}
    if (visible and MAIN_FILE not in known) or known - {MAIN_FILE, METADATA}:
        raise DemonstrationError(
            f"{path}: holds files that are not a data set, which would be lost; choose a new folder"
        )


def description(trajectories: EpisodeArrays, path: Path) -> dict[str, Any]:
    """The facts that Minari keeps about the whole data set, and our provenance."""
    rows = np.arange(trajectories.observations.shape[1]) <= trajectories.lengths[:, None]
    origin = trajectories.provenance
    name = re.sub(r"[^-\w]", "-", path.stem if path.suffix in FILE_SUFFIXES else path.name)
    return {
        "dataset_id": name if re.fullmatch(r".+-v\d+", name) else f"{name}-v0",
        "minari_version": LAYOUT_VERSION,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "total_episodes": len(trajectories),
        "total_steps": trajectories.steps,
        "observation_space": describe_space(
            trajectories.observations[rows], origin.get("observation_space")
        ),
        "action_space": describe_space(
            trajectories.actions[trajectories.mask], origin.get("action_space")
        ),
        PROVENANCE: json.dumps(dict(origin)),
    }


def write_episodes(
    trajectories: EpisodeArrays, path: Path, facts: Mapping[str, Any], attributes: bool
) -> None:
    """One group per episode; version 1.10 of the format has checksums for its structure."""
    with h5py.File(path, "x", libver=("v110", "v110"), track_order=True) as file:
        for name, fact in facts.items() if attributes else ():
            # Bytes of fixed length lie under a checksum; variable-length text would not.
            file.attrs[name] = np.bytes_(fact.encode()) if isinstance(fact, str) else fact
        for index, episode in enumerate(trajectories):
            group = file.create_group(f"episode_{index}")
            group.attrs["id"] = index
            group.attrs["total_steps"] = len(episode)
            for name, array in minari_fields(episode, facts).items():
                limit = (None, *array.shape[1:])
                group.create_dataset(name, data=array, chunks=True, maxshape=limit, fletcher32=True)


def read_minari(path: PathName) -> EpisodeArrays:
    """Read a file or folder that `save` or Minari wrote, whole or not at all."""
    path = Path(path)
    with blame(path):
        file_path = find_file(path)
        beside = file_path.with_name(METADATA)
        facts = read_metadata(beside) if file_path.name == MAIN_FILE and beside.exists() else {}
        with readable("the file"), h5py.File(file_path, "r") as file:
            facts = facts or dict(map(plain_attribute, file.attrs.items()))
            names = episode_names(file, facts)
            episodes = [read_episode(file, name, facts) for name in names]
        trajectories = assemble(episodes, facts)
        if trajectories.steps != facts.get("total_steps", trajectories.steps):
            raise DemonstrationError(
                f"field 'total_steps': the file promises {facts['total_steps']} steps and holds "
                f"{trajectories.steps}; it is damaged, get a fresh copy"
            )
        return trajectories


def find_file(path: Path) -> Path:
    """The HDF5 file of a data set: the path itself, or inside a folder as Minari makes them."""
    if path.is_dir():
        folders = [folder for folder in (path / "data", path) if folder.is_dir()]
        found = [folder / MAIN_FILE for folder in folders if (folder / MAIN_FILE).is_file()]
        if not found:
            told = [
                read_metadata(item / METADATA) for item in folders if (item / METADATA).exists()
            ]
            kind = f" in format {told[0].get('data_format')!r}" if told else ""
            raise DemonstrationError(
                f"is a folder{kind} without data/{MAIN_FILE}; give an HDF5 file, or a Minari data "
                "set with data_format 'hdf5'"
            )
        path = found[0]
    if not path.is_file():
        raise DemonstrationError("does not exist; check the name and the working directory")
    if path.stat().st_size == 0:
        raise DemonstrationError("is empty; the writing was interrupted, get a fresh copy")
    return path


def read_metadata(path: Path) -> dict[str, Any]:
    """Minari's facts about the whole data set."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DemonstrationError(f"{path.name} cannot be read ({error})") from error
    if not isinstance(facts, dict):
        raise DemonstrationError(f"{path.name} does not hold a JSON object; get a fresh copy")
    return facts


def plain_attribute(item: tuple[str, Any]) -> tuple[str, Any]:
    """An HDF5 attribute as a Python value."""
    name, value = item
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    return name, value.decode() if isinstance(value, bytes) else value


def episode_names(file: h5py.File, facts: Mapping[str, Any]) -> list[str]:
    """`episode_0` to the last one, none of them missing."""
    present = [name for name in file if str(name).startswith("episode_")]
    number = facts.get("total_episodes", len(present))
    if number != len(present):
        promised = number if isinstance(number, int) else 0
        both = range(max(len(present), min(promised, len(present) + 1)))
        odd = (i for i in both if (i < promised) != (f"episode_{i}" in present))
        first = next(odd, promised)
        raise DemonstrationError(
            f"episode {first}: the file promises {number} episodes and holds {len(present)}; "
            "it is damaged, get a fresh copy"
        )
    if not present:
        raise DemonstrationError(
            "holds no group 'episode_0'; it has no episodes in Minari's layout"
        )
    return [f"episode_{index}" for index in range(len(present))]


def assemble(episodes: list[dict[str, Any]], facts: Mapping[str, Any]) -> EpisodeArrays:
    """All episodes as one record, with their provenance."""
    with_costs = ["costs" in episode for episode in episodes]
    if any(with_costs) and not all(with_costs):
        raise DemonstrationError(
            f"{place(with_costs.index(False), 'infos/cost')}: is missing, other episodes have it; "
            "record it for all or for none"
        )
    return EpisodeArrays.from_arrays(
        **{name: [episode[name] for episode in episodes] for name in FIELDS[:3]},
        costs=[episode["costs"] for episode in episodes] if all(with_costs) else None,
        terminated=[episode["terminated"] for episode in episodes],
        provenance=provenance(facts),
    )


def provenance(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Our own facts as they were saved, or those that Minari keeps about its data set."""
    if PROVENANCE in facts:
        with readable(f"field '{PROVENANCE}'"):
            return dict(json.loads(facts[PROVENANCE]))
    spaces = {name: facts[name] for name in SPACES.values() if isinstance(facts.get(name), str)}
    left = set(facts) - set(COUNTED) - set(spaces)
    told = {name: facts[name] for name in sorted(left) if isinstance(facts[name], str | int | list)}
    return {**spaces, "minari": told} if facts else {}


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
    """A member of the group, or None; links to other files are refused."""
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
    """Turn the errors of HDF5 inside into a `DemonstrationError` about `what`."""
    try:
        yield
    except DemonstrationError:
        raise
    except UNREADABLE as error:
        raise DemonstrationError(
            f"{what} cannot be read ({error}); it is damaged, truncated or not HDF5, get a fresh "
            "copy"
        ) from error


def describe_space(rows: np.ndarray, declared: object = None) -> str:
    """The space of rows [k, size]: the declared one where the rows fit in it, else inferred.

    Integers of size 1 are Discrete from min(0, smallest) to the largest (if int64 can count
    them); other integers a Box between the smallest and the largest; real numbers an unbounded
    Box.
    """
    if isinstance(declared, str) and fits(rows, parse_space(declared)):
        return declared
    start = min(0, int(rows.min())) if rows.dtype.kind == "i" else 0
    number = int(rows.max()) - start + 1
    if rows.dtype.kind == "i" and rows.shape[1] == 1 and number < 2**63:
        return json.dumps({"type": "Discrete", "dtype": "int64", "start": start, "n": number})
    if rows.dtype.kind == "i":
        low, high = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    else:
        low, high = [-np.inf] * rows.shape[1], [np.inf] * rows.shape[1]
    shape = [rows.shape[1]]
    box = {"type": "Box", "dtype": str(rows.dtype), "shape": shape, "low": low, "high": high}
    return json.dumps(box)


def parse_space(text: object) -> dict[str, Any]:
    """The space as a dictionary; empty when there is none or it cannot be understood."""
    try:
        space = json.loads(text) if isinstance(text, str | bytes) else {}
    except ValueError:
        return {}
    return space if isinstance(space, dict) else {}


def row_shape(space: dict[str, Any]) -> tuple[int, ...] | None:
    """The shape of one observation or action in the file; None when the space does not say."""
    if space.get("type") == "Discrete":
        return ()
    if space.get("type") == "Box" and isinstance(space.get("shape"), list):
        return tuple(space["shape"])
    return None


def fits(rows: np.ndarray, space: dict[str, Any]) -> bool:
    """Whether the rows lie in a Discrete or Box space of the same number type."""
    try:
        if space.get("type") == "Discrete":
            start, number = int(space["start"]), int(space["n"])
            whole = rows.dtype.kind == "i" and rows.shape[1] == 1
            return whole and start <= int(rows.min()) and int(rows.max()) < start + number
        if space.get("type") != "Box" or space["dtype"] != str(rows.dtype):
            return False
        low, high = np.asarray(space["low"]), np.asarray(space["high"])
        if not list(low.shape) == list(high.shape) == space["shape"] == [rows.shape[1]]:
            return False
        return bool((low <= rows).all() and (rows <= high).all())
    except (KeyError, TypeError, ValueError):
        return False
