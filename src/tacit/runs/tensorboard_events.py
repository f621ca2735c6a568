"""The numbers of a run for TensorBoard: a copy of metrics.jsonl, never more than that.

Since everything is in metrics.jsonl, a TensorBoard that fails must not end a run of days: the first
failure is noted, no more events are written, and the events are complete again when the run is
continued. TensorBoard holds single precision; the exact numbers are in metrics.jsonl.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tacit.runs.metrics_file import STEPS


class Events:
    """Writes scalars to a folder of events; every tag is the name of a quantity."""

    def __init__(self, folder: Path, notices: list[str]):
        self.folder = folder
        self.notices = notices
        self.writer: Any = None
        self.failed = False

    def add(self, metrics: dict[str, int | float]) -> None:
        """Write one line of metrics, and make it visible at once."""
        self.attempt(lambda: self.write([metrics]))

    def rewrite(self, lines: list[dict[str, int | float]]) -> None:
        """Replace all events by those of `lines`, so that no step is there twice.

        The time of day of earlier events is lost: all get the time of the rewriting.
        """
        self.close()
        self.failed = False

        def replace() -> None:
            for old in self.folder.glob("events.out.tfevents.*"):
                old.unlink()
            if lines:
                self.write(lines)

        self.attempt(replace)

    def close(self) -> None:
        """Close the present file of events; the next `add` begins another one."""
        writer, self.writer = self.writer, None
        if writer is None:
            return
        if self.failed:
            with suppress(Exception):
                writer.close()
        else:
            self.attempt(writer.close)

    def write(self, lines: Iterable[dict[str, int | float]]) -> None:
        """Hand all quantities of all lines to TensorBoard."""
        if self.writer is None:
            # Here, because the import takes longer than many a run of the lab.
            from tensorboard.summary import Writer

            self.writer = Writer(str(self.folder))
        now = time.time()
        # Beyond single precision lies infinity, which TensorBoard can show.
        with np.errstate(over="ignore"):
            for line in lines:
                for name, value in line.items():
                    if name != STEPS:
                        self.writer.add_scalar(name, value, line[STEPS], wall_time=now)
        self.writer.flush()

    def attempt(self, action: Callable[[], None]) -> None:
        """Do something with TensorBoard; whatever goes wrong is noted once."""
        if self.failed:
            return
        try:
            action()
        except Exception as error:
            self.failed = True
            self.notices.append(
                f"{self.folder}: TensorBoard's events cannot be written ({error}); the run goes on "
                "without them, and all numbers are in metrics.jsonl"
            )
