"""Read and write demonstrations in Minari's HDF5 layout, so that Minari reads and writes them too.

A data set is a group `episode_<i>` per episode with observations [t+1, ...], actions [t, ...],
rewards, terminations and truncations [t], and `infos/cost`. Minari keeps the facts about the whole
data set in `metadata.json` next to `main_data.hdf5`; a single file keeps them as root attributes.
Data and structure carry checksums, so a damaged file is found out rather than read.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tacit.demonstrations.checks import blame, place
from tacit.demonstrations.episode_group import (
    FIELDS,
    SPACES,
    minari_fields,
    read_episode,
    readable,
)
from tacit.demonstrations.spaces import describe_space
from tacit.demonstrations.trajectories import PathName, Trajectories
from tacit.errors import DemonstrationError
from tacit.runs.atomic_write import atomic_write

FILE_SUFFIXES = (".hdf5", ".h5")
LAYOUT_VERSION = "0.5.0"
PROVENANCE = "tacit_provenance"
COUNTED = ("total_episodes", "total_steps", "data_format", "dataset_size", "jpeg_encoding")
MAIN_FILE = "main_data.hdf5"
METADATA = "metadata.json"


def save(trajectories: Trajectories, path: PathName) -> None:
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
    """Only a new or empty folder, or an earlier data set, may be written to."""
    if path.exists() and not path.is_dir():
        raise DemonstrationError(f"{path}: is a file without .hdf5 or .h5; choose another name")
    inside = {item.name for item in path.iterdir()} if path.is_dir() else set()
    known = {item.name for item in data.iterdir()} if data.is_dir() else set()
    visible = {name for name in inside if not name.startswith(".")}
    if (visible and MAIN_FILE not in known) or known - {MAIN_FILE, METADATA}:
        raise DemonstrationError(
            f"{path}: holds files that are not a data set, which would be lost; choose a new folder"
        )


def description(trajectories: Trajectories, path: Path) -> dict[str, Any]:
    """What Minari wants to know about the whole data set, and our provenance."""
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
    trajectories: Trajectories, path: Path, facts: Mapping[str, Any], attributes: bool
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


def load(path: PathName) -> Trajectories:
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


def assemble(episodes: list[dict[str, Any]], facts: Mapping[str, Any]) -> Trajectories:
    """All episodes as one record, with their provenance."""
    with_costs = ["costs" in episode for episode in episodes]
    if any(with_costs) and not all(with_costs):
        raise DemonstrationError(
            f"{place(with_costs.index(False), 'infos/cost')}: is missing, other episodes have it; "
            "record it for all or for none"
        )
    return Trajectories.from_arrays(
        **{name: [episode[name] for episode in episodes] for name in FIELDS[:3]},
        costs=[episode["costs"] for episode in episodes] if all(with_costs) else None,
        terminated=[episode["terminated"] for episode in episodes],
        provenance=provenance(facts),
    )


def provenance(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Our own facts as they were saved, or what Minari says about its data set."""
    if PROVENANCE in facts:
        with readable(f"field '{PROVENANCE}'"):
            return dict(json.loads(facts[PROVENANCE]))
    spaces = {name: facts[name] for name in SPACES.values() if isinstance(facts.get(name), str)}
    left = set(facts) - set(COUNTED) - set(spaces)
    told = {name: facts[name] for name in sorted(left) if isinstance(facts[name], str | int | list)}
    return {**spaces, "minari": told} if facts else {}
