"""JSON files, written whole or not at all, and read with errors that name the file."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import StorageError
from tacit.runs.atomic_write import atomic_write


def write_json(path: Path, content: object) -> None:
    """Write an indented JSON file, whole or not at all."""
    with atomic_write(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file that tacit wrote earlier."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{path}: damaged or not readable ({error}); remove it or choose another folder"
        ) from None


def plain(value: object) -> object:
    """NumPy scalars as JSON has them: the `default` of `json.dumps`."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
