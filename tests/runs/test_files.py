"""Arrays and facts in one file."""

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tacit.errors import StorageError
from tacit.runs.files import read_arrays, write_arrays

ARRAYS = {
    "real": np.random.default_rng(0).normal(size=(3, 4)),
    "odd": np.array([0.1, -0.0, 5e-324, np.inf, -np.inf, np.nan]),
    "single": np.float32([1.5, 2.5]),
    "whole": np.arange(6).reshape(2, 3),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3)),
    "scalar": np.array(0.1),
}
HEADER = {"kind": "test", "number": 0.1, "nested": {"list": [1, 2, None]}, "word": "\u00e4 \u2265"}


def test_arrays_and_header_come_back_bit_for_bit(tmp_path):
    path = write_arrays(tmp_path / "a.safetensors", ARRAYS, HEADER)
    arrays, header = read_arrays(path)
    assert header == HEADER
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()


def test_views_are_written_as_they_look(tmp_path):
    square = np.arange(12.0).reshape(3, 4)
    views = {"turned": square.T, "reversed": square[::-1], "thin": square[:, ::2]}
    arrays, _ = read_arrays(write_arrays(tmp_path / "a.safetensors", views, {}))
    for name, view in views.items():
        np.testing.assert_array_equal(arrays[name], view)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    one = write_arrays(tmp_path / "one", ARRAYS, {"a": 1, "b": 2})
    other = write_arrays(tmp_path / "two", ARRAYS, {"b": 2, "a": 1})
    assert one.read_bytes() == other.read_bytes()


def test_missing_folders_are_made_and_nothing_else_is_left_in_them(tmp_path):
    path = write_arrays(tmp_path / "deep" / "er" / "a.safetensors", ARRAYS, {})
    assert list(path.parent.iterdir()) == [path]


def test_a_file_where_a_folder_should_be_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"file.*a\.safetensors"):
        write_arrays(tmp_path / "file" / "a.safetensors", ARRAYS, {})


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, error):
    path = write_arrays(tmp_path / "a.safetensors", ARRAYS, HEADER)
    before = path.read_bytes()

    def broken(part, content):
        with part.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise error

    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises((KeyboardInterrupt, StorageError)):
        write_arrays(path, {}, {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_crash_before_the_file_is_renamed_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_arrays(tmp_path / "a.safetensors", ARRAYS, HEADER)

    def crash(source, target):
        raise OSError("the power went out")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(StorageError, match="power"):
        write_arrays(path, {"real": np.zeros(1)}, {})
    monkeypatch.undo()
    arrays, header = read_arrays(path)
    assert header == HEADER
    assert arrays["real"].tobytes() == ARRAYS["real"].tobytes()


def test_a_failure_inside_the_writer_is_an_error_of_storage(tmp_path, monkeypatch):
    def broken(part, content):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(StorageError, match=r"a\.safetensors.*Input/output"):
        write_arrays(tmp_path / "a.safetensors", ARRAYS, {})
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_in_the_header_come_back_as_plain_ones(tmp_path):
    numbers = {"real": np.float32(0.5), "whole": np.int64(3), "flag": np.bool_(True)}
    _, header = read_arrays(write_arrays(tmp_path / "a.safetensors", {}, {"nested": [numbers]}))
    assert header == {"nested": [{"real": 0.5, "whole": 3, "flag": True}]}
    assert [type(value) for value in header["nested"][0].values()] == [bool, float, int]


def test_a_header_that_json_cannot_hold_leaves_the_old_file(tmp_path):
    path = write_arrays(tmp_path / "a.safetensors", ARRAYS, HEADER)
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        write_arrays(path, {}, {"odd": {1, 2}})
    assert read_arrays(path)[1] == HEADER
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [0, 5, 8, 64, 4096])
def test_random_bytes_are_an_error_that_names_the_file(tmp_path, size):
    path = tmp_path / "a.safetensors"
    path.write_bytes(np.random.default_rng(size).bytes(size))
    with pytest.raises(StorageError, match=r"a\.safetensors: damaged"):
        read_arrays(path)


def test_a_file_of_somebody_else_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    for metadata in (None, {"tacit": "{not json"}, {"other": "{}"}):
        save_file({"x": np.zeros(3)}, path, metadata=metadata)
        with pytest.raises(StorageError, match=r"a\.safetensors"):
            read_arrays(path)


def test_a_missing_file_or_a_folder_is_an_error_that_names_it(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(StorageError, match="no such file"):
            read_arrays(path)
