"""The numbers of a run as they come: metrics.jsonl, and a copy of it for TensorBoard.

Since everything is in metrics.jsonl, a TensorBoard that fails must not end a run of days: the first
failure is noted, no more events are written, and the events are complete again when the run is
continued. TensorBoard holds single precision; the exact numbers are in metrics.jsonl.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tacit.errors import ArgumentError, StorageError
from tacit.runs.atomic_write import sync

STEPS = "steps"


class MetricsFile:
    """Appends lines, one JSON object each, and can go back to an earlier length of the file."""

    def __init__(self, path: Path):
        self.path = path
        self.file: BinaryIO | None = None

    def append(self, metrics: dict[str, int | float]) -> None:
        """Write one line, all of it or none, and hand it to the operating system at once."""
        line = (json.dumps(metrics, ensure_ascii=False, allow_nan=False) + "\n").encode()
        try:
            if self.file is None:
                # Unbuffered, so that nothing of a failed line is left to be written later.
                self.file = self.path.open("ab", buffering=0)
            before = self.length()
            try:
                write_all(self.file, line)
            except OSError:
                with suppress(OSError):
                    self.file.truncate(before)
                raise
        except OSError as error:
            raise StorageError(
                f"{self.path}: cannot be written ({error}); check permissions and free space"
            ) from error

    def length(self) -> int:
        """The number of bytes of the file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def sync(self) -> int:
        """Put on disk what was written; returns the number of bytes."""
        try:
            if self.path.exists():
                sync(self.path)
            return self.length()
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be written ({error})") from error

    def cut(self, length: int) -> bool:
        """Go back to `length` bytes of whole lines; false if there are fewer than that."""
        self.close()
        try:
            if not self.path.exists():
                return length == 0
            whole = self.path.read_bytes()[:length]
            whole = whole[: whole.rfind(b"\n") + 1]
            if self.length() != len(whole):
                os.truncate(self.path, len(whole))
                sync(self.path)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be cut back ({error})") from error
        return len(whole) == length

    def close(self) -> None:
        """Close the file; the next `append` opens it again."""
        if self.file is not None:
            self.file.close()
            self.file = None


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


def write_all(file: BinaryIO, content: bytes) -> None:
    """Write to an unbuffered file, which may take less than it is given."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def read_metrics(path: Path) -> list[dict[str, int | float]]:
    """All lines of a metrics file; a last line without an end is not complete and left out."""
    if not path.exists():
        return []
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    lines = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            lines.append(json.loads(line))
        except ValueError as error:
            raise StorageError(f"{path}: line {number} is damaged ({error})") from None
    return lines


def check_metrics(metrics: dict[str, Any]) -> dict[str, int | float]:
    """The metrics as plain numbers; an error names the quantity that is none.

    NaN and infinity are errors: JSON cannot write them, and users should learn of them rather than
    see a gap in a curve. A quantity that has no value at a step is left out instead.
    """
    if STEPS not in metrics:
        raise ArgumentError(f"metrics without {STEPS!r}: say after how many steps they were taken")
    steps = number(STEPS, metrics[STEPS], "")
    if not isinstance(steps, int) or not 0 <= steps < 2**63:
        raise ArgumentError(f"{STEPS} is {steps!r}: it must be a whole number, zero or more")
    where = f" after {steps} steps"
    return {name: number(name, value, where) for name, value in metrics.items()}


def number(name: str, value: Any, where: str) -> int | float:
    """A Python number from one of Python, NumPy or JAX (an array with one entry)."""
    value = value.item() if getattr(value, "size", None) == 1 else value
    if not isinstance(value, int | float):
        raise ArgumentError(f"{name} is a {type(value).__name__}{where}, not a number")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise ArgumentError(
            f"{name} is {value}{where}: only finite numbers can be recorded; "
            "leave out a quantity that has no value"
        )
    return int(value) if isinstance(value, bool) else value
