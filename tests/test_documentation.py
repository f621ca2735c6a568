"""README and docs are true: their code runs, their links lead somewhere."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(.*?)\s*$")
LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)"  # [text](target "title"), ![picture](target)
    r"|^\s*\[[^\]]+\]:\s*<?(\S+?)>?\s*$"  # [name]: target
    r"|\b(?:href|src)\s*=\s*[\"']([^\"']+)",
    re.MULTILINE,
)

LONG = ("docs/inference.md", "docs/training.md")
"""Pages whose code takes half a minute."""


def name_of(page):
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
every_page_to_run = pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (name_of(page) in LONG)) for page in PAGES],
    ids=name_of,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the line of the page where the text starts."""

    language: str
    text: str
    line: int


def blocks(text):
    """All fenced blocks of a page, in order."""
    found, opened = [], None
    for line, content in enumerate(text.splitlines(), 1):
        fence = FENCE.match(content)
        if opened is None and fence:
            opened = (fence[1], fence[2], line + 1, [])
        elif opened and fence and fence[1].startswith(opened[0]) and not fence[2]:
            found.append(Block(opened[1], "\n".join(opened[3]) + "\n", opened[2]))
            opened = None
        elif opened:
            opened[3].append(content)
    assert opened is None, f"the block that starts in line {opened[2]} is never closed"
    return found


def links(text):
    """Targets of all relative links outside code, without anchors."""
    prose, inside = [], None
    for content in text.splitlines():
        fence = FENCE.match(content)
        if fence and (inside is None or fence[1].startswith(inside)):
            inside = None if inside else fence[1]
        elif inside is None:
            prose.append(re.sub(r"`[^`]*`", "", content))
    targets = ["".join(groups) for groups in LINK.findall("\n".join(prose))]
    relative = [goal for goal in targets if not re.match(r"[a-z][a-z0-9+.-]*:|//", goal)]
    return [goal.split("#")[0] for goal in relative if goal.split("#")[0]]


def run_blocks(name, text):
    """Run the Python blocks of a page in one namespace; errors name the page and its line."""
    namespace = {"__name__": "__main__"}
    for block in blocks(text):
        if block.language == "python":
            # Empty lines in front make the line numbers those of the page.
            code = compile("\n" * (block.line - 1) + block.text, name, "exec")
            exec(code, namespace)


@every_page_to_run
def test_python_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))


@every_page
def test_no_python_escapes_being_run(page):
    for block in blocks(page.read_text(encoding="utf-8")):
        python = block.language.lower().startswith(("py", "{py", "ipython"))
        assert not python or block.language == "python", f"line {block.line}: {block.language}"
        first = next(iter(block.text.strip().splitlines()), "")
        assert "# not run" not in first, f"line {block.line}"
        if not block.language:
            assert not re.search(r"^(>>> |import tacit|from tacit)", block.text, re.MULTILINE)


@every_page
def test_relative_links_lead_to_files(page):
    text = page.read_text(encoding="utf-8")
    assert [goal for goal in links(text) if not (page.parent / goal).exists()] == []


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_there_are_pages_with_code():
    assert sum(block.language == "python" for page in PAGES for block in blocks(page.read_text()))


def test_a_wrong_block_is_an_error_in_its_line_of_the_page():
    page = (
        "Page\n\n```python\none = 1\n```\nand\n\n```python\nassert one == 1\nassert one == 2\n```\n"
    )
    with pytest.raises(AssertionError) as caught:
        run_blocks("page.md", page)
    assert caught.traceback[-1].lineno + 1 == 10
    assert str(caught.traceback[-1].path).endswith("page.md")


def test_links_are_found_and_code_is_not_taken_for_them():
    text = (
        "[a](a.md) ![b](b/b.png 'B') [c](https://c.org) [d](#d) [e](e.md#part) `[f](f.md)`\n"
        "```python\nx = [g](g.md)\n```\n<img src='h.svg'>\n[i]: i.md\n"
    )
    assert links(text) == ["a.md", "b/b.png", "e.md", "h.svg", "i.md"]
