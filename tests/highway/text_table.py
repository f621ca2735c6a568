"""A CSV file as text that can be edited, cell by cell; for making damaged files."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.runs.atomic_write import atomic_write


@dataclass(frozen=True)
class TextTable:
    """The cells of a file; methods return an edited table.

    Fields:
        names: of the columns.
        rows: cells as they are written.
    """

    names: list[str]
    rows: list[list[str]]

    @classmethod
    def read(cls, path: Path) -> "TextTable":
        """A comma-separated file with a header."""
        with path.open(encoding="utf-8", newline="") as file:
            names, *rows = csv.reader(file)
        return cls(names, rows)

    def write(self, path: Path, separator: str = ",") -> None:
        """The file again, with quotes where a cell holds the separator."""
        with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator, lineterminator="\n")
            writer.writerows([self.names, *self.rows])

    def cells(self, name: str) -> list[str]:
        """One column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def where(self, name: str, value: str) -> list[int]:
        """Indices of the rows with this value."""
        return [index for index, cell in enumerate(self.cells(name)) if cell == value]

    def change(
        self, name: str, new: str | Callable[[str], str], rows: list[int] | None = None
    ) -> "TextTable":
        """Other cells in a column: the same text, or what a function makes of each; all rows."""
        place = self.names.index(name)
        chosen = range(len(self.rows)) if rows is None else rows
        edited = [list(row) for row in self.rows]
        for index in chosen:
            old = edited[index][place]
            edited[index][place] = new if isinstance(new, str) else new(old)
        return TextTable(self.names, edited)

    def without_rows(self, rows: list[int]) -> "TextTable":
        """All rows but these."""
        left_out = set(rows)
        kept = [row for index, row in enumerate(self.rows) if index not in left_out]
        return TextTable(self.names, kept)

    def without_column(self, name: str) -> "TextTable":
        """All columns but one."""
        return self.in_order([other for other in self.names if other != name])

    def in_order(self, names: list[str]) -> "TextTable":
        """These columns in this order."""
        places = [self.names.index(name) for name in names]
        return TextTable(names, [[row[place] for place in places] for row in self.rows])

    def with_column(self, name: str, cell: str) -> "TextTable":
        """One more column in front, the same in all rows."""
        return TextTable([name, *self.names], [[cell, *row] for row in self.rows])

    def renamed(self, name: str, new: str) -> "TextTable":
        """A column under another name."""
        return TextTable([new if other == name else other for other in self.names], self.rows)
