"""Figures as files that every program shows."""

from pathlib import Path

from matplotlib.figure import Figure

from tacit.runs.atomic_write import atomic_write


def write_png(file: Path, figure: Figure) -> None:
    """Write a picture, whole or not at all."""
    with atomic_write(file) as part:
        figure.savefig(part, format="png", dpi=150)
