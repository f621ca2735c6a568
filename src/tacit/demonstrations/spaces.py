"""Minari's description of observation and action spaces, as the JSON text it keeps."""

import json
from typing import Any

import numpy as np


def describe_space(rows: np.ndarray, declared: object = None) -> str:
    """The space of rows [k, size]: the declared one where the rows fit in it, else inferred.

    Integers of size 1 are Discrete from min(0, smallest) to the largest (if int64 can count
    them); other integers a Box
    between the smallest and the largest; real numbers an unbounded Box.
    """
    if isinstance(declared, str) and fits(rows, parse_space(declared)):
        return declared
    start = min(0, int(rows.min())) if rows.dtype.kind == "i" else 0
    number = int(rows.max()) - start + 1
    if rows.dtype.kind == "i" and rows.shape[1] == 1 and number < 2**63:
        return json.dumps({"type": "Discrete", "dtype": "int64", "start": start, "n": number})
    if rows.dtype.kind == "i":
        low, high = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    else:
        low, high = [-np.inf] * rows.shape[1], [np.inf] * rows.shape[1]
    shape = [rows.shape[1]]
    box = {"type": "Box", "dtype": str(rows.dtype), "shape": shape, "low": low, "high": high}
    return json.dumps(box)


def parse_space(text: object) -> dict[str, Any]:
    """The space as a dictionary; empty when there is none or it cannot be understood."""
    try:
        space = json.loads(text) if isinstance(text, str | bytes) else {}
    except ValueError:
        return {}
    return space if isinstance(space, dict) else {}


def row_shape(space: dict[str, Any]) -> tuple[int, ...] | None:
    """The shape of one observation or action in the file; None when the space does not say."""
    if space.get("type") == "Discrete":
        return ()
    if space.get("type") == "Box" and isinstance(space.get("shape"), list):
        return tuple(space["shape"])
    return None


def fits(rows: np.ndarray, space: dict[str, Any]) -> bool:
    """Whether the rows lie in a Discrete or Box space of the same number type."""
    try:
        if space.get("type") == "Discrete":
            start, number = int(space["start"]), int(space["n"])
            whole = rows.dtype.kind == "i" and rows.shape[1] == 1
            return whole and start <= int(rows.min()) and int(rows.max()) < start + number
        if space.get("type") != "Box" or space["dtype"] != str(rows.dtype):
            return False
        low, high = np.asarray(space["low"]), np.asarray(space["high"])
        if not list(low.shape) == list(high.shape) == space["shape"] == [rows.shape[1]]:
            return False
        return bool((low <= rows).all() and (rows <= high).all())
    except (KeyError, TypeError, ValueError):
        return False
