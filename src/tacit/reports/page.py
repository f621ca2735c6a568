"""One HTML page that opens offline: no script, no network, the pictures inside."""

import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from tacit.errors import ArgumentError
from tacit.reports.inline_svg import inline_svg
from tacit.reports.page_style import STYLE
from tacit.reports.table import Table, table_html
from tacit.runs.atomic_write import atomic_write

# The browser itself then refuses scripts and requests, whatever a section's own HTML contains.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
FORBIDDEN_HTML = re.compile(
    r"<\s*/?\s*(script|iframe|object|embed|link|meta|base|form)\b"
    r"|<[^>]*\s(on\w+|src|srcset|action)\s*=\s*(?![\"']?data:image/)"
    r"|javascript:",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Fact:
    """A number for the strip at the top: what it is, its value, and perhaps a note below it."""

    label: str
    value: str
    note: str = ""
    tone: Literal["plain", "good", "bad"] = "plain"


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, and at most one each of a figure, a table and finished HTML.

    Arguments:
        heading: what the section says, in a few words.
        text: paragraphs, with blank lines between them.
        figure: a picture; it needs a caption.
        caption: what the picture shows, for everybody.
        description: what the picture shows for readers who cannot see it; the caption if empty.
        table: a table.
        html: finished HTML, put in as it is. Never make it from text that others wrote.
    """

    heading: str
    text: str = ""
    figure: Figure | None = None
    caption: str = ""
    description: str = ""
    table: Table | None = None
    html: str = ""

    def __post_init__(self) -> None:
        if self.figure is not None and not self.caption.strip():
            raise ArgumentError(f"the figure of section {self.heading!r} needs a caption")
        found = FORBIDDEN_HTML.search(self.html)
        if found:
            raise ArgumentError(
                f"the HTML of section {self.heading!r} has {found[0]!r}: a page may not run "
                "scripts or load anything"
            )


@dataclass(frozen=True)
class Page:
    """A title, a sentence or two that give the answer, key facts, and the sections."""

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[Fact] = ()
    foot: str = ""


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page as one HTML file, whole or not at all; the same page gives the same bytes."""
    target = Path(path)
    text = page_html(page)
    with atomic_write(target) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return target


def page_html(page: Page) -> str:
    """The whole page as text."""
    title = html.escape(page.title)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>\n{STYLE}\n</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<header>\n<h1>{title}</h1>\n{paragraphs(page.lead, 'lead')}\n</header>",
        facts_html(page.facts),
        contents_html(page.sections),
        *(section_html(section, place) for place, section in enumerate(page.sections, 1)),
        f"<footer>{paragraphs(page.foot)}</footer>" if page.foot else "",
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def paragraphs(text: str, kind: str = "") -> str:
    """Escaped text, a `<p>` for each block between blank lines."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    return "\n".join(f"{opening}{html.escape(block)}</p>" for block in blocks)


def facts_html(facts: Sequence[Fact]) -> str:
    """The strip of key facts."""
    if not facts:
        return ""
    boxes = []
    for fact in facts:
        note = f'<dd class="note">{html.escape(fact.note)}</dd>' if fact.note else ""
        boxes.append(
            f'<div class="{fact.tone}"><dt>{html.escape(fact.label)}</dt>'
            f'<dd class="value">{html.escape(fact.value)}</dd>{note}</div>'
        )
    return "\n".join(['<dl class="facts">', *boxes, "</dl>"])


def contents_html(sections: Sequence[Section]) -> str:
    """Links to the sections, where there are enough of them to be worth it."""
    if len(sections) < 4:
        return ""
    items = [
        f'<li><a href="#section-{place}">{html.escape(section.heading)}</a></li>'
        for place, section in enumerate(sections, 1)
    ]
    return "\n".join(['<nav aria-label="Contents"><ol>', *items, "</ol></nav>"])


def section_html(section: Section, place: int) -> str:
    """One section: heading, text, figure, table, HTML, in this order."""
    name = f"section-{place}"
    parts = [
        f'<section aria-labelledby="{name}">',
        f'<h2 id="{name}">{html.escape(section.heading)}</h2>',
        paragraphs(section.text),
        figure_html(section, f"figure-{place}"),
        table_html(section.table) if section.table is not None else "",
        section.html,
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def figure_html(section: Section, name: str) -> str:
    """The figure with its caption; screen readers get the description, or else the caption."""
    if section.figure is None:
        return ""
    label = f'aria-labelledby="{name}-caption"'
    if section.description:
        label = f'aria-label="{html.escape(section.description)}"'
    picture = inline_svg(section.figure, name).replace("<svg", f'<svg role="img" {label}', 1)
    return (
        '<figure>\n<p class="scroll" aria-hidden="true">swipe to see all of the picture</p>\n'
        f'<div class="wide" tabindex="0">\n{picture}\n</div>\n'
        f'<figcaption id="{name}-caption">{html.escape(section.caption)}</figcaption>\n</figure>'
    )
