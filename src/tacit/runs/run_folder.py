"""The folder of one run: what it was asked to do, how it went, and where to continue."""

import errno
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tacit.errors import StorageError
from tacit.runs.atomic_write import sync
from tacit.runs.metrics_file import Events, MetricsFile, check_metrics, read_metrics
from tacit.runs.settings_file import keep_settings
from tacit.runs.tree_file import Stored, read_stored, write_tree

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

SETTINGS = "settings.json"
METRICS = "metrics.jsonl"
EVENTS = "tensorboard"
LOCK = ".lock"
CHECKPOINT = "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"
NEXT = "checkpoint.next.safetensors"
DAMAGED = "checkpoint.damaged.safetensors"


@dataclass(frozen=True, eq=False)
class Saved:
    """A checkpoint as it was read: the state of the run, and what `save` was told about it."""

    tree: Any
    facts: dict[str, Any]


class FolderLock:
    """A lock held from creation to `release`, or until the operating system ends the process.

    The lock is on an open file, not on the file's existence, so that nothing has to be cleaned up
    after a crash, and the file stays where it is. Where there is no such lock (Windows, some
    network drives), `notice` says so and nothing is locked.
    """

    def __init__(self, path: Path):
        self.notice: str | None = None
        self.number: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self.take(path)
        except BaseException:
            self.release()
            raise

    def take(self, path: Path) -> None:
        """Lock the open file, or say who has locked it."""
        assert self.number is not None
        unlocked = f"{path.parent}: cannot be locked here; do not run two processes in it at once"
        if fcntl is None:
            self.notice = unlocked
            return
        try:
            fcntl.flock(self.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                owner = os.read(self.number, 300).decode(errors="replace").strip() or "unknown"
                raise StorageError(
                    f"{path.parent}: in use by another run ({owner}); "
                    "wait until it has ended, or choose another folder"
                ) from None
            self.notice = f"{unlocked} ({error})"
            return
        # Who has the lock is a courtesy to the reader of the message: it may fail (full disk).
        with suppress(OSError):
            os.ftruncate(self.number, 0)
            os.write(self.number, f"process {os.getpid()} on {socket.gethostname()}\n".encode())

    def release(self) -> None:
        """Let go of the lock; closing a file unlocks it."""
        if self.number is not None:
            if fcntl is not None:
                # Explicitly, since a forked child may have the same file open still.
                with suppress(OSError):
                    fcntl.flock(self.number, fcntl.LOCK_UN)
            os.close(self.number)
            self.number = None


class RunFolder:
    """A folder that one process at a time writes a run into, and that can be continued.

    A run that is killed at any moment continues from its last checkpoint as if it had not been:

        with RunFolder.open("runs/a", {"seed": 1}) as folder:
            saved = folder.latest(like=state)
            state = saved.tree if saved else state
            while ...:
                folder.record({"steps": steps, "reward": reward})
                folder.save(state, steps=steps)

    Fields:
        path: the folder.
        notices: sentences for the user about what was unexpected but did not stop the run.
    """

    def __init__(self, path: Path, lock: FolderLock, notices: list[str]):
        self.path = path
        self.notices = notices
        self.lock: FolderLock | None = lock
        self.recorded = MetricsFile(path / METRICS)
        self.events = Events(path / EVENTS, notices)
        # A run that is there already must be brought to its checkpoint by `latest` first.
        self.writable = not (self.recorded.path.exists() or has_checkpoint(path))

    @classmethod
    def open(cls, path: str | Path, settings: dict[str, Any], *, label: str = "run") -> Self:
        """Begin a run in a new folder, or open the one that is there to continue it.

        Args:
            path: the folder.
            settings: all that decides the numbers of the run, seeds among them; JSON-able. They
                must be those that the run in the folder began with.
            label: what kind of run this is, such as "expert"; compared like a setting.
        """
        path = Path(path)
        lock = None
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = FolderLock(path / LOCK)
            remove_leftovers(path)
            if has_checkpoint(path) and not (path / SETTINGS).exists():
                raise StorageError(
                    f"{path}: has a checkpoint but no {SETTINGS}, so that its settings are "
                    "unknown; choose another folder, or restore the file"
                )
            notices = keep_settings(path / SETTINGS, settings, label)
            return cls(path, lock, [lock.notice, *notices] if lock.notice else notices)
        except BaseException as error:
            if lock is not None:
                lock.release()
            if isinstance(error, OSError) and not isinstance(error, StorageError):
                raise StorageError(
                    f"{path}: cannot be used as the folder of a run ({error}); "
                    "check the path, its permissions and free space"
                ) from error
            raise

    def record(self, metrics: dict[str, Any]) -> None:
        """Append numbers to metrics.jsonl and to TensorBoard, at `metrics["steps"]`."""
        self.check_ready()
        line = check_metrics(metrics)
        self.recorded.append(line)
        self.events.add(line)

    def metrics(self) -> list[dict[str, int | float]]:
        """The recorded lines, without those that going back to a checkpoint has dropped."""
        return read_metrics(self.path / METRICS)

    def save(self, tree: Any, /, **facts: Any) -> Path:
        """Write a checkpoint; the one before stays as checkpoint.previous.safetensors.

        The new one is complete on disk before either of the old ones is touched, so that a failure
        at any moment (no space left, a kill) leaves both as they were, or the newer one.
        """
        self.check_ready()
        header = {"facts": facts, "metrics_bytes": self.recorded.sync()}
        new = write_tree(self.path / NEXT, tree, header)
        current = self.path / CHECKPOINT
        try:
            if current.exists():
                keep_also_as(current, self.path / PREVIOUS)
            os.replace(new, current)
            sync(self.path)
        except OSError as error:
            raise StorageError(f"{current}: cannot be written ({error})") from error
        return current

    def latest(self, like: Any) -> Saved | None:
        """Go back to the newest undamaged checkpoint, or to the beginning if there is none.

        What was recorded after that checkpoint is dropped: it will be recorded again. `like` is a
        tree with the names, shapes and dtypes of the saved one; it is not looked at where there is
        no checkpoint. A checkpoint that is intact but holds another tree is an error, and nothing
        in the folder is changed.
        """
        self.check_open()
        stored, wrong = self.newest()
        if stored is None:
            self.go_back(0)
            return None
        saved = Saved(stored.tree(like), stored.header["facts"])
        for sentence in wrong:
            self.notices.append(f"{sentence}; continued from {stored.path.name} instead")
        if wrong and (self.path / CHECKPOINT).exists():
            # Else the next save would keep the damaged one and drop the good one.
            self.set_aside(self.path / CHECKPOINT)
        self.go_back(stored.header["metrics_bytes"])
        return saved

    def close(self) -> None:
        """End the writing and let others open the folder."""
        self.events.close()
        self.recorded.close()
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def newest(self) -> tuple[Stored | None, list[str]]:
        """The newest undamaged checkpoint, and what is wrong with those that are newer."""
        wrong = []
        for path in (self.path / CHECKPOINT, self.path / PREVIOUS):
            if not path.exists():
                wrong.append(f"{path}: is missing")
                continue
            try:
                stored = read_stored(path)
            except StorageError as error:
                wrong.append(str(error))
                continue
            if set(stored.header) == {"facts", "metrics_bytes"}:
                return stored, wrong
            wrong.append(f"{path}: not a checkpoint of a run")
        if all(sentence.endswith("is missing") for sentence in wrong):
            return None, []
        raise StorageError(
            f"no checkpoint can be read: {'; '.join(wrong)}; "
            "delete the folder to begin again, or restore one of them from a copy"
        )

    def go_back(self, length: int) -> None:
        """Undo what was recorded after the first `length` bytes."""
        if not self.recorded.cut(length):
            self.notices.append(
                f"{self.recorded.path}: lines from before the checkpoint are missing "
                f"({self.recorded.length()} bytes instead of {length})"
            )
        self.events.rewrite(self.metrics())
        self.writable = True

    def set_aside(self, path: Path) -> None:
        """Rename a damaged checkpoint, so that users can examine it."""
        try:
            os.replace(path, self.path / DAMAGED)
        except OSError as error:
            raise StorageError(f"{path}: damaged, and cannot be moved away ({error})") from error

    def check_open(self) -> None:
        """Raise an error if the folder was closed."""
        if self.lock is None:
            raise StorageError(f"{self.path}: this folder was closed; open it again")

    def check_ready(self) -> None:
        """Raise an error if the folder cannot be written to in the present state."""
        self.check_open()
        if not self.writable:
            raise StorageError(
                f"{self.path}: holds a run already; call latest(like) first to continue it"
            )


def has_checkpoint(path: Path) -> bool:
    """Whether the folder holds a checkpoint, damaged or not."""
    return any((path / name).exists() for name in (CHECKPOINT, PREVIOUS))


def keep_also_as(current: Path, previous: Path) -> None:
    """Give a file a second name, so that it is under the first one at every moment."""
    link = previous.with_name(f".{previous.name}.link.part")
    try:
        link.unlink(missing_ok=True)
        os.link(current, link)
        os.replace(link, previous)
    except OSError:
        # No such links on this file system. For a moment only the previous name will be there.
        os.replace(current, previous)
    finally:
        # Renaming does nothing where both names belong to one file already.
        with suppress(OSError):
            link.unlink()


def remove_leftovers(path: Path) -> None:
    """Delete what a killed process had not finished writing; only while the folder is locked."""
    leftovers = [path / NEXT]
    for name in (SETTINGS, NEXT, PREVIOUS):
        leftovers += path.glob(f".{name}.*.part")
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
