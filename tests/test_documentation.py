"""README and docs are true: their code runs, their links lead somewhere, their tables are made."""

import contextlib
import dataclasses
import functools
import importlib.util
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

import tacit
from tacit.command_line import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
METHOD_PAGES = [
    page
    for page in sorted((DOCS / "methods").glob("*.md"))
    if page.stem not in ("index", "loop", "paper")
]
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(.*?)\s*$")
LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)"  # [text](target "title"), ![picture](target)
    r"|^\s*\[[^\]]+\]:\s*<?(\S+?)>?\s*$"  # [name]: target
    r"|\b(?:href|src)\s*=\s*[\"']([^\"']+)",
    re.MULTILINE,
)

LONG = tuple(
    f"docs/{page}.md"
    for page in (
        "guide/training",
        "methods/ca-icrl",
        "methods/gacl",
        "methods/icl",
        "methods/reach",
        "methods/vicrl",
        "start/simulator",
    )
)
"""Pages whose code takes half a minute, most of it for compiling."""
INCLUDED = re.compile(r'^--8<-- "(examples/\w+\.py)"$')
"""A line that stands for an example, which has a test of its own."""


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
        if block.language == "python" and not INCLUDED.match(block.text.strip()):
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


@every_page
def test_examples_that_a_page_takes_in_are_there(page):
    for block in blocks(page.read_text(encoding="utf-8")):
        found = INCLUDED.match(block.text.strip())
        assert "--8<--" not in block.text or found, f"line {block.line}"
        assert not found or (ROOT / found[1]).exists(), f"line {block.line}: {found[1]}"


def commands(text):
    """The words of every `tacit` command in a page's bash blocks."""
    found = []
    for block in blocks(text):
        if block.language == "bash":
            lines = block.text.replace("\\\n", " ").splitlines()
            found += [shlex.split(line, comments=True) for line in lines]
    return [words for words in found if words[:1] == ["tacit"]]


@functools.cache
def help_of(words):
    """What a command says of itself."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0, f"tacit {' '.join(words)} is no command"
    return said.getvalue()


@every_page
def test_commands_of_the_page_exist_with_their_flags(page):
    for words in commands(page.read_text(encoding="utf-8")):
        name = tuple(words[1 : 1 + {"experiment": 3, "data": 2}.get(words[1], 1)])
        flags = {word for word in words if word.startswith("--")}
        assert {flag for flag in flags if flag not in help_of(name)} == set(), words


@every_page
def test_text_of_an_older_version_says_so(page):
    for block in blocks(page.read_text(encoding="utf-8")):
        old = block.language == "text" and "import tacit" in block.text
        assert not old or block.text.startswith("# version 0.1.0\n"), f"line {block.line}"


def test_readme_and_the_page_on_confidence_are_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120
    confidence = DOCS / "guide" / "confidence.md"
    assert len(confidence.read_text(encoding="utf-8").splitlines()) <= 150


def test_navigation_has_every_page_and_no_other():
    named = re.findall(r"[\w/-]+\.md\b", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_pages_of_the_notebook_say_what_they_are():
    for page in sorted((DOCS / "notebook").glob("*.md")):
        if page.stem != "index":
            assert "**A page of the notebook.**" in page.read_text(encoding="utf-8"), page.name


def test_tables_of_the_evidence_are_what_the_script_writes():
    place = importlib.util.spec_from_file_location("generate", DOCS / "evidence" / "generate.py")
    assert place is not None
    assert place.loader is not None
    generate = importlib.util.module_from_spec(place)
    place.loader.exec_module(generate)
    assert len(generate.pages()) >= 4
    for page in generate.pages():
        text = page.read_text(encoding="utf-8")
        assert generate.written(text) == text, f"{page.name}: run `make evidence`"
        # Who types a table by hand forgets to change it.
        by_hand = re.sub(r"<!-- generated: .*?<!-- end -->", "", text, flags=re.DOTALL)
        assert not re.search(r"^\|.*\d\.\d", by_hand, re.MULTILINE), page.name


def test_pages_of_the_api_have_every_public_name():
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    shown = set(re.findall(r"^::: tacit\.(\w+)$", text, re.MULTILINE)) | {"methods"}
    assert shown == set(tacit.__all__)


def test_there_is_a_page_for_every_method_of_ours():
    ours = {
        name
        for name, method in tacit.methods.METHODS.items()
        if method.__module__.startswith("tacit.")
    }
    assert {page.stem for page in METHOD_PAGES} == ours


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_settings_on_the_page_of_a_method_are_those_it_has(page):
    method = tacit.methods.METHODS[page.stem]
    fields = {field.name: field.default for field in dataclasses.fields(method)}
    text = page.read_text(encoding="utf-8").split("## Settings")[1].split("## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:3]]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    told = {}
    for names, defaults in rows:
        names = [name for name in names.strip("`").split(", ") if name != "..."]
        defaults = [defaults] if len(names) == 1 else re.split(r", (?![^(]*\))", defaults)
        told.update(zip(names, defaults, strict=True))
    for name, default in told.items():
        assert name in fields, name
        if isinstance(fields[name], float):
            assert float(default) == fields[name], name
        else:
            assert default == repr(fields[name]).replace("'", '"'), name
    whole = "..." not in text
    assert not whole or set(told) == set(fields)


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
