"""Single lines and cells of CSV files, with the oddities of driving recordings."""

import csv
import math
import re
from pathlib import Path

from tacit.highway.recording import RecordingError

QUOTED = re.compile(r'"([^"]*)"')
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
LATER_ENTRIES = re.compile(r";[^,\n]*")


def cells_of(line: str, separator: str | None) -> list[str]:
    """The cells of a line; a quoted cell may hold the separator."""
    if separator is None:
        return line.split()
    if '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator))


def number_of(cell: str) -> float:
    """A cell as a number; NaN if it is none or infinite."""
    try:
        # Python would take "1_000" for a number; the fast reader does not.
        value = math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def without_thousands(line: str) -> str:
    """`"1,004.3"` becomes 1004.3; other quoted cells stay."""
    return QUOTED.sub(without_commas, line) if '"' in line else line


def without_commas(quoted: re.Match[str]) -> str:
    """A quoted number in groups of three digits, plainly written."""
    inside = quoted[1]
    return inside.replace(",", "") if THOUSANDS.fullmatch(inside) else quoted[0]


def without_later_entries(line: str) -> str:
    """`3.5;3.7,12` becomes `3.5,12`: of a list in a cell the first entry."""
    return LATER_ENTRIES.sub("", line) if ";" in line else line


def refuse_ragged_row(
    path: Path,
    row: int,
    line: str,
    names: tuple[str, ...],
    separator: str | None,
    real: tuple[str, ...],
) -> None:
    """A row must have as many cells as the header; a decimal comma makes more, a cut row fewer."""
    number = len(cells_of(line, separator))
    if number == len(names):
        return
    if number < len(names):
        suspect, advice = names[number], "the file may be cut off; copy or unpack it again"
    else:
        suspect = next((name for name in names if name in real), names[-1])
        advice = "numbers need a decimal point, not a comma"
    raise RecordingError(
        f"{path}: row {row}, column '{suspect}': the row has {number} cells instead of "
        f"{len(names)}; {advice}"
    )
