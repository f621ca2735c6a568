"""A page is one file that opens offline, is safe to open, and is the same every time."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tacit.environments.lab_tasks import chain, grid_world
from tacit.errors import ArgumentError, TacitError
from tacit.reports.confidence_curves import confidence_curves, coverage_against_confidence
from tacit.reports.feasibility import MapPanel, constraint_maps
from tacit.reports.number_curve import reward_against_number
from tacit.reports.page import Fact, Page, Section, page_html, write_page
from tacit.reports.style import Band
from tacit.reports.table import Table

HOSTILE = '<script>alert("$x$ & https://evil.example")</script>'
EMPTY_TAGS = {"meta", "path", "use", "rect", "br", "image"}


def figures():
    levels = np.array([0.5, 0.9])
    band = Band(levels, levels - 0.1, levels + 0.1)
    grid, line = grid_world("open"), chain()
    return [
        constraint_maps(grid, [MapPanel("true", grid.allowed), MapPanel("b", np.full(49, 0.3))]),
        constraint_maps(line, [MapPanel("true", line.allowed)]),
        confidence_curves(levels, band, band, 0.1, 0.7),
        coverage_against_confidence(levels, band, band),
        reward_against_number([3, 30], band, 0.8, [False, True], (20, 10, 30)),
    ]


def example_page():
    sections = [
        Section(f"Figure {place}", "First.\n\nSecond.", figure=figure, caption=f"Shows {place}.")
        for place, figure in enumerate(figures())
    ]
    table = Table(["task", "reward"], [["chain", 15.4], ["grid", None]], caption="Rewards.")
    return Page(
        "Enough?",
        "Yes.",
        [*sections, Section("Numbers", table=table)],
        facts=[Fact("violation", "2%", "at most 10%", "good")],
        foot="tacit",
    )


class Reader(HTMLParser):
    """Collects tags and attributes, and checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        if tag not in EMPTY_TAGS:
            assert self.open.pop() == tag


def read(text):
    reader = Reader()
    reader.feed(text)
    assert not reader.open
    return reader


@pytest.fixture(scope="module")
def text():
    return page_html(example_page())


def test_the_page_names_no_outside_address_and_has_no_script(text):
    assert not re.findall(r"https?://", text)
    reader = read(text)
    assert not {"script", "link", "iframe", "img", "object"} & set(reader.tags)
    addresses = [value for _, name, value in reader.attributes if name in ("href", "src")]
    assert addresses
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    assert "default-src 'none'" in text


def test_ids_are_unique_and_every_reference_finds_its_target(text):
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    wanted = re.findall(r'(?:href="#|url\(#|aria-labelledby=")([^")]+)', text)
    assert set(wanted) <= set(ids)


def test_every_figure_has_a_caption_and_a_label_for_those_who_cannot_see_it(text):
    assert text.count("<figure>") == text.count("<figcaption") == text.count("<svg") == 5
    for place in range(1, 6):
        assert f'<svg role="img" aria-labelledby="figure-{place}-caption"' in text
    assert "Shows 3.</figcaption>" in text


def test_headings_paragraphs_and_facts_are_there(text):
    assert text.count("<h1>") == 1
    assert text.count("<h2 ") == 6
    assert "<p>First.</p>\n<p>Second.</p>" in text
    assert '<dt>violation</dt><dd class="value">2%</dd><dd class="note">at most 10%</dd>' in text
    assert '<a href="#section-6">Numbers</a>' in text


def test_hostile_words_stay_words():
    figure = constraint_maps(grid_world("open"), [MapPanel(HOSTILE, np.ones(49))])
    section = Section(
        HOSTILE,
        HOSTILE,
        figure=figure,
        caption=HOSTILE,
        description=HOSTILE + "'\" onload='x",
        table=Table([HOSTILE], [[HOSTILE]], caption=HOSTILE),
    )
    fact = Fact(HOSTILE, HOSTILE, HOSTILE)
    text = page_html(Page(HOSTILE, HOSTILE, [section] * 4, facts=[fact], foot=HOSTILE))
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 10
    reader = read(text)
    assert "script" not in reader.tags
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]


def test_the_same_page_gives_the_same_bytes(tmp_path, text):
    page = example_page()
    first = write_page(page, tmp_path / "a.html").read_bytes()
    assert write_page(page, tmp_path / "b.html").read_bytes() == first
    assert first.decode() == text


def test_another_process_gives_the_same_bytes(text):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_page import *; "
        "sys.stdout.reconfigure(encoding='utf-8'); print(page_html(example_page()), end='')"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, check=True)
    assert done.stdout.decode() == text


def test_a_page_replaces_the_old_one_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "new folder" / "report.html"
    write_page(Page("one", "", []), target)
    write_page(Page("two", "", []), str(target))
    assert "<h1>two</h1>" in target.read_text(encoding="utf-8")
    assert list(target.parent.iterdir()) == [target]


def test_a_page_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TacitError, match=r"report\.html: cannot be written"):
        write_page(Page("one", "", []), tmp_path / "file" / "report.html")


def test_a_figure_without_a_caption_is_refused():
    with pytest.raises(ArgumentError, match="'Map' needs a caption"):
        Section("Map", figure=figures()[1])


@pytest.mark.parametrize(
    "bad",
    [
        "<script>1</script>",
        "< SCRIPT src=x>",
        '<img src="https://example.org/a.png">',
        "<p onclick='x'>",
        "<a href='javascript:x'>",
        "<link rel=stylesheet>",
    ],
)
def test_finished_html_may_not_run_or_load_anything(bad):
    with pytest.raises(ArgumentError, match="may not run scripts or load"):
        Section("Own", html=bad)


def test_finished_html_goes_in_as_it_is():
    own = '<p>a <b>bold</b> word <img alt="dot" src="data:image/png;base64,AAAA"></p>'
    assert own in page_html(Page("title", "", [Section("Own", html=own)]))


def test_numbers_stand_right_with_one_precision_per_column():
    rows = [["chain", 3, 0.25, "0.1 to 0.3", True], ["grid", 1200, -7.0, "–", False]]
    table = Table(
        ["task", "n", "reward", "interval", "kept"], [*rows, ["x", None, np.nan, None, None]]
    )
    text = page_html(Page("title", "", [Section("Table", table=table)]))
    assert '<th scope="col" class="number">reward</th>' in text
    assert '<td class="number">0.250</td>' in text
    assert '<td class="number">−7.000</td>' in text
    assert '<td class="number">1,200</td>' in text
    assert '<td class="number">0.1 to 0.3</td>' in text
    assert "<td>chain</td>" in text
    assert "<td>yes</td>" in text
    assert '<tr><td>x</td><td class="number">–</td><td class="number">–</td>' in text


def test_small_numbers_do_not_vanish_and_large_ones_have_no_decimals():
    table = Table(["small", "large"], [[1.5e-5, 12345.678], [0.2, 3.0]])
    text = page_html(Page("title", "", [Section("Table", table=table)]))
    assert ">1.5e−05<" in text
    assert ">12,346<" in text


def test_a_table_row_of_the_wrong_length_is_refused():
    with pytest.raises(ArgumentError, match="row 1 of the table has 1 cells for 2 columns"):
        Table(["a", "b"], [[1, 2], [3]])
