"""Tables for pages (HTML) and for text files (Markdown), and numbers as their cells."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate

MISSING = "–"
LOOKS_LIKE_A_NUMBER = re.compile(r"[-+−<>≤≥~]?\s*[\d.]")


@dataclass(frozen=True)
class Table:
    """Column names and rows of cells: text, numbers, booleans, or None for missing."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        for place, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ArgumentError(
                    f"row {place} of the table has {len(row)} cells for {len(self.columns)} columns"
                )


def table_html(table: Table) -> str:
    """The `<table>` element, escaped; numbers stand right, with one precision a column."""
    by_column = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    written = [write_column(cells) for cells in by_column]
    kinds = [' class="number"' if is_numeric(cells) else "" for cells in by_column]
    lines = ['<div class="wide" tabindex="0"><table>']
    if table.caption:
        lines.append(f"<caption>{html.escape(table.caption)}</caption>")
    heads = zip(kinds, table.columns, strict=True)
    names = "".join(f'<th scope="col"{kind}>{html.escape(name)}</th>' for kind, name in heads)
    lines.append(f"<thead><tr>{names}</tr></thead>")
    lines.append("<tbody>")
    for place in range(len(table.rows)):
        cells = zip(kinds, written, strict=True)
        line = "".join(f"<td{kind}>{html.escape(column[place])}</td>" for kind, column in cells)
        lines.append(f"<tr>{line}</tr>")
    return "\n".join([*lines, "</tbody>", "</table></div>"])


def is_numeric(cells: Sequence[object]) -> bool:
    """True if all cells that are there are numbers, or text that begins like one."""
    known = [cell for cell in cells if not is_missing(cell) and cell not in ("", MISSING)]
    return bool(known) and all(
        is_number(cell) or (isinstance(cell, str) and LOOKS_LIKE_A_NUMBER.match(cell) is not None)
        for cell in known
    )


def write_column(cells: Sequence[object]) -> list[str]:
    """The cells of one column as text; its floats share one number of decimals."""
    values = [float(cell) for cell in cells if is_float(cell)]  # type: ignore[arg-type]
    style = float_style([value for value in values if math.isfinite(value)])
    return [write_cell(cell, style) for cell in cells]


def write_cell(cell: object, style: str) -> str:
    """One cell as text."""
    if is_missing(cell):
        return MISSING
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    if isinstance(cell, Integral):
        return f"{int(cell):,}".replace("-", "−")
    if isinstance(cell, Real):
        return format(float(cell), style).replace("-", "−")
    return str(cell)


def float_style(values: Sequence[float]) -> str:
    """About four digits for the largest value; significant digits if some would vanish."""
    sizes = [abs(value) for value in values if value]
    if sizes and min(sizes) < 5e-4:
        return ".3g"
    largest = max(sizes, default=0.0)
    decimals = next((d for limit, d in ((1000, 0), (100, 1), (10, 2)) if largest >= limit), 3)
    return f",.{decimals}f"


def is_number(cell: object) -> bool:
    """True for whole and real numbers, not for booleans."""
    return isinstance(cell, Real) and not isinstance(cell, bool | np.bool_)


def is_float(cell: object) -> bool:
    """True for numbers that are not whole by type."""
    return is_number(cell) and not isinstance(cell, Integral)


def is_missing(cell: object) -> bool:
    """True for None and NaN."""
    return cell is None or (is_float(cell) and math.isnan(float(cell)))  # type: ignore[arg-type]


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first column is text, the others are numbers."""
    rules = ["---", *("---:" for _ in columns[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rules, *rows))


def percent(share: float | Estimate | None) -> str:
    """A share as a percentage, with its interval where it has one."""
    if share is None:
        return MISSING
    if isinstance(share, Estimate) and share.low != share.high:
        return f"{percent(share.value)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    return f"{100 * float(share):.1f} %"


def four_digits(value: float | None) -> str:
    """A number with about four digits."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def p_value(value: float | None) -> str:
    """The p-value of a test: three decimals, or its power of ten."""
    if value is None:
        return MISSING
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
