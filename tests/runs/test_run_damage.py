"""What happens to a run when files are damaged, the disk is full, or it cannot be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tacit.runs.metrics_file
from tacit.errors import StorageError
from tacit.runs.run_folder import RunFolder
from tacit.runs.tree_file import write_tree

SETTINGS = {"seed": 1}
CURRENT, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"


def state(number):
    return {"weights": np.full(500, float(number)), "steps": number}


LIKE = state(0)


def advance(folder, first, last):
    for steps in range(first, last + 1):
        folder.record({"steps": steps, "loss": 1 / steps})
        folder.save(state(steps), steps=steps)


@pytest.fixture
def run(tmp_path):
    """A run with checkpoints after 2 and 3 steps."""
    with RunFolder.open(tmp_path, SETTINGS) as folder:
        advance(folder, 1, 3)
    return tmp_path


def damage(path, how):
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["cut", "empty", "flipped", "missing"])
def test_the_previous_checkpoint_takes_the_place_of_a_damaged_one(run, how):
    damage(run / CURRENT, how)
    with RunFolder.open(run, SETTINGS) as folder:
        saved = folder.latest(LIKE)
        assert saved.facts == {"steps": 2}
        assert saved.tree["weights"].tolist() == [2.0] * 500
        assert [line["steps"] for line in folder.metrics()] == [1, 2]
        (notice,) = folder.notices
        assert notice.startswith(f"{run / CURRENT}: {'is missing' if how == 'missing' else 'dama'}")
        assert notice.endswith(f"; continued from {PREVIOUS} instead")
        # The next save must not let the damaged file take the place of the good one.
        folder.save(state(9))
    damage(run / CURRENT, "cut")
    with RunFolder.open(run, SETTINGS) as folder:
        assert folder.latest(LIKE).tree["steps"] == 2


def test_two_damaged_checkpoints_are_an_error_that_names_both(run):
    damage(run / CURRENT, "cut")
    damage(run / PREVIOUS, "flipped")
    before = (run / "metrics.jsonl").read_bytes()
    with RunFolder.open(run, SETTINGS) as folder:
        with pytest.raises(StorageError, match="no checkpoint can be read") as caught:
            folder.latest(LIKE)
        assert str(run / CURRENT) in str(caught.value)
        assert str(run / PREVIOUS) in str(caught.value)
        with pytest.raises(StorageError, match="call latest"):
            folder.save(state(4))
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_damaged_checkpoint_alone_is_an_error_and_not_a_new_beginning(run):
    damage(run / CURRENT, "cut")
    damage(run / PREVIOUS, "missing")
    with (
        RunFolder.open(run, SETTINGS) as folder,
        pytest.raises(StorageError, match="no checkpoint can be read"),
    ):
        folder.latest(LIKE)


def test_another_tree_is_an_error_and_the_previous_checkpoint_is_not_tried(run):
    before = {path: path.read_bytes() for path in run.glob("*.*")}
    with RunFolder.open(run, SETTINGS) as folder:
        with pytest.raises(StorageError, match=r"'weights'\] is float64\[500\] there and float64"):
            folder.latest({**LIKE, "weights": np.zeros(3)})
        assert folder.notices == []
    assert {path: path.read_bytes() for path in run.glob("*.*")} == before


def test_a_tree_that_no_run_wrote_is_no_checkpoint(run):
    write_tree(run / CURRENT, LIKE, {})
    with RunFolder.open(run, SETTINGS) as folder:
        assert folder.latest(LIKE).tree["steps"] == 2
        assert "not a checkpoint of a run" in folder.notices[0]


def full(part, content):
    with part.open("wb") as file:
        file.write(content[: len(content) // 2])
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_both_checkpoints_and_the_run_can_go_on(run, monkeypatch):
    before = {name: (run / name).read_bytes() for name in (CURRENT, PREVIOUS)}
    with RunFolder.open(run, SETTINGS) as folder:
        folder.latest(LIKE)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", full)
            for _ in range(3):
                with pytest.raises(StorageError, match=r"No space left.*free space"):
                    folder.save(state(4))
        assert {name: (run / name).read_bytes() for name in before} == before
        assert not list(run.glob(".*.part"))
        assert folder.latest(LIKE).tree["steps"] == 3
        advance(folder, 4, 4)
        assert folder.latest(LIKE).tree["steps"] == 4


@pytest.mark.parametrize("failing", ["link", "both"])
def test_file_systems_without_links_and_failing_renames(run, monkeypatch, failing):
    def broken(*paths):
        raise OSError(1, "Operation not permitted")

    with RunFolder.open(run, SETTINGS) as folder:
        folder.latest(LIKE)
        with monkeypatch.context() as patch:
            patch.setattr(os, "link", broken)
            if failing == "both":
                patch.setattr(os, "replace", broken)
                with pytest.raises(StorageError, match="not permitted"):
                    folder.save(state(4))
            else:
                folder.save(state(4))
        assert folder.latest(LIKE).tree["steps"] == (3 if failing == "both" else 4)
        damage(run / CURRENT, "cut")
        assert folder.latest(LIKE).tree["steps"] == (2 if failing == "both" else 3)


def test_a_crash_between_the_two_renames_does_no_harm(run, monkeypatch):
    """Both names then belong to one file, which renaming treats as nothing to do."""
    replace = os.replace

    def crash(source, target):
        if Path(source).name == "checkpoint.next.safetensors":
            raise KeyboardInterrupt
        replace(source, target)

    with RunFolder.open(run, SETTINGS) as folder:
        folder.latest(LIKE)
        monkeypatch.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            folder.save(state(4))
        monkeypatch.undo()
    assert os.path.samefile(run / CURRENT, run / PREVIOUS)
    with RunFolder.open(run, SETTINGS) as folder:
        assert not (run / "checkpoint.next.safetensors").exists()
        assert folder.latest(LIKE).tree["steps"] == 3
        advance(folder, 4, 4)
        assert not list(run.glob(".*.part"))
        damage(run / CURRENT, "cut")
        assert folder.latest(LIKE).tree["steps"] == 3


def test_leftovers_of_a_killed_process_are_removed(run):
    for name in (".checkpoint.next.safetensors.1f.part", ".settings.json.2e.part"):
        (run / name).write_text("half")
    (run / ".mine.part").write_text("not ours")
    with RunFolder.open(run, SETTINGS):
        assert [path.name for path in run.glob(".*.part")] == [".mine.part"]


def test_a_line_of_metrics_that_does_not_fit_leaves_no_trace(run, monkeypatch):
    def half(file, content):
        file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    with RunFolder.open(run, SETTINGS) as folder:
        folder.latest(LIKE)
        with monkeypatch.context() as patch:
            patch.setattr(tacit.runs.metrics_file, "write_all", half)
            with pytest.raises(StorageError, match=r"metrics\.jsonl: cannot be written.*No space"):
                folder.record({"steps": 4, "loss": 0.5})
        advance(folder, 4, 4)
        assert [line["steps"] for line in folder.metrics()] == [1, 2, 3, 4]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_to_write_is_an_error(run):
    run.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="cannot be used as the folder of a run"):
            RunFolder.open(run / "new", SETTINGS)
    finally:
        run.chmod(0o700)


PROGRAM = """
import os, resource, subprocess, sys
import numpy as np
from tacit.errors import StorageError
from tacit.runs.run_folder import RunFolder

