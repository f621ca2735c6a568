"""JSON files appear whole, and say which one is damaged."""

import numpy as np
import pytest

from tacit.errors import StorageError
from tacit.runs.files import plain, read_json, write_json


def test_what_is_written_is_read(tmp_path):
    content = [{"a": 1, "words": "λ ≥ 0.8", "nested": {"none": None, "numbers": [0.1, 2]}}]
    write_json(tmp_path / "new" / "a.json", content)
    assert read_json(tmp_path / "new" / "a.json") == content
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.json"]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "a.json").write_text('{"a": ')
    for name in ("a.json", "missing.json"):
        with pytest.raises(StorageError, match=rf"{name}: damaged or not readable.*remove it"):
            read_json(tmp_path / name)


def test_what_json_cannot_hold_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert read_json(tmp_path / "a.json") == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_only_scalars_of_numpy_become_plain():
    assert plain(np.float32(0.5)) == 0.5
    assert type(plain(np.int64(3))) is int
    with pytest.raises(TypeError, match="ndarray cannot be written"):
        plain(np.zeros(2))
