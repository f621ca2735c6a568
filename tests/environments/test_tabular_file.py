"""A user's own task in an .npz file: read whole, or refused with the name of the file."""

import contextlib
import gc
import warnings
import zipfile

import numpy as np
import pytest

from tacit.environments.tabular import load_task
from tacit.errors import TaskError


def arrays(**changes):
    fields = {
        "transitions": np.full((3, 2, 3), 1 / 3),
        "rewards": np.array([0.0, 1.0, 2.0]),
        "costs": np.array([0.0, 0.0, 1.0]),
        "initial": np.array([1.0, 0.0, 0.0]),
        "horizon": np.array(4),
    }
    fields.update(changes)
    return {name: array for name, array in fields.items() if array is not None}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "warehouse.npz"


def refusal(path):
    """The one-line message with which the file is refused."""
    with pytest.raises(TaskError) as caught:
        load_task(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@contextlib.contextmanager
def files_left_open():
    """NumPy does not close damaged files at once; that must not be blamed on a later test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def test_needed_arrays_make_a_task_called_as_the_file(path):
    np.savez(path, **arrays())
    task = load_task(path)
    assert task.name == "warehouse"
    assert task.horizon == 4
    assert task.rule_on == "state"
    assert task.allowed.tolist() == [True, True, False]
    np.testing.assert_array_equal(task.rewards, np.repeat([[0.0], [1.0], [2.0]], 2, axis=1))


def test_text_will_do_for_the_name_of_the_file(path):
    np.savez_compressed(path, **arrays())
    assert load_task(str(path)).number_of_states == 3


def test_optional_arrays_are_read(path):
    positions = np.array([[0, 0], [0, 1], [1, 0]])
    np.savez(path, **arrays(temperature=0.5, budget=np.array([0.1]), positions=positions))
    task = load_task(path)
    assert (task.temperature, task.budget) == (0.5, 0.1)
    np.testing.assert_array_equal(task.positions, positions)


def test_a_rule_on_pairs_is_recognised(path):
    np.savez(path, **arrays(costs=np.array([[0, 0], [0, 1], [0, 0.0]])))
    assert load_task(path).rule_on == "pair"


@pytest.mark.parametrize("name", ["transitions", "rewards", "costs", "initial", "horizon"])
def test_a_missing_array_is_named_with_the_file(path, name):
    np.savez(path, **arrays(**{name: None}))
    assert f"{name} is missing" in refusal(path)


def test_an_unknown_array_is_named_with_what_there_may_be(path):
    np.savez(path, **arrays(reward=np.zeros(3)))
    message = refusal(path)
    assert "reward is not known" in message
    assert "temperature" in message


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("transitions", np.full((3, 2, 2), 0.5), "[S, A, S]"),
        ("transitions", np.full((3, 2, 3), 0.5), "sum to 1.5"),
        ("rewards", np.zeros(4), "rewards must have the shape"),
        ("rewards", np.array([0, np.nan, 0]), "rewards is nan at state 1"),
        ("costs", np.zeros((3, 5)), "costs must have the shape"),
        ("costs", np.array([0, -1.0, 0]), "negative"),
        ("costs", np.array(["a", "b", "c"]), "costs is not an array of numbers"),
        ("initial", np.ones(2) / 2, "initial must have the shape"),
        ("initial", np.zeros(3), "it sums to 0"),
        ("horizon", np.array([3, 4]), "horizon must be one number"),
        ("horizon", np.array(2.5), "whole number"),
        ("horizon", np.array(0), "at least 1"),
        ("horizon", np.array("long"), "whole number"),
        ("temperature", np.array(0.0), "positive"),
        ("budget", np.array(np.nan), "zero or more"),
        ("positions", np.zeros((3, 3), int), "[3, 2]"),
    ],
)
def test_a_wrong_array_is_named_with_the_file(path, name, wrong, expected):
    np.savez(path, **arrays(**{name: wrong}))
    message = refusal(path)
    assert name.rstrip("s") in message
    assert expected in message


def test_python_objects_are_refused(path):
    np.savez(path, **arrays(rewards=np.array([print, 1, 2], dtype=object)))
    assert "plain arrays" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 and no more"])
def test_what_is_no_archive_is_refused(path, content):
    path.write_bytes(content)
    assert "not an .npz file" in refusal(path)


def test_a_file_that_is_not_there_is_named(path):
    assert "no such file" in refusal(path)


def test_a_folder_is_refused(path):
    path.mkdir()
    assert "not an .npz file" in refusal(path)


def test_a_shortened_archive_is_refused(path):
    np.savez(path, **arrays())
    path.write_bytes(path.read_bytes()[:-40])
    assert "not an .npz file" in refusal(path)


def test_a_single_array_under_the_name_of_an_archive_is_refused(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with files_left_open():
        assert "not an .npz file" in refusal(path)


def test_a_compressed_archive_with_a_changed_byte_is_refused_or_read(path):
    np.savez_compressed(path, **arrays(transitions=np.tile(np.eye(30), (30, 1, 1))))
    content = path.read_bytes()
    escaped = set()
    with files_left_open():
        for place in range(40, len(content), 5):
            path.write_bytes(content[:place] + bytes([255 - content[place]]) + content[place + 1 :])
            try:
                load_task(path)
            except TaskError:
                continue
            except Exception as error:
                escaped.add(type(error).__name__)
    assert escaped == set()


@pytest.mark.parametrize("name", ["horizon", "rewards"])
def test_members_that_are_no_arrays_are_refused(path, name):
    np.savez(path, **arrays(**{name: None}))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"just text")
    refusal(path)
