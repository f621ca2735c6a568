"""How a task and its options are named on the command line."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tacit.command_line.tables import console
from tacit.environments.registry import find_name, is_foreign, make
from tacit.environments.tabular import TabularTask, load_task
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.highway.builtin_recordings import builtin_folder

WORDS = {"true": True, "false": False, "none": None}

Value = bool | int | float | str | None


def find_task(name: str, settings: tuple[str, ...]) -> TabularTask | SimulatedTask:
    """The task called `name` with options `key=value`, or a file of the user's own arrays."""
    options = dict(parse_setting(setting) for setting in settings)
    if not name.endswith(".npz"):
        prepare_recordings(name, options)
        with importable(Path.cwd()):
            return make(name, **options)
    if options:
        raise TaskError(f"{name}: a task from a file has no options to set")
    return load_task(name)


def prepare_recordings(name: str, options: Mapping[str, Value]) -> None:
    """Write the made-up recordings of a driving task now if need be, and say so."""
    ours = not is_foreign(name) and find_name(name).startswith("Highway")
    if ours and options.get("recordings") is None:
        write_builtin()


def write_builtin() -> None:
    """The made-up recordings, with a word to the user if they have to be written first."""
    builtin_folder(notice=lambda sentence: console.print(sentence, markup=False))


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let modules in `folder` be imported, as they would be by a script that lies there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def parse_setting(setting: str, flag: str = "--set") -> tuple[str, Value]:
    """`key=value` with the value as true, false, none, a whole number, a number or text."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        example = {
            "--set": "noise_std=0.1",
            "--train": "learning_rate=1e-4",
            "--learn": "learning_rate=1e-3",
        }[flag]
        raise TaskError(f"{flag} takes key=value, as in {flag} {example}, not {setting!r}")
    return key, parse_value(text)


def parse_value(text: str) -> Value:
    """What the text stands for."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
