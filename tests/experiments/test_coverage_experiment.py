"""The coverage experiment: the table it promises, and a folder that survives being killed."""

import csv
import json
from types import SimpleNamespace

import pytest

from tacit.environments.lab_tasks import chain, grid_world
from tacit.errors import StorageError
from tacit.experiments import coverage
from tacit.experiments.coverage import (
    CoverageSettings,
    identity,
    lab_tasks,
    methods,
    possible_rules,
    run_coverage,
)
from tacit.inference.counts.counts import Counts
from tacit.runs.settings_file import keep_settings
from tacit.sufficiency.decision import best_reward

HEADER = (
    "task,objective,votes,reading,experts,confidence,datasets,violation,violation_low,"
    "violation_high,reward,joint_coverage,pointwise_coverage,distance_to_oracle"
)
SETTINGS = CoverageSettings(confidences=(0.5, 0.9), experts=(3, 8), datasets=4, candidates=3)
FEW_METHODS = [Counts(), Counts(reading="hard")]
TASKS = [
    chain(length=11, limit=-2, horizon=10, reward_scale=10),
    grid_world(("...", "SxG", "..."), horizon=8),
]


class Killed(Exception):
    """Stands for the power cut."""


@pytest.fixture
def few_methods(monkeypatch):
    monkeypatch.setattr(coverage, "methods", lambda: FEW_METHODS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of an uninterrupted run, its rows, and what was told of its progress."""
    folder = tmp_path_factory.mktemp("coverage") / "whole"
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "methods", lambda: FEW_METHODS)
        rows = run_coverage(
            folder, SETTINGS, tasks=TASKS, progress=lambda *progress: told.append(progress)
        )
    return folder, rows, told


def claim(folder, tasks):
    """Begin a run in the folder, and stop it before its first cell."""

    def stop(*_):
        raise Killed

    with pytest.raises(Killed):
        run_coverage(folder, SETTINGS, tasks=tasks, progress=stop)


def read(folder):
    with (folder / "coverage.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def objective_of(method):
    return "counts" if isinstance(method, Counts) else method.objective


def check_rows(folder, rows, combinations):
    """One row per combination in the promised columns, with numbers that can be."""
    text = (folder / "coverage.csv").read_text()
    assert text.splitlines()[0] == HEADER
    assert "\r" not in text
    table = read(folder)
    assert len(table) == len(rows)
    keys = ("task", "objective", "votes", "reading", "experts", "confidence")
    found = [tuple(row[key] for key in keys) for row in table]
    assert len(set(found)) == len(found)
    assert set(found) == {
        (task.name, objective_of(method), method.votes, method.reading, number, level)
        for task in TASKS
        for method in combinations
        for number in ("3", "8")
        for level in ("0.5", "0.9")
    }
    best = {task.name: best_reward(task) for task in TASKS}
    for row in table:
        assert row["datasets"] == "4"
        numbers = {name: float(row[name]) for name in HEADER.split(",")[7:]}
        low, high = numbers["violation_low"], numbers["violation_high"]
        assert 0 <= low <= numbers["violation"] <= high <= 1
        assert numbers["reward"] <= best[row["task"]] + 1e-6
        for name in ("joint_coverage", "pointwise_coverage", "distance_to_oracle"):
            assert 0 <= numbers[name] <= 1
        assert numbers["joint_coverage"] in (0, 0.25, 0.5, 0.75, 1)


def test_the_table_has_the_promised_columns_and_a_row_per_combination(finished):
    folder, rows, _ = finished
    check_rows(folder, rows, FEW_METHODS)


def test_the_table_holds_what_is_returned(finished):
    folder, rows, _ = finished
    for written, row in zip(read(folder), rows, strict=True):
        assert list(written) == list(row) == HEADER.split(",")
        for name, value in row.items():
            if isinstance(value, float):
                assert float(written[name]) == pytest.approx(value, rel=1e-5)
            else:
                assert written[name] == str(value)


def test_numbers_differ_where_the_question_does(finished):
    _, rows, _ = finished
    for task in TASKS:
        own = [row for row in rows if (row["task"], row["reading"]) == (task.name, "graded")]
        assert len({row["reward"] for row in own}) == len(own) == 4
        assert len({row["distance_to_oracle"] for row in own}) > 1


def test_a_figure_is_written(finished):
    folder, _, _ = finished
    picture = (folder / "coverage.svg").read_text()
    assert "<svg" in picture
    assert picture.rstrip().endswith("</svg>")


def test_nothing_temporary_is_left(finished):
    folder, _, _ = finished
    names = sorted(path.name for path in folder.rglob("*"))
    assert not [name for name in names if name.startswith(".")]
    assert len([name for name in names if name.endswith(".json")]) == 5


def test_progress_is_told_from_nothing_to_everything(finished):
    _, _, told = finished
    assert [done for done, _, _ in told] == [0, 1, 2, 3, 4]
    assert {total for _, total, _ in told} == {4}
    assert "N = 3" in told[0][2]


@pytest.mark.usefixtures("few_methods")
def test_a_run_killed_half_way_goes_on_and_ends_the_same_byte_for_byte(
    finished, tmp_path, monkeypatch
):
    folder, _, _ = finished

    def kill(done, total, text):
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        run_coverage(tmp_path / "run", SETTINGS, tasks=TASKS, progress=kill)
    assert not (tmp_path / "run" / "coverage.csv").exists()
    computed = []
    own = coverage.run_cell
    monkeypatch.setattr(
        coverage, "run_cell", lambda *cell: (computed.append(cell[1]), own(*cell))[1]
    )
    run_coverage(tmp_path / "run", SETTINGS, tasks=TASKS)
    assert computed == [3, 8]
    whole = (folder / "coverage.csv").read_bytes()
    assert (tmp_path / "run" / "coverage.csv").read_bytes() == whole


@pytest.mark.usefixtures("few_methods")
def test_the_same_command_again_computes_nothing_and_changes_nothing(finished, monkeypatch):
    folder, rows, _ = finished
    before = (folder / "coverage.csv").read_bytes()
    monkeypatch.setattr(coverage, "run_cell", None)
    monkeypatch.setattr(coverage, "prepare", None)
    assert run_coverage(folder, SETTINGS, tasks=TASKS) == json.loads(json.dumps(rows))
    assert (folder / "coverage.csv").read_bytes() == before


@pytest.mark.usefixtures("few_methods")
def test_the_seed_alone_decides_and_other_tasks_do_not_matter(finished, tmp_path):
    folder, _, _ = finished
    chain_only = [row for row in read(folder) if row["task"] == TASKS[0].name]
    run_coverage(tmp_path / "same", SETTINGS, tasks=TASKS[:1])
    assert read(tmp_path / "same") == chain_only
    other = CoverageSettings(
        confidences=(0.5, 0.9), experts=(3, 8), datasets=4, candidates=3, seed=1
    )
    run_coverage(tmp_path / "other", other, tasks=TASKS[:1])
    assert read(tmp_path / "other") != chain_only


@pytest.mark.slow
def test_all_methods_have_their_rows(tmp_path):
    rows = run_coverage(tmp_path / "one", SETTINGS, tasks=TASKS)
    assert len(rows) == 18 * 2 * 2 * 2
    check_rows(tmp_path / "one", rows, methods())
    run_coverage(tmp_path / "two", SETTINGS, tasks=TASKS)
    one, two = ((tmp_path / name / "coverage.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_there_are_eighteen_methods_and_the_default_is_one():
    assert len(set(methods())) == len(methods()) == 18
    assert Counts() in methods()


def test_lab_tasks_have_names_of_their_own():
    names = [task.name for task in lab_tasks()]
    assert len(set(names)) == len(names) == 6


def test_rules_are_limits_on_a_chain_and_subsets_of_tempting_cells_on_a_grid():
    limits = possible_rules(TASKS[0], 3).allowed
    assert len(limits) == 6
    assert (limits == TASKS[0].allowed).all(axis=1).any()
    subsets = possible_rules(TASKS[1], 3).allowed
    assert len(subsets) == 2**3
    assert (subsets == TASKS[1].allowed).all(axis=1).any()
    assert subsets[:, TASKS[1].initial > 0].all()


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": CoverageSettings(datasets=5)},
        {"settings": CoverageSettings(seed=1)},
        {"tasks": TASKS[:1]},
    ],
)
def test_the_folder_of_another_run_is_refused_and_left_alone(finished, changed):
    folder, _, _ = finished
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(StorageError, match="other settings"):
        run_coverage(folder, **{"settings": SETTINGS, "tasks": TASKS, **changed})
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folder_of_another_experiment_is_refused(tmp_path):
    keep_settings(tmp_path / "settings.json", {}, "figure 3")
    with pytest.raises(StorageError, match="figure 3"):
        run_coverage(tmp_path, SETTINGS, tasks=TASKS)


def test_the_folder_of_another_task_of_the_same_name_is_refused(tmp_path):
    claim(tmp_path, [chain(length=11, limit=-2)])
    with pytest.raises(StorageError, match="tasks"):
        run_coverage(tmp_path, SETTINGS, tasks=[chain(length=21, limit=-3)])


@pytest.mark.usefixtures("few_methods")
def test_two_tasks_of_one_name_are_not_mixed_up(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "prepare", lambda task, settings: SimpleNamespace(task=task))
    monkeypatch.setattr(
        coverage, "run_cell", lambda cell, *_: [{"states": cell.task.number_of_states}]
    )
    monkeypatch.setattr(coverage, "write_csv", lambda *_: None)
    monkeypatch.setattr(
        coverage,
        "coverage_panels",
        lambda *_, **__: SimpleNamespace(savefig=lambda path, **_: path.touch()),
    )
    pair = [chain(length=11, limit=-2), chain(length=21, limit=-3)]
    try:
        rows = run_coverage(tmp_path, SETTINGS, tasks=pair)
    except StorageError:
        return
    assert [row["states"] for row in rows] == [11, 11, 21, 21]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"experiment": "cov',
        b"[]",
        b"\xff\xfe\x00",
    ],
)
def test_damaged_settings_are_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "settings.json").write_bytes(content)
    with pytest.raises(StorageError, match=r"settings\.json"):
        run_coverage(tmp_path, SETTINGS, tasks=TASKS)


def test_a_damaged_cell_is_an_error_that_names_the_file(tmp_path):
    claim(tmp_path, TASKS)
    cell = tmp_path / "cells" / f"{identity(TASKS[0]).replace(' ', '-')}-3.json"
    cell.parent.mkdir()
    cell.write_text('[{"task": "cha')
    with pytest.raises(StorageError, match=r"chain-x10-\w+-3\.json"):
        run_coverage(tmp_path, SETTINGS, tasks=TASKS)


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(StorageError, match="out"):
        run_coverage(tmp_path / "out", SETTINGS, tasks=TASKS)
    assert (tmp_path / "out").read_text() == "mine"
