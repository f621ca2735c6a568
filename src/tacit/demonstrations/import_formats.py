"""Demonstrations from and to npz archives and csv tables.

Two layouts of archives are read. Padded: the fields of `Trajectories` under their names. Flat, as
in D4RL: all steps one after the other with `terminals` and `timeouts`, and `next_observations`
because the final observation of each episode is part of the demonstration.

A table has one row per step, and one per final observation. Columns: episode, step,
observation_0 .., action_0 .., reward, and if known cost and terminated. The last row of an episode
holds its final observation; its action, reward, cost and terminated cells are empty. Observations
or actions written without a decimal point everywhere are integers.
"""

import csv
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.demonstrations.checks import LARGEST_BYTES, blame, flags, numbers, place
from tacit.demonstrations.episode_arrays import ARRAY_FIELDS, EpisodeArrays, PathName
from tacit.errors import ArgumentError, DemonstrationError
from tacit.runs.atomic_write import atomic_write

OPTIONAL = ("costs", "terminated", "provenance")
FLAT = ("observations", "next_observations", "actions", "rewards", "terminals")
KNOWN = {*ARRAY_FIELDS, *OPTIONAL, *FLAT, "timeouts"}
UNREADABLE = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}


def write_npz(trajectories: EpisodeArrays, path: PathName) -> None:
    """Write the padded arrays under their field names, and the provenance as JSON text."""
    fields = {name: getattr(trajectories, name) for name in ARRAY_FIELDS}
    kept = {name: array for name, array in fields.items() if array is not None}
    facts = np.array(json.dumps(dict(trajectories.provenance)))
    with atomic_write(Path(path)) as part, part.open("xb") as file:
        np.savez_compressed(file, **kept, provenance=facts)


def read_npz(path: PathName) -> EpisodeArrays:
    """Read either layout, whole or not at all."""
    path = Path(path)
    with blame(path):
        fields = read_archive(path)
        if "lengths" in fields:
            return from_padded(fields)
        if "terminals" in fields:
            return from_flat(fields)
        raise DemonstrationError(
            f"field 'lengths': is missing (there are: {', '.join(fields) or 'no fields'}); give "
            "padded arrays with 'lengths', or flat ones with 'terminals' and 'next_observations'"
        )


def read_archive(path: Path) -> dict[str, np.ndarray]:
    """The known arrays of the archive (others stay empty); Python objects are refused."""
    if not path.is_file():
        raise DemonstrationError("is not a file; check the name and the working directory")
    what = "the archive"
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            declared = sum(member.file_size for member in archive.infolist())
            if declared > LARGEST_BYTES:
                raise DemonstrationError(
                    f"declares {declared} bytes, more than {LARGEST_BYTES}; it is damaged or must "
                    "be split"
                )
            fields = {}
            for member in archive.namelist():
                name = member.removesuffix(".npy")
                what = f"field '{name}'"
                if name not in KNOWN:
                    fields[name] = np.empty(0)
                    continue
                with archive.open(member) as stream:
                    fields[name] = np.lib.format.read_array(stream, allow_pickle=False)
                    stream.read()  # the checksum is looked at when the end is reached
            return fields
    except DemonstrationError:
        raise
    except UNREADABLE as error:
        raise DemonstrationError(
            f"{what} cannot be read ({error}); it must be an .npz of number arrays, without "
            "Python objects: save it again or get a fresh copy"
        ) from error


def from_padded(fields: Mapping[str, np.ndarray]) -> EpisodeArrays:
    """The fields of `Trajectories` under their names."""
    for name in ARRAY_FIELDS:
        if name not in fields and name not in OPTIONAL:
            raise DemonstrationError(f"field '{name}': is missing; padded archives need it")
    if unknown := sorted(set(fields) - {*ARRAY_FIELDS, *OPTIONAL}):
        raise DemonstrationError(
            f"field '{unknown[0]}': is unknown; rename it to one of "
            f"{', '.join((*ARRAY_FIELDS, 'provenance'))}, or leave it out"
        )
    arrays: dict[str, Any] = {name: fields.get(name) for name in ARRAY_FIELDS}
    try:
        facts = json.loads(str(fields["provenance"])) if "provenance" in fields else {}
        return EpisodeArrays(**arrays, provenance=dict(facts))
    except (json.JSONDecodeError, TypeError) as error:
        raise DemonstrationError(f"field 'provenance': is not a JSON object ({error})") from error


