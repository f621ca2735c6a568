import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numbers

from tacit.demonstrations import checks
from tacit.demonstrations.trajectories import Trajectories, check_destination
from tacit.errors import ArgumentError

NUMBERS = {
    np.int64: st.integers(-(2**63), 2**63 - 1),
    np.float32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    np.float64: st.floats(allow_nan=False, allow_infinity=False),
}


@st.composite
def fields(draw, kinds=tuple(NUMBERS)):
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    sizes = st.integers(1, 3)

    def arrays(kind, extra, *shape):
        elements = NUMBERS[kind]
        return [
            draw(numbers.arrays(kind, (steps + extra, *shape), elements=elements))
            for steps in lengths
        ]

    real = [kind for kind in kinds if kind is not np.int64]
    rewards = draw(st.sampled_from(real))
    return {
        "observations": arrays(draw(st.sampled_from(kinds)), 1, draw(sizes)),
        "actions": arrays(draw(st.sampled_from(kinds)), 0, draw(sizes)),
        "rewards": arrays(rewards, 0),
        "costs": arrays(rewards, 0) if draw(st.booleans()) else None,
        "terminated": [draw(st.booleans()) for _ in lengths],
        "provenance": draw(st.dictionaries(st.text(), st.integers() | st.text())),
    }


@pytest.mark.parametrize("name", ["experts.hdf5", "experts.h5", "experts", "folder/experts-v3"])
@settings(max_examples=25, deadline=None)
@given(given_fields=fields())
def test_saving_and_loading_changes_nothing(name, given_fields):
    original = Trajectories.from_arrays(**given_fields)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        original.save(path)
        loaded = Trajectories.load(path)
    assert loaded == original
    assert loaded.provenance == original.provenance


@settings(max_examples=25, deadline=None)
@given(given_fields=fields())
def test_npz_changes_nothing(given_fields):
    original = Trajectories.from_arrays(**given_fields)
    with tempfile.TemporaryDirectory() as folder:
        original.to_npz(Path(folder, "experts.npz"))
        loaded = Trajectories.from_npz(Path(folder, "experts.npz"))
    assert loaded == original
    assert loaded.provenance == original.provenance


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_csv_changes_no_number(precision, data):
    original = Trajectories.from_arrays(**data.draw(fields(kinds=(np.int64, precision))))
    with tempfile.TemporaryDirectory() as folder:
        original.to_csv(Path(folder, "experts.csv"))
        loaded = Trajectories.from_csv(Path(folder, "experts.csv"), precision=precision)
    assert loaded == original


@pytest.mark.parametrize("name", ["one.hdf5", "two.h5", "three.npz", "four.csv", "five-v0"])
def test_the_ending_tells_the_format(tmp_path, name):
    written = Trajectories.from_arrays([[[0.5], [1.5]]], [[[1]]], [[2.0]], [[1.0]])
    check_destination(tmp_path / name)
    written.save(tmp_path / name)
    loaded = Trajectories.load(tmp_path / name)
    assert type(loaded) is Trajectories
    assert loaded == written
    assert (tmp_path / name).is_dir() == (name == "five-v0")


def test_an_ending_of_another_format_is_refused(tmp_path):
    written = Trajectories.from_arrays([[[0.5], [1.5]]], [[[1]]], [[2.0]])
    for action in (written.save, check_destination):
        with pytest.raises(ArgumentError, match=r"parquet: the ending must be .hdf5, .npz, .csv"):
            action(tmp_path / "experts.parquet")
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_checked_once(tmp_path, monkeypatch):
    Trajectories.from_arrays([[[0.5], [1.5]]], [[[1.0]]], [[2.0]]).save(tmp_path / "experts.hdf5")
    checked = []
    monkeypatch.setattr(checks, "refuse_infinite", lambda _, field: checked.append(field))
    Trajectories.load(tmp_path / "experts.hdf5")
    assert checked == ["observations", "actions", "rewards"]
