"""A matplotlib figure as SVG that can stand inside an HTML page beside others."""

import io
import re
from typing import Any

import matplotlib
from matplotlib.figure import Figure

# Letters become shapes, so that the picture looks the same whatever fonts the reader has.
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "tacit",
    "svg.image_inline": True,
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure's `<svg>` element; its ids begin with `prefix`, and it names no outside address.

    The same figure gives the same text every time: ids are numbered in the order they appear, and
    nothing tells when or by which version the picture was drawn. The figure keeps the layout that
    it was drawn with.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    # Arranging a figure again moves its parts by a hair; once is enough, for equal bytes.
    figure.set_layout_engine("none")
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href=", "href=")
    text = re.sub(r'\sd="[^"]*"', lambda hit: shorten(hit[0]), text)
    return re.sub(r"\n\s*", "\n", renumber_ids(text, prefix)).strip()


def shorten(path: str) -> str:
    """Coordinates with two decimals, a hundredth of a point: half the bytes, no visible change."""
    path = re.sub(r"-?\d+\.\d{3,}", lambda hit: f"{float(hit[0]):.2f}", path)
    return re.sub(r"\s+", " ", path)


def renumber_ids(text: str, prefix: str) -> str:
    """Ids that something refers to become `prefix-1`, `prefix-2`, ...; the others go."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    found = dict.fromkeys(re.findall(r'\sid="([^"]+)"', text))
    names = {old: f"{prefix}-{place}" for place, old in enumerate(used_in_order(found, used), 1)}
    text = re.sub(
        r'\sid="([^"]+)"', lambda hit: f' id="{names[hit[1]]}"' if hit[1] in names else "", text
    )
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda hit: hit[1] + names.get(hit[2], hit[2]), text)


def used_in_order(found: dict[str, None], used: set[str]) -> list[str]:
    """The ids that are referred to, in the order of the document."""
    return [name for name in found if name in used]
