"""One HTML page that opens offline: no script, no network, the pictures inside."""

import html
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.figure import Figure

from tacit.errors import ArgumentError
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
# Letters become shapes, so that the picture looks the same whatever fonts the reader has.
SVG_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "tacit",
    "svg.image_inline": True,
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


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


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure's `<svg>` element; its ids begin with `prefix`, and it names no outside address.

    The same figure gives the same text every time: ids are numbered in the order they appear, and
    nothing tells when or by which version the picture was drawn. The figure keeps the layout that
    it was drawn with.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(SVG_SETTINGS):
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    # Arranging a figure twice moves its parts slightly; once only, so that bytes are equal.
    figure.set_layout_engine("none")
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href=", "href=")
    text = re.sub(r'\sd="[^"]*"', lambda hit: shorten(hit[0]), text)
    return re.sub(r"\n\s*", "\n", renumber_ids(text, prefix)).strip()


def shorten(path: str) -> str:
    """The path with two decimals, a hundredth of a point: half the bytes, no visible change."""
    path = re.sub(r"-?\d+\.\d{3,}", lambda hit: f"{float(hit[0]):.2f}", path)
    return re.sub(r"\s+", " ", path)


def renumber_ids(text: str, prefix: str) -> str:
    """The text with ids `prefix-1`, `prefix-2`, ...; ids that nothing refers to are removed."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    found = dict.fromkeys(re.findall(r'\sid="([^"]+)"', text))
    kept = (old for old in found if old in used)
    names = {old: f"{prefix}-{place}" for place, old in enumerate(kept, 1)}
    text = re.sub(
        r'\sid="([^"]+)"', lambda hit: f' id="{names[hit[1]]}"' if hit[1] in names else "", text
    )
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda hit: hit[1] + names.get(hit[2], hit[2]), text)


# The style sheet that every page carries inside itself.
STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --quiet: #52606d; --line: #d9dfe5;
  --paper: #ffffff; --back: #f4f6f8; --accent: #0072b2; --good: #00795a; --bad: #c04a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --quiet: #a3b0bd; --line: #36424e;
  --paper: #1a2129; --back: #11161b; --accent: #6cb8e6; --good: #4cc9a1; --bad: #ff9a5c; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--back); color: var(--ink); line-height: 1.55;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.5rem 3rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em;
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .6rem; overflow-wrap: anywhere; }
p { margin: 0 0 .9rem; max-width: 44rem; text-wrap: pretty; overflow-wrap: anywhere; }
.lead { font-size: 1.125rem; color: var(--quiet); }
a { color: var(--accent); }
nav ol { columns: 16rem; column-gap: 2rem; margin: 0; padding-left: 1.3rem; color: var(--quiet); }
nav { margin: 0 0 1.6rem; font-size: .95rem; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr));
  gap: .8rem; margin: 1.4rem 0 1.6rem; }
dl.facts > div { display: flex; flex-direction: column; background: var(--paper);
  border: 1px solid var(--line); border-top: 3px solid var(--accent); border-radius: .5rem;
  padding: .7rem .95rem .8rem; }
dl.facts > .good { border-top-color: var(--good); }
dl.facts > .bad { border-top-color: var(--bad); }
dl.facts dt { color: var(--quiet); font-size: .85rem; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
dl.facts .value { font-size: 1.45rem; font-weight: 650; line-height: 1.3;
  font-variant-numeric: tabular-nums; }
dl.facts .good .value { color: var(--good); }
dl.facts .bad .value { color: var(--bad); }
dl.facts .note { color: var(--quiet); font-size: .85rem; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1.4rem 1.5rem 1.2rem; margin: 0 0 1.4rem; }
figure { margin: .4rem 0 .4rem; }
.wide { overflow-x: auto; margin: 0 0 .6rem; }
.wide:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
figure .wide { background: #ffffff; border-radius: .4rem; text-align: center; }
figure svg { display: block; margin: 0 auto; max-width: 100%; height: auto; }
figcaption, caption { color: var(--quiet); font-size: .92rem; text-align: left; }
figcaption { max-width: 44rem; }
caption { padding: 0 0 .4rem; }
table { border-collapse: collapse; min-width: 50%; font-size: .95rem; }
th, td { padding: .4rem .9rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: baseline; }
th { font-weight: 600; border-bottom: 2px solid var(--line); }
th:first-child, td:first-child { padding-left: .2rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody tr:hover { background: color-mix(in srgb, var(--accent) 8%, transparent); }
footer { color: var(--quiet); font-size: .85rem; }
@media (prefers-color-scheme: dark) { figure .wide { padding: .3rem; background: #fbfbfa; } }
.scroll { display: none; color: var(--quiet); font-size: .8rem; margin: 0 0 .3rem; }
@media screen and (max-width: 46rem) { main { padding: 1.4rem .8rem 2rem; }
  h1 { font-size: 1.55rem; }
  section { padding: 1rem .9rem .8rem; } dl.facts { grid-template-columns: 1fr 1fr; gap: .6rem; }
  figure svg { max-width: 44rem; } figure .wide { text-align: left; }
  .scroll { display: block; } }
@media print { :root { --ink: #000; --quiet: #444; --line: #bbb; --paper: #fff; --back: #fff; }
  main { max-width: none; padding: 0; } section { border: 0; padding: 0; }
  figure, table, dl.facts { break-inside: avoid; } h2 { break-after: avoid; } nav { display: none; }
  .wide { overflow: visible; } figure svg { max-width: 100%; } }
""".strip()