def from_flat(fields: Mapping[str, np.ndarray]) -> EpisodeArrays:
    """Steps one after the other, cut where `terminals` or `timeouts` is true."""
    for name in FLAT:
        if name not in fields:
            raise DemonstrationError(
                f"field '{name}': is missing; flat archives need {', '.join(FLAT)}"
            )
    steps = len(np.atleast_1d(fields["rewards"]))
    flat: dict[str, np.ndarray] = {}
    for name in (*FLAT, "timeouts", "costs"):
        array = fields.get(name, np.zeros(steps, bool))
        if array.ndim == 0 or len(array) != steps:
            raise DemonstrationError(
                f"field '{name}': has shape {array.shape}, but there are {steps} rewards"
            )
        ends = name in ("terminals", "timeouts")
        flat[name] = flags(array, name).reshape(-1) if ends else numbers(array, name)
    if steps == 0:
        raise DemonstrationError("field 'rewards': there are no steps; give at least one episode")
    last = flat["terminals"] | flat["timeouts"]
    last[-1] = True
    refuse_jumps(flat["observations"], flat["next_observations"], last)
    cuts = np.flatnonzero(last)[:-1] + 1
    following = np.split(flat["next_observations"], cuts)
    return EpisodeArrays.from_arrays(
        observations=[
            np.concatenate([before, after[-1:]])
            for before, after in zip(np.split(flat["observations"], cuts), following, strict=True)
        ],
        actions=np.split(flat["actions"], cuts),
        rewards=np.split(flat["rewards"], cuts),
        costs=np.split(flat["costs"], cuts) if "costs" in fields else None,
        terminated=flat["terminals"][last],
        provenance={"imported": "flat npz"},
    )


def refuse_jumps(observations: np.ndarray, following: np.ndarray, last: np.ndarray) -> None:
    """Refuse episodes in which a step starts from another observation than the last one led to."""
    if observations.shape != following.shape:
        raise DemonstrationError(
            f"field 'next_observations': has shape {following.shape}, observations have "
            f"{observations.shape}"
        )
    same = observations[1:] == following[:-1]
    same |= (observations[1:] != observations[1:]) & (following[:-1] != following[:-1])
    jumps = ~same.reshape(len(same), -1).all(axis=1) & ~last[:-1]
    if jumps.any():
        step = int(np.flatnonzero(jumps)[0])
        episode = int(last[:step].sum())
        raise DemonstrationError(
            f"{place(episode, 'next_observations')}: row {step} of the archive differs from "
            f"observation {step + 1}; mark the end of each episode in 'terminals' or 'timeouts'"
        )


def write_csv(trajectories: EpisodeArrays, path: PathName) -> None:
    """Write the table; real numbers keep every digit."""
    sizes = (("observation", trajectories.observations), ("action", trajectories.actions))
    names = [f"{name}_{i}" for name, array in sizes for i in range(array.shape[2])]
    costs = [] if trajectories.costs is None else ["cost"]
    blank = [""] * (trajectories.actions.shape[2] + 2 + len(costs))
    with atomic_write(Path(path)) as part, part.open("x", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["episode", "step", *names, "reward", *costs, "terminated"])
        for index, episode in enumerate(trajectories):
            observations, actions = episode.observations.tolist(), episode.actions.tolist()
            rewards = episode.rewards.tolist()
            paid = [] if episode.costs is None else [[cost] for cost in episode.costs.tolist()]
            for step, reward in enumerate(rewards):
                ended = int(episode.terminated and step == len(rewards) - 1)
                cost = paid[step] if paid else []
                left = [index, step, *observations[step], *actions[step]]
                table.writerow([*left, reward, *cost, ended])
            table.writerow([index, len(rewards), *observations[-1], *blank])


def read_csv(path: PathName, precision: type) -> EpisodeArrays:
    """Read the table, whole or not at all; real numbers become `precision`."""
    if precision not in (np.float32, np.float64):
        raise ArgumentError(f"precision: is {precision}; use np.float32 or np.float64")
    path = Path(path)
    with blame(path):
        table = read_table(path)
        spans = episode_spans(table)
        final = np.zeros(len(table.lines), bool)
        final[[end - 1 for _, end in spans]] = True
        moving, every = np.flatnonzero(~final), np.arange(final.size)
        refuse_filled(table, np.flatnonzero(final))
        cuts = [end for _, end in spans[:-1]]
        step_cuts = [end - count for count, end in enumerate(cuts, start=1)]
        whole = {name: block(table, name, moving, precision) for name in ("action", "reward")}
        paid = block(table, "cost", moving, precision) if "cost" in table.names else None
        return EpisodeArrays.from_arrays(
            observations=np.split(block(table, "observation", every, precision), cuts),
            actions=np.split(whole["action"], step_cuts),
            rewards=np.split(whole["reward"][:, 0], step_cuts),
            costs=None if paid is None else np.split(paid[:, 0], step_cuts),
            terminated=endings(table, moving, step_cuts),
            provenance={"imported": "csv"},
        )


@dataclass(frozen=True)
class Table:
    """Cells by column name, and the line of the file each row comes from."""

    names: tuple[str, ...]
    columns: dict[str, list[str]]
    lines: list[int]

    def place(self, row: int, name: str) -> str:
        """`row 12, column 'reward' (episode 3, step 4)`; the header is row 1."""
        episode, step = self.columns["episode"][row], self.columns["step"][row]
        return f"row {self.lines[row]}, column '{name}' (episode {episode}, step {step})"

    def group(self, name: str) -> list[str]:
        """`observation` -> observation_0, observation_1 ...; `reward` -> reward."""
        numbered = [f"{name}_{i}" for i in range(len(self.names))]
        return [name] if name in self.names else [n for n in numbered if n in self.names]


