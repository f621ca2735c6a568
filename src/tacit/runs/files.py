"""JSON, and arrays with a JSON header (safetensors), written whole or not at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

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


def write_arrays(path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Path:
    """Write arrays and a JSON-able header to `path`."""
    # Not np.ascontiguousarray, which gives an array without dimensions one.
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = save(whole, metadata={"tacit": json.dumps(header, sort_keys=True, default=plain)})
    with atomic_write(path) as part:
        part.write_bytes(content)
    return path


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the header of a file that `write_arrays` wrote."""
    if not path.is_file():
        raise StorageError(f"{path}: there is no such file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["tacit"])
            if not isinstance(header, dict):
                raise ValueError("the header is not a JSON object")
            return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError, OSError, ValueError) as error:
        raise StorageError(
            f"{path}: damaged, or not written by tacit ({type(error).__name__}: {error})"
        ) from None
