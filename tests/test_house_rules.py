"""The rules of the house, read off the source itself."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tacit"
ROOMS = (
    "environments",
    "demonstrations",
    "highway",
    "control",
    "inference",
    "methods",
    "use",
    "evaluation",
    "sufficiency",
    "reports",
    "experiments",
)
SHARED = ("runs", "errors", "precision", "argument_checks")
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 400, 50
FRAGMENT, MOST_MODULES, MOST_WITH_ONE_READER = 60, 180, 20
PUBLIC_CONCEPTS = {"tacit.methods"}
"""Short modules that may have one reader inside of the library: users import them."""
OWN_GENERATORS = {
    "default_rng",
    "Generator",
    "SeedSequence",
    "PCG64",
    "Philox",
    "BitGenerator",
    "RandomState",
}

every_file = pytest.mark.parametrize(
    "path", FILES, ids=lambda path: str(path.relative_to(SOURCE).with_suffix(""))
)


def room_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def modules(path, tree):
    """(line, dotted name) of everything that the file imports, also inside functions."""
    package = ("tacit", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def allowed_rooms(room):
    if room in SHARED:
        return set(SHARED)
    if room == "command_line":
        return {*ROOMS, *SHARED, "command_line"}
    return {*ROOMS[: ROOMS.index(room) + 1], *SHARED}


def test_there_is_something_to_check():
    assert len(FILES) > 30
    assert {room_of(path) for path in FILES} >= {"environments", "control", "inference", "runs"}


def test_every_room_has_its_place_in_the_order():
    known = {*ROOMS, *SHARED, "command_line", "__init__", "__main__"}
    assert {room_of(path) for path in FILES} <= known


@every_file
def test_imports_point_to_the_same_room_or_an_earlier_one(path):
    if room_of(path) in ("__init__", "__main__"):
        return
    allowed = allowed_rooms(room_of(path))
    wrong = [
        f"line {line}: {name}"
        for line, name in modules(path, TREES[path])
        if name.split(".")[0] == "tacit"
        and (name.count(".") == 0 or name.split(".")[1] not in allowed)
    ]
    assert wrong == []


def test_the_check_of_imports_sees_all_kinds_of_import(tmp_path):
    text = (
        "import tacit.reports.page\nfrom tacit import infer\nfrom tacit.inference import result\n"
        "from ..reports import table\nfrom . import tabular\ndef late():\n    import tacit.runs\n"
    )
    path = SOURCE / "environments" / "imagined.py"
    assert [name for _, name in modules(path, ast.parse(text))] == [
        "tacit.reports.page",
        "tacit.infer",
        "tacit.inference.result",
        "tacit.reports.table",
        "tacit.environments.tabular",
        "tacit.runs",
    ]
    assert "reports" not in allowed_rooms("environments")
    assert "inference" not in allowed_rooms("runs")


@every_file
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE


def name_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(("tacit", *parts)).removesuffix(".__init__")


NAMES = {name_of(path): path for path in FILES}


def read_by(path):
    """The modules of tacit that a file imports."""
    for _, name in modules(path, TREES[path]):
        module = name if name in NAMES else name.rpartition(".")[0]
        if module in NAMES:
            yield module


def readers():
    """Every module with those that import it."""
    found = {name: set() for name in NAMES}
    for name, path in NAMES.items():
        for module in read_by(path):
            found[module].add(name)
    return found


def test_short_modules_have_more_than_one_reader():
    fragments = [
        f"{name}, read by {min(others)} alone"
        for name, others in readers().items()
        if len(others) == 1
        and len(NAMES[name].read_text(encoding="utf-8").splitlines()) < FRAGMENT
        and name not in PUBLIC_CONCEPTS
    ]
    assert fragments == []


def test_the_house_is_not_divided_too_far():
    assert len(FILES) <= MOST_MODULES
    alone = [name for name, others in readers().items() if len(others) == 1]
    assert len(alone) <= MOST_WITH_ONE_READER, alone


def test_modules_of_a_room_do_not_import_each_other_in_circles():
    reads = {
        name: {other for other in read_by(path) if other != name} for name, path in NAMES.items()
    }
    seen, circles = {}, []

    def walk(name, way):
        if name in way:
            circles.append(" -> ".join((*way[way.index(name) :], name)))
        elif name not in seen:
            for other in sorted(reads[name]):
                walk(other, (*way, name))
            seen[name] = True

    for name in NAMES:
        walk(name, ())
    assert circles == []


@every_file
def test_functions_are_short(path):
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]
    assert long == []


@every_file
def test_nothing_is_pickled(path):
    risky = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    imported = {name.split(".")[0] for _, name in modules(path, TREES[path])}
    assert imported & risky == set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant)
            assert node.value.value is False


@every_file
def test_there_is_no_global_random_state(path):
    imported = {name for _, name in modules(path, TREES[path])}
    assert not any(name.split(".")[0] == "random" for name in imported)
    wrong = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) in ("np.random", "numpy.random")
        and node.attr not in OWN_GENERATORS
    ]
    assert wrong == []
    drawn = {name.rsplit(".", 1)[1] for name in imported if name.startswith("numpy.random.")}
    assert drawn <= OWN_GENERATORS


@every_file
def test_only_the_command_line_prints(path):
    if room_of(path) == "command_line":
        return
    wrong = [
        node.lineno
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Name) and node.id == "print"
    ]
    assert wrong == []