def read_table(path: Path) -> Table:
    """All cells as text; every row as long as the header."""
    if not path.is_file():
        raise DemonstrationError("is not a file; check the name and the working directory")
    rows, lines = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                if row:
                    rows.append([cell.strip() for cell in row])
                    lines.append(reader.line_num)
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise DemonstrationError(f"cannot be read as a UTF-8 CSV table ({error})") from error
    if len(rows) < 2:
        raise DemonstrationError("holds no episodes; it needs a header and a row per step")
    names = tuple(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise DemonstrationError(
                f"row {line}: has {len(row)} cells, the header has {len(names)}; fill the row up "
                "with empty cells or repair it"
            )
    refuse_columns(names)
    columns = dict(zip(names, map(list, zip(*rows[1:], strict=True)), strict=True))
    return Table(names, columns, lines[1:])


def refuse_columns(names: tuple[str, ...]) -> None:
    """Name the first column that is missing, twice there or unknown."""
    needed = ["episode", "step", "observation_0", "action_0", "reward"]
    for name in needed:
        if name not in names:
            raise DemonstrationError(f"column '{name}': is missing; needed: {', '.join(needed)}")
    known = {"episode", "step", "reward", "cost", "terminated"}
    for kind in ("observation_", "action_"):
        count = sum(name.startswith(kind) for name in names)
        known |= {f"{kind}{i}" for i in range(count)}
    for name in names:
        if name not in known or names.count(name) > 1:
            problem = "is there twice" if name in known else "is unknown or leaves a gap"
            raise DemonstrationError(
                f"column '{name}': {problem}; columns are episode, step, observation_0 .., "
                "action_0 .., reward, cost, terminated"
            )


def episode_spans(table: Table) -> list[tuple[int, int]]:
    """First row and end of each episode; rows together, steps 0, 1, 2 .. without gaps."""
    labels = table.columns["episode"]
    starts = [i for i, label in enumerate(labels) if i == 0 or label != labels[i - 1]]
    spans = list(zip(starts, [*starts[1:], len(labels)], strict=True))
    seen: set[str] = set()
    for start, end in spans:
        if labels[start] in seen or not labels[start]:
            raise DemonstrationError(
                f"{table.place(start, 'episode')}: the rows of an episode must lie together under "
                "one label; sort the table"
            )
        seen.add(labels[start])
        for row in range(start, end):
            if table.columns["step"][row] != str(row - start):
                raise DemonstrationError(
                    f"{table.place(row, 'step')}: expected step {row - start}; steps count from 0 "
                    "without gaps"
                )
        if end - start < 2:
            raise DemonstrationError(
                f"{table.place(start, 'step')}: the episode has no steps; it needs at least one "
                "step row and the row of its final observation"
            )
    return spans


def refuse_filled(table: Table, rows: np.ndarray) -> None:
    """Refuse a last row of an episode that holds more than its final observation."""
    rest = [*table.group("action"), "reward", "cost", "terminated"]
    for name in (name for name in rest if name in table.names):
        for row in rows.tolist():
            if table.columns[name][row]:
                raise DemonstrationError(
                    f"{table.place(row, name)}: must be empty, because the last row of an episode "
                    "holds only its final observation; add that row if it is missing"
                )


def block(table: Table, kind: str, rows: np.ndarray, precision: type) -> np.ndarray:
    """The columns of one kind as numbers [rows, size]: integers if all are, else `precision`."""
    names = table.group(kind)
    cells = {name: [table.columns[name][row] for row in rows.tolist()] for name in names}
    wanted: list[Any] = [precision] if kind in ("reward", "cost") else [np.int64, precision]
    for dtype in wanted:
        try:
            with np.errstate(over="ignore"):
                result = np.array([np.array(cells[name]).astype(dtype) for name in names]).T
        except (ValueError, OverflowError):
            continue
        if np.isfinite(result).all():
            return result
    for name in names:
        for row, cell in zip(rows.tolist(), cells[name], strict=True):
            if not is_finite(cell, precision):
                raise DemonstrationError(
                    f"{table.place(row, name)}: is {cell!r}, not a finite number; repair the cell "
                    "or leave this episode out"
                )
    raise DemonstrationError(f"column '{names[0]}': cannot be read as numbers")


def is_finite(cell: str, precision: type) -> bool:
    """Whether a cell holds a number that `precision` can hold."""
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(precision(cell)))
    except ValueError:
        return False


def endings(table: Table, rows: np.ndarray, cuts: list[int]) -> list[bool]:
    """Whether each episode was ended by the task: `terminated` at its last step."""
    if "terminated" not in table.names:
        return [False] * (len(cuts) + 1)
    ended = []
    for part in np.split(rows, cuts):
        for row in part.tolist():
            cell = table.columns["terminated"][row]
            if cell.lower() not in TRUTH or (row != part[-1] and TRUTH[cell.lower()]):
                raise DemonstrationError(
                    f"{table.place(row, 'terminated')}: is {cell!r}; it must be 0 or 1, and 1 only "
                    "at the last step of an episode"
                )
        ended.append(bool(TRUTH[table.columns["terminated"][part[-1]].lower()]))
    return ended
