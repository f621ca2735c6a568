"""Keep MuJoCo from writing to the console and into the working folder."""

# MuJoCo's names are made in C++ and come without stubs.
# pyright: reportAttributeAccessIssue=false

from threading import Lock

import mujoco


class Silence:
    """`with SILENCE:` MuJoCo writes nothing, neither to the console nor to MUJOCO_LOG.TXT.

    It would do so many times for every simulation that diverges, which the worlds report
    themselves. MuJoCo has one setting for the whole process, hence the count: the last thread to
    leave puts back what the first one found.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside = 0
        self.found = mujoco.MjLogConfig.get()

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.found = mujoco.MjLogConfig.get()
                silent = mujoco.MjLogConfig.get()
                silent.logto_console = silent.logto_file = False
                mujoco.MjLogConfig.set(silent)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                mujoco.MjLogConfig.set(self.found)


SILENCE = Silence()
