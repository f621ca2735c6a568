"""Columns of large CSV files, read by name and in blocks; errors name file, row and column."""

import csv
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from jaxtyping import Int

from tacit.highway.recording import RecordingError

QUOTED = re.compile(r'"([^"]*)"')
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
LATER_ENTRIES = re.compile(r";[^,\n]*")
BLOCK_ROWS = 50_000


def cells_of(line: str, separator: str | None) -> list[str]:
    """The cells of a line; a quoted cell may hold the separator."""
    if separator is None:
        return line.split()
    if '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator))


def number_of(cell: str) -> float:
    """The number in a cell; NaN if it holds none or an infinite one."""
    try:
        # Python would take "1_000" for a number; the fast reader does not.
        value = math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def without_thousands(line: str) -> str:
    """Write quoted numbers without commas: `"1,004.3"` becomes 1004.3."""
    return QUOTED.sub(without_commas, line) if '"' in line else line


def without_commas(quoted: re.Match[str]) -> str:
    """A number in groups of three digits without its commas; other text as it is."""
    inside = quoted[1]
    return inside.replace(",", "") if THOUSANDS.fullmatch(inside) else quoted[0]


def without_later_entries(line: str) -> str:
    """Keep the first entry of each list in a cell: `3.5;3.7,12` becomes `3.5,12`."""
    return LATER_ENTRIES.sub("", line) if ";" in line else line


def refuse_ragged_row(
    path: Path, row: int, line: str, names: tuple[str, ...], layout: "Layout"
) -> None:
    """Raise an error unless the row has as many cells as the header.

    Decimal commas make more cells, and a row that is cut off has fewer.
    """
    number = len(cells_of(line, layout.separator))
    if number == len(names):
        return
    if number < len(names):
        suspect, advice = names[number], "the file may be cut off; copy or unpack it again"
    else:
        suspect = next((name for name in names if name in layout.real), names[-1])
        advice = "numbers need a decimal point, not a comma"
    raise RecordingError(
        f"{path}: row {row}, column '{suspect}': the row has {number} cells instead of "
        f"{len(names)}; {advice}"
    )


@dataclass(frozen=True)
class Layout:
    """Which columns are wanted, and how the file writes them. Other columns are ignored.

    Fields:
        whole: columns of whole numbers.
        real: columns of finite numbers.
        gappy: columns of numbers that may be empty or not finite; such cells become NaN.
        text: columns of words.
        header: names of the columns, for files that have no header.
        separator: between cells; None means white space.
        any_case: names are compared, and given back, in small letters.
        thousands: numbers may be written "1,004.3", in quotes.
        lists: a cell may hold several values, `3.5;3.7`; the first counts.
        only: rows without this text (in small letters) are skipped unread.
    """

    whole: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    gappy: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    header: tuple[str, ...] | None = None
    separator: str | None = ","
    any_case: bool = False
    thousands: bool = False
    lists: bool = False
    only: str | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """All columns of numbers."""
        return self.whole + self.real + self.gappy


@dataclass(frozen=True)
class Columns:
    """Columns of one file by name, and the row of the file that each value stands in."""

    path: Path
    row: Int[np.ndarray, " rows"]
    values: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: Any) -> "Columns":
        """Some of the rows: an index or a mask."""
        values = {name: array[chosen] for name, array in self.values.items()}
        return Columns(self.path, self.row[chosen], values)

    def replace(self, **columns: np.ndarray) -> "Columns":
        """The same rows with new or other columns."""
        return Columns(self.path, self.row, {**self.values, **columns})

    def place(self, index: int | np.integer, name: str) -> str:
        """`03_tracks.csv: row 12, column 'x'`, with the header as row 1."""
        return f"{self.path}: row {self.row[index]}, column '{name}'"


def read_columns(path: Path, layout: Layout) -> Columns:
    """Read all rows; raises an error if there are none."""
    columns = joined(path, list(blocks(path, layout)))
    if columns is None:
        raise RecordingError(f"{path}: holds no rows; it is incomplete or the wrong file")
    return columns


def joined(path: Path, parts: Sequence[Columns]) -> Columns | None:
    """Join blocks of rows; None if no block has a row."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].values}
    return Columns(path, np.concatenate([part.row for part in parts]), values)


def blocks(path: Path, layout: Layout) -> Iterator[Columns]:
    """Read the table in blocks, so that at most one block of text is in memory."""
    with text_of(path) as file:
        names, row = layout.header, 1
        if names is None:
            names, row = header_of(path, file.readline(), layout), 2
        while lines := list(islice(file, BLOCK_ROWS)):
            yield block_of(path, names, layout, lines, row)
            row += len(lines)


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """Open a text file, compressed or not; raises `RecordingError` if it cannot be read."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            yield file
    except FileNotFoundError as error:
        raise RecordingError(f"{path}: is missing; check the name and the folder") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(
            f"{path}: cannot be read as UTF-8 text ({error}); copy or unpack the file again"
        ) from error


