"""A run in a folder: settings, metrics, checkpoints, and one writer at a time."""

import json
import os

import numpy as np
import pytest

import tacit.runs.run_folder
from tacit.errors import ArgumentError, StorageError
from tacit.runs import settings_file
from tacit.runs.metrics_file import read_metrics
from tacit.runs.run_folder import RunFolder

SETTINGS = {"seed": 1, "method": "ca-icrl", "policy": {"layers": [64, 64], "rate": 3e-4}}


def state(number):
    return {"weights": np.full(50, float(number)), "steps": number}


LIKE = state(0)


def advance(folder, first, last):
    """Record and save the steps from `first` to `last`."""
    for steps in range(first, last + 1):
        folder.record({"steps": steps, "loss": 1 / steps})
        folder.save(state(steps), steps=steps)


def test_a_new_folder_holds_settings_versions_and_nothing_else(tmp_path):
    with RunFolder.open(tmp_path / "a" / "b", SETTINGS, label="expert") as folder:
        assert folder.latest(LIKE) is None
        assert folder.metrics() == []
        assert folder.notices == []
    assert sorted(os.listdir(tmp_path / "a" / "b")) == [".lock", "settings.json"]
    found = json.loads((tmp_path / "a" / "b" / "settings.json").read_text())
    assert found == {
        "label": "expert",
        "settings": SETTINGS,
        "versions": settings_file.installed_versions(),
        "continued_with": [],
    }
    assert {"mujoco", "gymnasium", "equinox", "optax", "jax", "tacit"} <= set(found["versions"])


def test_a_run_continues_with_its_state_facts_and_metrics(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert folder.latest(LIKE) is None
        advance(folder, 1, 3)
        folder.record({"steps": 4, "loss": 0.1})
    before = (tmp_path / "settings.json").read_bytes()
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        saved = folder.latest(LIKE)
        assert saved.facts == {"steps": 3}
        assert saved.tree["steps"] == 3
        np.testing.assert_array_equal(saved.tree["weights"], np.full(50, 3.0))
        assert folder.metrics() == [{"steps": n, "loss": 1 / n} for n in (1, 2, 3)]
        advance(folder, 4, 5)
        assert [line["steps"] for line in folder.metrics()] == [1, 2, 3, 4, 5]
        assert folder.notices == []
    assert (tmp_path / "settings.json").read_bytes() == before


def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.record({"steps": 1, "loss": 0.5})
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert folder.latest(LIKE) is None
        assert folder.metrics() == []


def test_a_run_that_is_there_cannot_be_written_to_before_it_is_taken_up(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 1)
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        for write in (lambda: folder.record({"steps": 2}), lambda: folder.save(state(2))):
            with pytest.raises(StorageError, match=r"holds a run already; call latest\(like\)"):
                write()
        folder.latest(LIKE)
        advance(folder, 2, 2)


def test_going_back_within_a_run_undoes_what_came_after_the_checkpoint(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 2)
        folder.record({"steps": 3, "loss": 0.5})
        assert folder.latest(LIKE).tree["steps"] == 2
        advance(folder, 3, 3)
        assert [line["steps"] for line in folder.metrics()] == [1, 2, 3]


def test_a_closed_folder_cannot_be_used_and_can_be_closed_again(tmp_path):
    folder = RunFolder.open(tmp_path, SETTINGS)
    folder.close()
    folder.close()
    for use in (
        lambda: folder.record({"steps": 2}),
        lambda: folder.save(state(2)),
        lambda: folder.latest(LIKE),
    ):
        with pytest.raises(StorageError, match="was closed"):
            use()


def test_numbers_round_trip_through_the_metrics(tmp_path):
    numbers = {
        "steps": np.int64(7),
        "tenth": 0.1,
        "tiny": 5e-324,
        "large": 1.7976931348623157e308,
        "single": np.float32(0.1),
        "array": np.array([0.3]),
        "whole": 2**62 + 1,
        "flag": True,
    }
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.record(numbers)
        (found,) = folder.metrics()
        assert folder.notices == []
    plain = {name: getattr(value, "item", lambda v=value: v)() for name, value in numbers.items()}
    assert found == plain
    assert type(found["steps"]) is type(found["flag"]) is int


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"steps": 3, "loss": float("nan")}, "loss is nan after 3 steps"),
        ({"steps": 3, "loss": np.float32("-inf")}, "loss is -inf after 3 steps"),
        ({"steps": 3, "loss": 10**400}, "loss is 1000"),
        ({"steps": 3, "loss": "low"}, "loss is a str after 3 steps, not a number"),
        ({"steps": 3, "loss": None}, "loss is a NoneType"),
        ({"steps": 3, "loss": np.zeros(2)}, "loss is a ndarray"),
        ({"loss": 1.0}, "metrics without 'steps'"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 1.5}, "steps is 1.5"),
    ],
)
def test_what_is_not_a_finite_number_is_named_and_not_recorded(tmp_path, metrics, message):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.record({"steps": 1, "loss": 1.0})
        with pytest.raises(ArgumentError, match=message):
            folder.record(metrics)
        assert folder.metrics() == [{"steps": 1, "loss": 1.0}]


