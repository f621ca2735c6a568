"""How a task is named on the command line."""

from tacit.environments.registry import make
from tacit.environments.tabular import TabularTask
from tacit.environments.task_file import load_task
from tacit.errors import TaskError


def find_task(name: str, settings: tuple[str, ...]) -> TabularTask:
    """The task called `name` with options `key=value`, or a file of the user's own arrays."""
    options = dict(parse_setting(setting) for setting in settings)
    if not name.endswith(".npz"):
        return make(name, **options)
    if options:
        raise TaskError(f"{name}: a task from a file has no options to set")
    return load_task(name)


def parse_setting(setting: str) -> tuple[str, int | float | str]:
    """`key=value` with the value as a whole number, a number or text."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise TaskError(f"--set takes key=value, as in --set layout=rooms, not {setting!r}")
    for kind in (int, float):
        try:
            return key, kind(text)
        except ValueError:
            continue
    return key, text
