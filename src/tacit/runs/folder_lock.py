"""One process at a time writes to a folder."""

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path

from tacit.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class FolderLock:
    """Held from creation to `release`; the operating system lets go of it if the process dies.

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
