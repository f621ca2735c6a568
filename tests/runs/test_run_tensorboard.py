"""TensorBoard sees what metrics.jsonl has, once."""

import sys

import numpy as np
import pytest

from tacit.runs.run_folder import RunFolder

SETTINGS = {"seed": 1}
LIKE = {"steps": 0}


def events(path):
    """{tag: [(step, value)]} as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    reader = EventAccumulator(str(path / "tensorboard"), size_guidance={"tensors": 0})
    reader.Reload()
    return {
        tag: [(one.step, make_ndarray(one.tensor_proto).item()) for one in reader.Tensors(tag)]
        for tag in reader.Tags()["tensors"]
    }


def as_events(lines):
    """The same from the lines of metrics.jsonl, in the precision that TensorBoard has."""
    found = {}
    for line in lines:
        for name, value in line.items():
            if name != "steps":
                found.setdefault(name, []).append((line["steps"], float(np.float32(value))))
    return found


def advance(folder, first, last):
    for steps in range(first, last + 1):
        line = {"steps": 100 * steps, "loss/policy": 1 / steps, "episodes": steps}
        folder.record(line if steps % 3 else {**line, "violation": 0.25})


def test_events_equal_the_metrics_at_once_and_after_the_end(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 7)
        assert events(tmp_path) == as_events(folder.metrics())
    found = events(tmp_path)
    assert set(found) == {"loss/policy", "episodes", "violation"}
    assert found == as_events(folder.metrics())


def test_no_step_is_there_twice_after_a_run_was_continued(tmp_path):
    for first in (1, 4, 7):
        with RunFolder.open(tmp_path, SETTINGS) as folder:
            folder.latest(LIKE)
            assert events(tmp_path) == as_events(folder.metrics()) if first > 1 else True
            advance(folder, first, first + 2)
            folder.save({"steps": first + 2})
            advance(folder, first + 3, first + 5)
    found = events(tmp_path)
    assert [step for step, _ in found["episodes"]] == [100 * n for n in range(1, 13)]
    assert found == as_events(folder.metrics())
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.latest(LIKE)
        assert len(folder.metrics()) == 9
        assert events(tmp_path) == as_events(folder.metrics())
        assert folder.notices == []
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


def test_a_run_that_begins_again_has_no_old_events(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 2)
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert folder.latest(LIKE) is None
        assert events(tmp_path) == {}


def test_numbers_beyond_single_precision_do_not_stop_tensorboard(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.record({"steps": 1, "large": 1e300})
        folder.record({"steps": 2, "large": 1.0})
        assert folder.notices == []
    assert events(tmp_path) == {"large": [(1, float("inf")), (2, 1.0)]}


@pytest.mark.parametrize("what", ["folder", "writer", "module"])
def test_a_failing_tensorboard_is_noticed_once_and_the_run_goes_on(tmp_path, monkeypatch, what):
    def broken(*arguments, **options):
        raise ValueError("broken")

    if what == "folder":
        (tmp_path / "tensorboard").write_text("in the way")
    elif what == "writer":
        monkeypatch.setattr("tensorboard.summary.Writer.add_scalar", broken)
    else:
        monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 3)
        folder.save({"steps": 3})
        assert len(folder.metrics()) == 3
    (notice,) = folder.notices
    assert "tensorboard: TensorBoard's events cannot be written" in notice
    monkeypatch.undo()
    if what == "folder":
        (tmp_path / "tensorboard").unlink()
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.latest(LIKE)
        assert events(tmp_path) == as_events(folder.metrics())
        assert folder.notices == []