assert "tensorboard" not in sys.modules  # it is slow to import, so only the first record does
kind, place = sys.argv[1:]
path = os.path.join(place, "run")

def state(number, size):
    return {"weights": np.full(size, float(number)), "steps": number}

def expect(action):
    try:
        action()
    except StorageError as error:
        return str(error)
    raise AssertionError("no error")

with RunFolder.open(path, {"seed": 1}) as folder:
    folder.record({"steps": 1, "loss": 1.0})
    folder.save(state(1, 100))
    folder.save(state(2, 100))
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    problem = expect(lambda: folder.save(state(3, 100_000)))
    assert "checkpoint" in problem and ("too large" in problem or "No space" in problem), problem
    assert folder.latest(state(0, 100)).tree["steps"] == 2
    steps, problem = 2, None
    while problem is None:  # until not even a line of metrics fits
        try:
            folder.record({"steps": steps} | {f"quantity {n}": float(n) for n in range(200)})
            steps += 1
        except StorageError as error:
            problem = str(error)
    assert "metrics.jsonl" in problem, problem
    assert [line["steps"] for line in folder.metrics()] == list(range(1, steps))
if kind == "disk":
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    assert "Read-only" in expect(lambda: RunFolder.open(path, {"seed": 1}))
    assert "Read-only" in expect(lambda: RunFolder.open(path + "/new", {"seed": 1}))
    subprocess.run(["mount", "-o", "remount,rw", place], check=True)
with RunFolder.open(path, {"seed": 1}) as folder:
    assert folder.latest(state(0, 100)).tree["steps"] == 2
    assert [line["steps"] for line in folder.metrics()] == [1]
print("kept", steps)
"""


def run_program(kind, place, *prefix):
    command = [*prefix, sys.executable, "-c", PROGRAM, kind, str(place)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(os.name == "nt", reason="there are no such limits")
def test_files_that_may_not_grow_leave_the_last_checkpoint(tmp_path):
    done = run_program("limit", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kept")


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a mount of its own")
def test_a_disk_that_is_really_full_or_read_only_leaves_the_last_checkpoint(tmp_path):
    own = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    mount = f"mount -t tmpfs -o size=128k none '{tmp_path}'"
    if subprocess.run([*own, mount], capture_output=True).returncode != 0:
        pytest.skip("a mount of its own is not permitted here")
    done = run_program("disk", tmp_path, *own, f'{mount} && exec "$@"', "sh")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kept")
