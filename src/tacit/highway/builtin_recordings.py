"""Made-up recordings that every user has: written into the cache folder on first use."""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

from tacit.errors import StorageError
from tacit.highway.highd_files import PARTS
from tacit.highway.highd_writer import write_highd
from tacit.highway.recording_folder import cache_folder
from tacit.highway.synthetic_traffic import Traffic
from tacit.runs.atomic_write import replace_folder

VERSION = 1
"""Raise it when the same settings give other traffic."""

BUILTIN = tuple(
    Traffic(seed=100 + number, duration=160.0, lanes=lanes, flow=flow, trucks=trucks)
    for number, (lanes, flow, trucks) in enumerate(
        (
            (2, 600.0, 0.25),
            (3, 600.0, 0.25),
            (2, 800.0, 0.2),
            (3, 800.0, 0.25),
            (2, 1000.0, 0.3),
            (3, 1000.0, 0.2),
            (2, 1200.0, 0.25),
            (3, 1200.0, 0.3),
            (2, 700.0, 0.35),
            (3, 1400.0, 0.2),
        ),
        start=1,
    )
)
"""Ten recordings of both carriageways: 80 windows of 40 s."""


def builtin_folder(
    recordings: Sequence[Traffic] = BUILTIN,
    *,
    progress: Callable[[int, int], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Path:
    """The folder with the built-in recordings; writes it if it is not there yet.

    It appears whole or not at all, and two processes that write it at the same time get the same
    folder. Other settings or another version have a folder of their own.

    Args:
        recordings: settings of each recording.
        progress: is called with the number of recordings written so far, and of all.
        notice: is called with a sentence if the folder has to be written first.
    """
    path = folder_for(recordings)
    if is_complete(path, len(recordings)):
        return path
    if notice is not None:
        notice(f"writing {len(recordings)} made-up recordings to {path}, once")
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        for number, traffic in enumerate(recordings, start=1):
            if progress is not None:
                progress(number - 1, len(recordings))
            write_highd(part, number, traffic)
        if progress is not None:
            progress(len(recordings), len(recordings))
        put_in_place(part, path, len(recordings))
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return path


def folder_for(recordings: Sequence[Traffic]) -> Path:
    """The cache folder of recordings with these settings."""
    cache = cache_folder()
    if cache is None:
        raise StorageError("there is no folder for cached files; set TACIT_CACHE to one")
    digest = hashlib.sha256(repr(tuple(recordings)).encode()).hexdigest()
    return cache / f"synthetic-v{VERSION}-{digest[:12]}"


def is_complete(path: Path, number: int) -> bool:
    """Whether all files of all recordings are there."""
    return all(
        (path / f"{recording:02d}_{name}.csv").is_file()
        for recording in range(1, number + 1)
        for name in PARTS
    )


def put_in_place(part: Path, path: Path, number: int) -> None:
    """Rename the finished folder, unless another process was faster."""
    if is_complete(path, number):
        return
    try:
        replace_folder(part, path)
    except OSError as error:
        if is_complete(path, number):
            return
        raise StorageError(
            f"{path}: cannot be written ({error}); check the folder, or set TACIT_CACHE to another"
        ) from error
