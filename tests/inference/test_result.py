"""Results on disk: bit for bit, whole or not at all, and never a raw traceback."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tacit
from tacit.control.actor import Actor
from tacit.control.settings import PPO
from tacit.control.table_policy import TablePolicy
from tacit.environments.lab_tasks import chain
from tacit.errors import StorageError
from tacit.inference.constraint import Constraint
from tacit.inference.counts.model import TableModel
from tacit.inference.result import CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE, Result, load
from tacit.runs.files import read_arrays, write_arrays

FILES = {CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE}
MODEL_FIELDS = ("reading", "budget", "number_of_actions", "rule_on")
TASK_FIELDS = ("horizon", "temperature", "budget", "rule_on", "actions", "name")


def result_of(task, **settings):
    """A result as `infer` makes them, without the learning."""
    random = np.random.default_rng(0)
    queries = task.number_of_queries
    shape = (task.horizon, task.number_of_states)
    model = TableModel(
        alpha=1 + random.random(queries),
        beta=1 + random.random(queries),
        reading="graded",
        budget=float(task.budget),
        number_of_actions=task.number_of_actions,
        rule_on=task.rule_on,
    )
    return Result(
        constraint=Constraint(model, 0.7, model.spaces(), False, names=("state",)),
        policy=TablePolicy(random.dirichlet(np.ones(task.number_of_actions), shape)),
        metrics={"rounds": 3.0, "learned_cost": 0.1 + 0.2},
        settings={"method": "counts", "confidence": 0.7, "seed": 5, **settings},
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
    assert same_bytes(found.policy.table, result.policy.table)
    assert same_bytes(found.training, result.training)
    one, other = found.constraint, result.constraint
    assert same_bytes(one.model.alpha, other.model.alpha)
    assert same_bytes(one.model.beta, other.model.beta)
    for field in MODEL_FIELDS:
        assert getattr(one.model, field) == getattr(other.model, field)
    for field in ("confidence", "any_confidence", "spaces", "facts", "threshold", "names"):
        assert getattr(one, field) == getattr(other, field)
    for field in TASK_FIELDS:
        assert getattr(found.task, field) == getattr(result.task, field)
    for field in ("rewards", "costs"):
        assert same_bytes(getattr(found.task, field), getattr(result.task, field))
    assert found.metrics == result.metrics
    assert found.settings == result.settings


def test_a_result_comes_back_bit_for_bit(result, tmp_path):
    path = result.save(tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / SUMMARY_FILE
    assert {entry.name for entry in path.parent.iterdir()} == FILES
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
    for ask in ("cost", "feasibility"):
        one, other = (
            getattr(rule.constraint, ask)(np.arange(21), 0, 0.6) for rule in (found, result)
        )
        assert same_bytes(one, other)
    assert found.constraint.rules(0.9) == result.constraint.rules(0.9)
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
    assert {entry.name for entry in tmp_path.iterdir()} == FILES


@pytest.mark.parametrize("name", sorted(FILES))
def test_an_interrupted_write_leaves_the_old_file(result, tmp_path, monkeypatch, name):
    result.save(tmp_path)
    before = (tmp_path / name).read_bytes()
    whole = Path.write_bytes

    def broken(part, content):
        if name not in part.name:
            return whole(part, content)
        with part.open("wb") as file:
            file.write(content[:100])
        raise KeyboardInterrupt

    other = result_of(random_task(1))
    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(KeyboardInterrupt):
        other.save(tmp_path)
    assert (tmp_path / name).read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir()} == FILES


def refuses(folder, *words, file=SUMMARY_FILE):
    with pytest.raises(StorageError) as caught:
        load(folder)
    for word in (str(folder / file), *words):
        assert word in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    refuses(tmp_path, "no such file")
    refuses(tmp_path / "nowhere", "no such file")


def test_a_run_that_is_not_finished_is_told_from_one_that_is_not_there(tmp_path):
    (tmp_path / "settings.json").write_text("{}")
    refuses(tmp_path, "not finished")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_truncated_file_is_named_wherever_it_ends(result, tmp_path, name):
    result.save(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    for kept in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        refuses(tmp_path, "damaged", file=name)


@pytest.mark.parametrize("name", sorted(FILES))
def test_random_bytes_are_named(result, tmp_path, name):
    result.save(tmp_path)
    random = np.random.default_rng(0)
    for size in (8, 100, 5000):
        (tmp_path / name).write_bytes(random.bytes(size))
        refuses(tmp_path, "damaged", file=name)


@pytest.mark.parametrize("name", [CONSTRAINT_FILE, POLICY_FILE])
def test_a_part_that_is_missing_or_of_another_kind_is_named(result, tmp_path, name):
    result.save(tmp_path)
    (tmp_path / name).unlink()
    refuses(tmp_path, "no such file", file=name)
    write_arrays(tmp_path / name, {"table": result.policy.table}, {"kind": "something else"})
    refuses(tmp_path, file=name)


def test_a_file_of_another_kind_is_named(result, tmp_path):
    write_arrays(
        tmp_path / SUMMARY_FILE, {"policy": result.policy.table}, {"kind": "something else"}
    )
    refuses(tmp_path, "not a result")
    write_arrays(tmp_path / SUMMARY_FILE, {"policy": result.policy.table}, {})
    refuses(tmp_path, "not a result")
    save_file({"policy": result.policy.table}, tmp_path / SUMMARY_FILE)
    refuses(tmp_path)


@pytest.mark.parametrize("name", ["training", "task.transitions", "task.costs"])
def test_a_missing_array_is_named(result, tmp_path, name):
    arrays, header = read_arrays(result.save(tmp_path))
    arrays.pop(name)
    write_arrays(tmp_path / SUMMARY_FILE, arrays, header)
    refuses(tmp_path, "incomplete", name.removeprefix("task."))


@pytest.mark.parametrize("part", ["metrics", "settings"])
def test_a_missing_part_of_the_header_is_named(result, tmp_path, part):
    arrays, header = read_arrays(result.save(tmp_path))
    header.pop(part)
    write_arrays(tmp_path / SUMMARY_FILE, arrays, header)
    refuses(tmp_path, "incomplete", part)


@pytest.mark.parametrize("setting", ["method", "confidence"])
def test_a_missing_setting_is_named(result, tmp_path, setting):
    arrays, header = read_arrays(result.save(tmp_path))
    header["settings"].pop(setting)
    write_arrays(tmp_path / SUMMARY_FILE, arrays, header)
    refuses(tmp_path, "incomplete", setting)


def test_a_table_that_is_missing_altogether_is_named(result, tmp_path):
    arrays, header = read_arrays(result.save(tmp_path))
    header.pop("task")
    write_arrays(tmp_path / SUMMARY_FILE, arrays, header)
    refuses(tmp_path, "incomplete", "task")


def test_arrays_that_contradict_each_other_are_named_with_the_file(result, tmp_path):
    arrays, header = read_arrays(result.save(tmp_path))
    arrays["task.transitions"] = arrays["task.transitions"] * 2
    write_arrays(tmp_path / SUMMARY_FILE, arrays, header)
    refuses(tmp_path)


def test_parts_that_do_not_belong_together_are_named_with_the_file(result, tmp_path):
    other = result_of(chain(length=9, limit=-1, horizon=4))
    result.save(tmp_path)
    other.constraint.save(tmp_path / CONSTRAINT_FILE)
    refuses(tmp_path, "9 states", "7 and", file=CONSTRAINT_FILE)
    result.save(tmp_path)
    other.policy.save(tmp_path / POLICY_FILE)
    refuses(tmp_path, "[4, 9, 3]", "[4, 7, 3]", file=POLICY_FILE)


def test_a_header_that_is_not_a_record_is_named(result, tmp_path):
    metadata = {"tacit": json.dumps(["tacit result"])}
    save_file({"policy": result.policy.table}, tmp_path / SUMMARY_FILE, metadata=metadata)
    refuses(tmp_path)


@pytest.mark.parametrize("kind", ["tacit result", "tacit simulated result"])
@pytest.mark.parametrize("versions", [{"tacit": "0.1.0", "jax": "0.7"}, None, "lost"])
def test_a_result_of_before_is_refused_with_the_version_that_wrote_it(tmp_path, kind, versions):
    settings = {"method": "ca-icrl", "objective": "counts"}
    if versions is not None:
        settings["versions"] = versions
    header = {"kind": kind, "metrics": {}, "settings": settings}
    write_arrays(tmp_path / SUMMARY_FILE, {"training": np.zeros((0, 4))}, header)
    writer = "0.1.0" if isinstance(versions, dict) else "before 0.2"
    refuses(tmp_path, f"written by tacit {writer} in a form that is no longer read; infer again")
    result_of(chain(length=7, limit=-1, horizon=4)).constraint.save(tmp_path / CONSTRAINT_FILE)
    refuses(tmp_path, f"tacit.Constraint.load still reads {tmp_path / CONSTRAINT_FILE}")


def test_a_table_and_a_simulator_have_one_kind_of_result_and_of_constraint(tmp_path):
    """A method that acts runs on a table too: what it gives is loaded and judged alike."""
    task = chain(length=11, limit=-2, horizon=8, reward_scale=3)
    data = tacit.collect(tacit.train_expert(task), 6, seed=0)
    exact = tacit.infer(task, data, folder=tmp_path / "exact")
    quick = {"hidden": (8,), "passes": 2, "minibatch": 16, "rows": 32, "rounds": 3}
    acted = tacit.infer(
        task,
        data,
        method=tacit.methods.VICRL(**quick),
        forward=PPO(steps=4 * 16 * 4, worlds=4, rollout=16, minibatch=32, epochs=2, hidden=(8,)),
        folder=tmp_path / "acted",
    )
    for result, name, policy in ((exact, "counts", TablePolicy), (acted, "vicrl", Actor)):
        folder = tmp_path / ("exact" if result is exact else "acted")
        back = tacit.load(folder)
        for one in (result, back):
            assert type(one) is tacit.Result
            assert type(one.constraint) is tacit.Constraint
            assert isinstance(one.policy, policy)
            assert isinstance(one.task, tacit.TabularTask)
            assert one.method == name
        for field in ("transitions", "rewards", "costs", "initial"):
            assert same_bytes(getattr(back.task, field), getattr(task, field))
        np.testing.assert_array_equal(back.training, result.training)
        assert back.metrics == result.metrics
        assert tacit.evaluate(back, episodes=6) == tacit.evaluate(result, episodes=6)
    assert len(exact.training) == 0 < len(acted.training)
    places = np.eye(12, dtype=np.float32)[:11]
    back = tacit.load(tmp_path / "acted")
    assert same_bytes(
        back.constraint.cost(places, 0 * places[:, 0].astype(int)),
        acted.constraint.cost(places, 0 * places[:, 0].astype(int)),
    )
    action, state = back.policy.predict(places[3])
    assert state is None
    assert np.asarray(action).shape == ()
    np.testing.assert_array_equal(action, acted.policy.predict(places[3])[0])
    assert back.policy.predict(places)[0].shape == (11,)
    action, step = tacit.load(tmp_path / "exact").policy.predict(5)
    assert (int(action), int(step)) == (int(exact.policy.table[0, 5].argmax()), 1)
