"""Run something step by step in a folder, from wherever the last attempt was stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tacit.errors import DivergenceError
from tacit.runs.run_folder import RunFolder

Told = Callable[[dict[str, float]], None]


class Continued(Protocol):
    """What can be advanced, saved and taken up again bit for bit."""

    @property
    def iteration(self) -> int:
        """Advances so far."""
        ...

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        ...

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        ...

    def advance(self) -> dict[str, float]:
        """Do one more; returns what to write down about it."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as a tree of arrays."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        ...


def run_to_the_end(
    run: Continued,
    folder: Path | str | None,
    settings: dict[str, Any],
    *,
    label: str,
    every: int,
    progress: Told | None = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Advance until finished; with a folder, keep checkpoints there and go on from the last one.

    Arguments:
        run: what to advance.
        folder: where to keep it, None for nowhere.
        settings: all that decides its numbers; see `RunFolder.open`.
        label: what kind of run it is.
        every: advances between checkpoints.
        progress: is told the numbers of every advance.
        notice: is told sentences about what was found in the folder.
    """
    tell = progress or ignore
    if folder is None:
        while not run.finished:
            tell(run.advance())
        return
    with RunFolder.open(Path(folder), settings, label=label) as kept:
        take_up(run, kept)
        told = 0
        while True:
            for sentence in kept.notices[told:]:
                (notice or ignore)(sentence)
            told = len(kept.notices)
            if run.finished:
                break
            facts = advanced(run, kept)
            kept.record(facts)
            if run.iteration % every == 0 or run.finished:
                kept.save(run.state(), steps=run.steps)
            tell(facts)


def ignore(told: Any) -> None:
    """Nobody wants to know."""


def take_up(run: Continued, kept: RunFolder) -> None:
    """Bring the run to where the folder's last checkpoint left it."""
    saved = kept.latest(like=run.state())
    if saved is not None:
        run.restore(saved.tree)
        done = "is complete" if run.finished else f"goes on after {run.steps:,} steps"
        kept.notices.append(f"{kept.path}: the run in this folder {done}")


def advanced(run: Continued, kept: RunFolder) -> dict[str, float]:
    """One advance; an error of divergence tells where the last good state lies."""
    try:
        return run.advance()
    except DivergenceError as error:
        last = "the last checkpoint before that is kept" if kept.begun() else "no checkpoint is"
        raise DivergenceError(f"{error}; {last} in {kept.path}") from error
