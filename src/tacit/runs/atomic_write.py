"""Files and folders that appear whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from tacit.errors import StorageError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary name to write a file or folder under; rename it to `path` at the end.

    A file is replaced in one step. A folder that exists already is moved aside first and deleted
    last, so that a crash leaves the old one or the new one, never a mixture.
    """
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        for folder, _, files in os.walk(part):
            for name in files:
                sync(Path(folder, name))
            sync(Path(folder))
        if part.is_dir():
            replace_folder(part, path)
        else:
            sync(part)
            os.replace(part, path)
        sync(path.parent)
    except (OSError, RuntimeError) as error:
        raise StorageError(
            f"{path}: cannot be written ({error}); check the folder, its permissions and free space"
        ) from error
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            with suppress(OSError):
                part.unlink()


def replace_folder(part: Path, path: Path) -> None:
    """Rename `part` to `path`, and put the old folder back if that fails."""
    if not path.exists():
        os.replace(part, path)
        return
    old = path.with_name(f".{path.name}.{uuid4().hex}.old")
    os.replace(path, old)
    try:
        os.replace(part, path)
    except OSError:
        os.replace(old, path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def sync(path: Path) -> None:
    """Ask the operating system to put a file or folder on disk now (Windows cannot be asked)."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