def first_line(path: Path) -> str:
    """The first line of a file, which shows its layout."""
    with text_of(path) as file:
        line = file.readline(100_000)
    if not line.strip():
        raise RecordingError(f"{path}: is empty; copy or unpack the file again")
    return line


def header_of(path: Path, line: str, layout: Layout) -> tuple[str, ...]:
    """The names of all columns; raises an error unless each wanted one is there once."""
    if not line.strip():
        raise RecordingError(f"{path}: is empty; copy or unpack the file again")
    if layout.any_case:
        line = line.lower()
    names = tuple(cell.strip() for cell in cells_of(line, layout.separator))
    for name in layout.numbers + layout.text:
        place = f"{path}: row 1, column '{name}'"
        if name not in names and name in [cell.strip(' "\n') for cell in line.split(";")]:
            raise RecordingError(f"{place}: cells are separated by ';'; separate them by commas")
        if names.count(name) != 1:
            problem = "is there twice" if name in names else "is missing"
            raise RecordingError(f"{place}: {problem}; the file has {', '.join(names)}")
    return names


def block_of(
    path: Path, names: tuple[str, ...], layout: Layout, lines: list[str], first: int
) -> Columns:
    """The wanted columns of some lines; `first` is the row of the first line."""
    kept = [(row, line) for row, line in enumerate(lines, first) if is_wanted(line, layout)]
    rows = np.array([row for row, _ in kept], np.int64)
    texts = [line for _, line in kept]
    if layout.thousands:
        texts = [without_thousands(line) for line in texts]
    if layout.lists:
        texts = [without_later_entries(line) for line in texts]
    for row, line in zip(rows, texts, strict=True):
        if line.count(",") != len(names) - 1 or layout.separator is None:
            refuse_ragged_row(path, int(row), line, names, layout)
    numbers = fast_numbers(texts, names, layout)
    if numbers is None or not usable(numbers, layout).all():
        numbers = careful_numbers(path, rows, texts, names, layout)
    numbers[~np.isfinite(numbers)] = np.nan
    values: dict[str, np.ndarray] = {}
    for name, column in zip(layout.numbers, numbers.T, strict=True):
        # Copied, so that a column does not keep the whole block alive.
        values[name] = column.astype(np.int64) if name in layout.whole else column.copy()
    for name in layout.text:
        at = names.index(name)
        words = [cells_of(line, layout.separator)[at].strip() for line in texts]
        values[name] = np.array(words, np.str_)
    return Columns(path, rows, values)


def is_wanted(line: str, layout: Layout) -> bool:
    """Whether to read a line: it is not blank and holds the text `layout.only`."""
    return (layout.only is None or layout.only in line.lower()) and not line.isspace()


def fast_numbers(texts: list[str], names: tuple[str, ...], layout: Layout) -> np.ndarray | None:
    """Parse cells [rows, columns] all at once; None if a cell is not a number."""
    if not texts or not layout.numbers:
        return np.zeros((len(texts), len(layout.numbers)))
    try:
        return np.loadtxt(
            texts,
            delimiter=layout.separator,
            usecols=[names.index(name) for name in layout.numbers],
            comments=None,
            quotechar='"',
            ndmin=2,
        )
    except ValueError:
        return None


def usable(numbers: np.ndarray, layout: Layout) -> np.ndarray:
    """Which cells can be used as they are [rows, columns]."""
    good = np.isfinite(numbers)
    good[:, len(layout.whole) + len(layout.real) :] = True
    whole = numbers[:, : len(layout.whole)]
    # Beyond 2 ** 53 a float no longer knows which whole number was meant.
    good[:, : len(layout.whole)] &= (np.trunc(whole) == whole) & (np.abs(whole) < 2**53)
    return good


def careful_numbers(
    path: Path, rows: np.ndarray, texts: list[str], names: tuple[str, ...], layout: Layout
) -> np.ndarray:
    """Parse cells one by one, so that an error can name the first bad one."""
    at = [(name, names.index(name)) for name in layout.numbers]
    result = np.full((len(texts), len(at)), np.nan)
    for i, line in enumerate(texts):
        cells = cells_of(line, layout.separator)
        result[i] = [number_of(cells[place]) for _, place in at]
    good = usable(result, layout)
    if not good.all():
        i, j = np.argwhere(~good)[0]
        name, place = at[j]
        cell = cells_of(texts[i], layout.separator)[place].strip()
        kind = "whole number" if name in layout.whole else "finite number"
        advice = "write a decimal point, not a comma" if "," in cell else "repair the cell"
        raise RecordingError(
            f"{path}: row {rows[i]}, column '{name}': is {cell!r}, not a {kind}; {advice}"
        )
    return result
