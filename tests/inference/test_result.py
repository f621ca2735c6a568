"""Results on disk: bit for bit, whole or not at all, and never a raw traceback."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tacit
from tacit.environments.lab_tasks import chain
from tacit.errors import StorageError
from tacit.inference.counts.model import TabularConstraint
from tacit.inference.result import FILE, Result, load
from tacit.runs.array_file import read_arrays, write_arrays

CONSTRAINT_FIELDS = (
    "confidence",
    "reading",
    "budget",
    "number_of_actions",
    "rule_on",
    "any_confidence",
)
TASK_FIELDS = ("horizon", "temperature", "budget", "rule_on", "actions", "name")


def result_of(task, **settings):
    """A result as `infer` makes them, without the learning."""
    random = np.random.default_rng(0)
    queries = task.number_of_queries
    shape = (task.horizon, task.number_of_states)
    return Result(
        constraint=TabularConstraint(
            alpha=1 + random.random(queries),
            beta=1 + random.random(queries),
            confidence=0.7,
            reading="graded",
            budget=task.budget,
            number_of_actions=task.number_of_actions,
            rule_on=task.rule_on,
            any_confidence=False,
        ),
        policy=random.dirichlet(np.ones(task.number_of_actions), shape),
        metrics={"rounds": 3.0, "learned_cost": 0.1 + 0.2},
        settings={"method": "ca-icrl", "seed": 5, **settings},
        task=task,
    )


def random_task(seed, **changes):
    random = np.random.default_rng(seed)
    fields = {
        "transitions": random.dirichlet(np.full(7, 0.4), (7, 3)),
        "rewards": random.normal(size=(7, 3)),
        "costs": (random.random((7, 3)) < 0.3) * random.random((7, 3)),
        "initial": random.dirichlet(np.ones(7)),
        "horizon": 5,
    }
    return tacit.TabularTask(**{**fields, **changes})


@pytest.fixture
def result():
    return result_of(chain(length=7, limit=-1, horizon=4))


def same_bytes(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def check_same(found, result):
    assert same_bytes(found.policy, result.policy)
    assert same_bytes(found.constraint.alpha, result.constraint.alpha)
    assert same_bytes(found.constraint.beta, result.constraint.beta)
    for field in CONSTRAINT_FIELDS:
        assert getattr(found.constraint, field) == getattr(result.constraint, field)
    for field in TASK_FIELDS:
        assert getattr(found.task, field) == getattr(result.task, field)
    for field in ("rewards", "costs"):
        assert same_bytes(getattr(found.task, field), getattr(result.task, field))
    assert found.metrics == result.metrics
    assert found.settings == result.settings


def test_a_result_comes_back_bit_for_bit(result, tmp_path):
    path = result.save(tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / FILE
    found = load(tmp_path / "new" / "folder")
    check_same(found, result)
    for field in ("transitions", "initial", "positions"):
        assert same_bytes(getattr(found.task, field), getattr(result.task, field))


def test_what_infer_makes_comes_back_and_answers_the_same(tmp_path):
    task = chain(length=21, limit=-3, horizon=8, reward_scale=3)
    data = tacit.collect(tacit.train_expert(task), 20, seed=0)
    result = tacit.infer(task, data, confidence=0.8, seed=7)
    result.save(tmp_path)
    found = tacit.load(tmp_path)
    check_same(found, result)
    assert found.settings["versions"]["tacit"]
    np.testing.assert_array_equal(found.constraint.cost_map(0.6), result.constraint.cost_map(0.6))
    assert tacit.evaluate(found).violation.value == tacit.evaluate(result).violation.value


def test_a_rule_on_pairs_without_positions_and_names_comes_back(tmp_path):
    result = result_of(random_task(0))
    assert result.task.rule_on == "pair"
    result.save(tmp_path)
    found = load(tmp_path)
    check_same(found, result)
    assert found.task.positions is None
    assert found.task.actions is None


def test_the_dynamics_of_a_task_of_ones_own_come_back_bit_for_bit(tmp_path):
    for seed in range(5):
        result = result_of(random_task(seed))
        result.save(tmp_path)
        found = load(tmp_path)
        assert same_bytes(found.task.transitions, result.task.transitions)
        assert same_bytes(found.task.initial, result.task.initial)


@pytest.mark.parametrize(
    "make",
    [
        lambda: result_of(random_task(0, temperature=np.float32(0.5))),
        lambda: result_of(random_task(0, budget=np.float32(0.5))),
        lambda: result_of(random_task(0), seed=np.int64(3)),
    ],
    ids=["temperature", "budget", "seed"],
)
def test_numbers_of_numpy_can_be_saved_as_they_can_be_used(make, tmp_path):
    made = make()
    made.save(tmp_path)
    check_same(load(tmp_path), made)


def test_saving_again_replaces_the_old_result(result, tmp_path):
    result.save(tmp_path)
    other = result_of(random_task(1))
    other.save(tmp_path)
    check_same(load(tmp_path), other)
    assert [entry.name for entry in tmp_path.iterdir()] == [FILE]


def test_an_interrupted_write_leaves_the_old_result(result, tmp_path, monkeypatch):
    path = result.save(tmp_path)
    before = path.read_bytes()

    def broken(part, content):
        with part.open("wb") as file:
            file.write(content[:100])
        raise KeyboardInterrupt

    other = result_of(random_task(1))
    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(KeyboardInterrupt):
        other.save(tmp_path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [FILE]


def refuses(folder, *words):
    with pytest.raises(StorageError) as caught:
        load(folder)
    for word in (str(folder / FILE), *words):
        assert word in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    refuses(tmp_path, "no such file")
    refuses(tmp_path / "nowhere", "no such file")


def test_a_run_that_is_not_finished_is_told_from_one_that_is_not_there(tmp_path):
    (tmp_path / "settings.json").write_text("{}")
    refuses(tmp_path, "not finished")


def test_a_truncated_file_is_named_wherever_it_ends(result, tmp_path):
    path = result.save(tmp_path)
    whole = path.read_bytes()
    for kept in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        refuses(tmp_path, "damaged")


def test_random_bytes_are_named(tmp_path):
    random = np.random.default_rng(0)
    for size in (8, 100, 5000):
        (tmp_path / FILE).write_bytes(random.bytes(size))
        refuses(tmp_path, "damaged")


def test_a_file_of_another_kind_is_named(result, tmp_path):
    write_arrays(tmp_path / FILE, {"policy": result.policy}, {"kind": "something else"})
    refuses(tmp_path, "not a result")
    write_arrays(tmp_path / FILE, {"policy": result.policy}, {})
    refuses(tmp_path, "not a result")
    save_file({"policy": result.policy}, tmp_path / FILE)
    refuses(tmp_path)


@pytest.mark.parametrize("name", ["policy", "alpha", "beta", "task.transitions", "task.costs"])
def test_a_missing_array_is_named(result, tmp_path, name):
    arrays, header = read_arrays(result.save(tmp_path))
    arrays.pop(name)
    write_arrays(tmp_path / FILE, arrays, header)
    refuses(tmp_path, "incomplete", name.removeprefix("task."))


@pytest.mark.parametrize("part", ["constraint", "task", "metrics", "settings"])
def test_a_missing_part_of_the_header_is_named(result, tmp_path, part):
    arrays, header = read_arrays(result.save(tmp_path))
    header.pop(part)
    write_arrays(tmp_path / FILE, arrays, header)
    refuses(tmp_path, "incomplete", part)


def test_arrays_that_contradict_each_other_are_named_with_the_file(result, tmp_path):
    arrays, header = read_arrays(result.save(tmp_path))
    arrays["task.transitions"] = arrays["task.transitions"] * 2
    write_arrays(tmp_path / FILE, arrays, header)
    refuses(tmp_path)


@pytest.mark.parametrize("name", ["policy", "alpha", "beta"])
def test_arrays_that_do_not_fit_the_task_are_named_with_the_file(result, tmp_path, name):
    arrays, header = read_arrays(result.save(tmp_path))
    arrays[name] = arrays[name][:-1]
    write_arrays(tmp_path / FILE, arrays, header)
    refuses(tmp_path)


def test_a_header_that_is_not_a_record_is_named(result, tmp_path):
    metadata = {"tacit": json.dumps(["tacit result"])}
    save_file({"policy": result.policy}, tmp_path / FILE, metadata=metadata)
    refuses(tmp_path)
