"""Advance a run until it is finished, in a folder from which a stopped run is resumed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tacit.errors import DivergenceError
from tacit.runs.run_folder import RunFolder, has_checkpoint

ProgressCallback = Callable[[dict[str, float]], None]


class ResumableRun(Protocol):
    """A run that can be saved between two advances and resumed there bit for bit.

    Fields:
        iteration: how many advances were made so far.
        steps: how many environment steps were made so far.
        finished: whether there is nothing left to do.
    """

    @property
    def iteration(self) -> int: ...  # noqa: D102
    @property
    def steps(self) -> int: ...  # noqa: D102
    @property
    def finished(self) -> bool: ...  # noqa: D102

    def advance(self) -> dict[str, float]:
        """Do one more iteration; returns the numbers to record about it."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as a tree of arrays."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        ...


def run_until_finished(
    run: ResumableRun,
    folder: Path | str | None,
    settings: dict[str, Any],
    *,
    label: str,
    every: int,
    progress: ProgressCallback | None = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Advance until finished; with a folder, keep checkpoints there and resume from the last one.

    Arguments:
        run: what to advance.
        folder: where to keep metrics and checkpoints, None for nowhere.
        settings: all that decides its numbers; see `RunFolder.open`.
        label: what kind of run it is.
        every: advances between checkpoints.
        progress: called with the numbers of every advance.
        notice: called with sentences about what was found in the folder.
    """
    tell = progress or ignore
    if folder is None:
        while not run.finished:
            tell(run.advance())
        return
    with RunFolder.open(Path(folder), settings, label=label) as kept:
        resume(run, kept)
        told = 0
        while True:
            for sentence in kept.notices[told:]:
                (notice or ignore)(sentence)
            told = len(kept.notices)
            if run.finished:
                break
            facts = advance(run, kept)
            kept.record(facts)
            if run.iteration % every == 0 or run.finished:
                kept.save(run.state(), steps=run.steps)
            tell(facts)


def ignore(told: Any) -> None:
    """Do nothing: the callback where none was given."""


def resume(run: ResumableRun, kept: RunFolder) -> None:
    """Restore the folder's last checkpoint, if any, and drop what was recorded after it."""
    # Before the first advance the state may be expensive, or not exist yet.
    saved = kept.latest(like=run.state() if has_checkpoint(kept.path) else None)
    if saved is not None:
        run.restore(saved.tree)
        done = "is complete" if run.finished else f"goes on after {run.steps:,} steps"
        kept.notices.append(f"{kept.path}: the run in this folder {done}")


def advance(run: ResumableRun, kept: RunFolder) -> dict[str, float]:
    """Advance the run; an error of divergence then says where the last good state lies."""
    try:
        return run.advance()
    except DivergenceError as error:
        kept_too = has_checkpoint(kept.path)
        last = "the last checkpoint before that is kept" if kept_too else "no checkpoint is"
        raise DivergenceError(f"{error}; {last} in {kept.path}") from error