def test_a_half_written_last_line_is_left_out_and_cut_off(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 2)
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"steps": 3, "lo')
    assert len(read_metrics(path)) == 2
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        folder.latest(LIKE)
        assert path.read_bytes() == whole


def test_missing_lines_of_metrics_are_noticed(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 2)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-3])
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert folder.latest(LIKE).tree["steps"] == 2
        assert folder.metrics() == [{"steps": 1, "loss": 1.0}]
        (notice,) = folder.notices
        assert "metrics.jsonl: lines from before the checkpoint are missing" in notice


def test_a_damaged_line_of_metrics_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"steps": 1}\n{"st\n{"steps": 3}\n')
    with pytest.raises(StorageError, match=r"metrics\.jsonl: line 2 is damaged"):
        read_metrics(tmp_path / "metrics.jsonl")


def test_other_settings_are_an_error_that_names_each_field_and_both_values(tmp_path):
    RunFolder.open(tmp_path, SETTINGS).close()
    other = {"seed": 2, "method": "ca-icrl", "policy": {"layers": [64], "rate": 3e-4}, "new": None}
    before = (tmp_path / "settings.json").read_bytes()
    with pytest.raises(StorageError) as caught:
        RunFolder.open(tmp_path, other, label="expert")
    assert str(caught.value) == (
        f'{tmp_path}: holds a run with other settings: label: "run" there, "expert" here; '
        "seed: 1 there, 2 here; policy.layers: [64, 64] there, [64] here; "
        "new: absent there, null here; "
        "choose another folder, or the same settings to continue that run"
    )
    assert (tmp_path / "settings.json").read_bytes() == before
    RunFolder.open(tmp_path, SETTINGS).close()


def test_settings_that_json_writes_alike_are_the_same(tmp_path):
    one = {"rate": 1, "size": (1, 2), "odd": float("nan"), "number": np.int64(3)}
    RunFolder.open(tmp_path, one).close()
    before = (tmp_path / "settings.json").read_bytes()
    RunFolder.open(tmp_path, {"rate": 1.0, "size": [1, 2], "odd": np.nan, "number": 3}).close()
    assert (tmp_path / "settings.json").read_bytes() == before


def test_a_setting_that_json_cannot_hold_is_named(tmp_path):
    with pytest.raises(ArgumentError, match="the setting task cannot be written: object"):
        RunFolder.open(tmp_path, {"seed": 1, "task": object()})
    RunFolder.open(tmp_path, SETTINGS).close()


def test_other_versions_are_allowed_noticed_and_written_down(tmp_path, monkeypatch):
    RunFolder.open(tmp_path, SETTINGS).close()
    now = settings_file.installed_versions()
    monkeypatch.setattr(settings_file, "installed_versions", lambda: {**now, "jax": "99.0"})
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        (notice,) = folder.notices
    assert "continued with other versions" in notice
    assert f'jax: "{now["jax"]}" there, "99.0" here' in notice
    found = json.loads((tmp_path / "settings.json").read_text())
    assert found["versions"] == now
    assert found["continued_with"] == [{**now, "jax": "99.0"}]
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert folder.notices == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"label": "run"}', '{"label": 1}'])
def test_damaged_settings_are_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(StorageError, match=r"settings\.json: cannot be read, or is not what"):
        RunFolder.open(tmp_path, SETTINGS)


def test_checkpoints_without_settings_are_not_touched(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 1)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(StorageError, match=r"has a checkpoint but no settings\.json"):
        RunFolder.open(tmp_path, SETTINGS)


def test_a_file_in_the_place_of_the_folder_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(StorageError, match=r"file.*cannot be used as the folder of a run"):
            RunFolder.open(path, SETTINGS)


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    with RunFolder.open(tmp_path, SETTINGS):
        expected = rf"in use by another run \(process {os.getpid()} on .*\); wait until"
        with pytest.raises(StorageError, match=expected):
            RunFolder.open(tmp_path, SETTINGS)
    RunFolder.open(tmp_path, SETTINGS).close()


def test_where_there_are_no_locks_the_run_goes_on_with_a_notice(tmp_path, monkeypatch):
    def unsupported(number, operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(tacit.runs.run_folder.fcntl, "flock", unsupported)
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert "cannot be locked here" in folder.notices[0]
    monkeypatch.setattr(tacit.runs.run_folder, "fcntl", None)
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        assert "cannot be locked here" in folder.notices[0]
