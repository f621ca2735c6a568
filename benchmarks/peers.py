"""An environment of their own for the libraries we compare with, and processes that run there."""

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
FOLDER = HERE.parent / ".venv-peers"
PYTHON = FOLDER / "bin" / "python"
STAMP = FOLDER / "installed.txt"
SHARED = ("gymnasium", "mujoco-core")
# Gymnasium's MuJoCo environments import glfw, imageio and packaging, and do not say so.
ALONE = ("torch==2.13.0", "stable-baselines3", "sbx-rl", "glfw", "imageio", "packaging")
# The plain torch of PyPI brings gigabytes of CUDA; where this index is out of reach, pip goes on.
SMALL_TORCH = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
INSTALL_SECONDS = 900


class PeerError(Exception):
    """A peer that cannot be compared with."""


def prepare_peers() -> None:
    """Make the environment if it is not there yet, with our version of the physics."""
    ours = (f"{name}=={importlib.metadata.version(name)}" for name in SHARED)
    wanted = [*ALONE, *ours]
    if STAMP.exists() and STAMP.read_text().split() == wanted:
        return
    print(f"installing the peers in {FOLDER}, once; this takes minutes", flush=True)
    pip = (str(PYTHON), "-m", "pip", "install", "--quiet", "--retries", "1")
    for command in ((sys.executable, "-m", "venv", str(FOLDER)), (*pip, *SMALL_TORCH, *wanted)):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerError(str(error)) from error
        if done.returncode:
            raise PeerError(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
    STAMP.write_text("\n".join(wanted))


class Peer:
    """A process in that environment which does one block of work for every line it is sent."""

    def __init__(self, *arguments: str) -> None:
        self.name = arguments[0]
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [str(PYTHON), str(HERE / "peer_training.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            # Gymnasium's half-cheetah makes MuJoCo write a log file where it runs.
            cwd=tempfile.gettempdir(),
        )

    def answer(self) -> dict[str, Any]:
        """The next JSON line; other lines are chatter of the libraries."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.complaints.seek(0)
        raise PeerError(f"{self.name} stopped: {self.complaints.read().strip()[-300:]}")

    def seconds(self) -> float:
        """Time of one more block of work, as the peer itself measures it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError as error:
            raise PeerError(f"{self.name} stopped: {error}") from error
        return self.answer()["seconds"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.complaints.close()
