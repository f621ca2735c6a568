"""Recordings turned into scenarios, one recording in memory at a time, and split in two."""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float

from tacit.errors import TaskError
from tacit.highway.builtin_recordings import builtin_folder
from tacit.highway.recording import Geometry, RecordingError
from tacit.highway.recording_folder import RecordingSource, find_recordings
from tacit.highway.replay import Piece, Replay, piece_of, stack_replay
from tacit.highway.scenarios import Egos, Scenario, cast_window, windows

Split = Literal["train", "test", "all"]
SplitBy = Literal["recording", "scenario"]
TRAINING_SHARE = 0.7


@dataclass(frozen=True)
class Selection:
    """Which scenarios to make.

    Fields:
        geometry: of the recordings, see `recording.Geometry`.
        window: seconds of the pieces that recordings are cut into.
        egos: `one` for each window, or `all` cars that qualify.
        split: `train`, `test` or `all`.
        split_by: whole recordings, so that the two parts share no traffic, or single scenarios.
        seed: of the choice of egos and of the split.
    """

    geometry: Geometry = "centre"
    window: float = 40.0
    egos: Egos = "one"
    split: Split = "train"
    split_by: SplitBy = "recording"
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Play:
    """Scenarios and their tables.

    Fields:
        replay: what the step function looks things up in.
        scenarios: what people look at.
        paths: where the recorded drivers went, each [steps + 1, 2].
        skipped: windows without a scenario, by reason.
    """

    replay: Replay
    scenarios: tuple[Scenario, ...]
    paths: tuple[Float[np.ndarray, "steps 2"], ...]
    skipped: Mapping[str, int]


def load_scenarios(folder: str | None, selection: Selection) -> Play:
    """The scenarios of all recordings in `folder`; None stands for the built-in ones.

    What was loaded last is remembered until a file changes, as making a task again is common.
    """
    place = builtin_folder() if folder is None else Path(folder)
    return read_scenarios(place, contents(place), selection)


def contents(folder: Path) -> tuple[tuple[Path, int, int], ...]:
    """The files among which recordings are looked for, with their sizes and times."""
    places = [place for place in (folder, folder / "data") if place.is_dir()]
    paths = [path.absolute() for place in places for path in place.iterdir()]
    files = sorted(path for path in paths if path.is_file())
    return tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)


@functools.lru_cache(maxsize=2)
def read_scenarios(place: Path, files: tuple[Any, ...], selection: Selection) -> Play:
    """`load_scenarios`, of a folder that holds those `files`."""
    del files  # what was remembered for other files is not asked for
    sources = find_recordings(place)
    if selection.split_by == "recording":
        names = part_of([source.name for source in sources], selection)
        sources = tuple(source for source in sources if source.name in names)
        if not sources:
            raise TaskError(
                f"{place}: split='test' by recording needs two recordings or more; choose "
                "split_by='scenario' or split='all'"
            )
    pieces, skipped = gather(sources, selection)
    if selection.split_by == "scenario":
        if len(pieces) == 1 and selection.split == "test":
            raise TaskError(
                f"{place}: split='test' by scenario needs two scenarios or more; choose split='all'"
            )
        kept = part_of(range(len(pieces)), selection)
        pieces = [piece for number, piece in enumerate(pieces) if number in kept]
    if not pieces:
        why = ", ".join(f"{reason} ({number} windows)" for reason, number in skipped.items())
        raise RecordingError(f"{place}: no scenario can be made: {why or 'nothing is recorded'}")
    return Play(
        stack_replay(pieces),
        tuple(piece.scenario for piece in pieces),
        tuple(piece.path for piece in pieces),
        skipped,
    )


def gather(
    sources: Sequence[RecordingSource], selection: Selection
) -> tuple[list[Piece], Counter[str]]:
    """The scenarios of some recordings, and why windows have none; one recording at a time."""
    pieces: list[Piece] = []
    skipped: Counter[str] = Counter()
    for source in sources:
        for carriageway in source.read(selection.geometry):
            for window in windows(carriageway, selection.window, selection.geometry):
                casts, reason = cast_window(
                    carriageway, window, selection.geometry, selection.egos, selection.seed
                )
                skipped.update([reason] if reason else [])
                pieces += [piece_of(carriageway, cast, selection.geometry) for cast in casts]
    return pieces, skipped


def part_of(things: Sequence[Any], selection: Selection) -> set[Any]:
    """The things that belong to the training or to the test part."""
    if selection.split == "all":
        return set(things)
    order = np.random.default_rng(selection.seed).permutation(len(things))
    # At least one for training: a single recording is all for training.
    border = max(round(TRAINING_SHARE * len(things)), 1)
    chosen = order[:border] if selection.split == "train" else order[border:]
    return {things[number] for number in chosen.tolist()}


def with_starts(
    scenarios: Sequence[Scenario],
    gaps: Float[np.ndarray, " n"],
    broken: Sequence[tuple[str, ...]],
) -> tuple[Scenario, ...]:
    """Scenarios that know their first gap and which constraints their start breaks."""
    return tuple(
        replace(scenario, start_gap=float(gap), violates=rules)
        for scenario, gap, rules in zip(scenarios, gaps, broken, strict=True)
    )


def only(play: Play, kept: Sequence[int]) -> Play:
    """Some of the scenarios; the table stays whole, as rows cost nothing when nobody looks."""
    numbers = np.asarray(kept)
    replay = play.replay
    parts = {
        name: jax.tree.map(lambda field: field[numbers], getattr(replay, name))
        for name in ("first_row", "last_row", "dt", "position", "velocity", "around")
    }
    return Play(
        Replay(frames=replay.frames, **parts),
        tuple(play.scenarios[number] for number in kept),
        tuple(play.paths[number] for number in kept),
        play.skipped,
    )
