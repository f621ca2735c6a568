"""What users write on the command line: tasks, demonstrations, methods, settings as key=value."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

import tyro

from tacit.argument_checks import fits, nearest
from tacit.command_line.console import console, watched
from tacit.environments.registry import find_name, is_foreign, make
from tacit.environments.tabular import TabularTask, load_task
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, TaskError

if TYPE_CHECKING:
    from tacit.control.settings import PPO
    from tacit.demonstrations.trajectories import Trajectories
    from tacit.inference.method import NamedMethod

WORDS = {"true": True, "false": False, "none": None}
EXAMPLES = {
    "--set": "noise_std=0.1",
    "--train": "learning_rate=1e-4",
    "--learn": "learning_rate=1e-3",
}
PRICE = "multiplier."
"""How the settings of the multiplier begin in --train."""

Value = bool | int | float | str | None

TaskName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
Pairs = Annotated[tuple[str, ...], tyro.conf.arg(metavar="[KEY=VALUE ...]")]
Options = Annotated[tuple[str, ...], tyro.conf.arg(name="set", metavar="[KEY=VALUE ...]")]
"""How arguments that many commands take look in their help."""


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
    """Write the made-up recordings unless they are there, and tell the user when it happens."""
    from tacit.highway.builtin_recordings import builtin_folder

    builtin_folder(notice=lambda sentence: console.print(sentence, markup=False))


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let modules in `folder` be imported, as they would be by a script that lies there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def load_experts(path: Path, number: int | None = None, seed: int = 0) -> "Trajectories":
    """The demonstrations in a file; with `number`, so many of them, drawn by the seed."""
    from tacit.demonstrations.trajectories import Trajectories

    demonstrations = Trajectories.load(path)
    return demonstrations if number is None else demonstrations.subset(number, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What all commands take that learn.

    Args:
        task: name of a task (GridWorld, BlockedHalfCheetah ...), a Gymnasium id, or an .npz file
            with your own arrays.
        experts: file or folder with the demonstrations.
        method: one of those that `tacit methods` lists; by default counts on tables and reach
            elsewhere. Add --help-method to list the settings of a method and stop.
        seed: of everything random.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
        learn: settings of the method, as in --learn votes=visits-fallible.
        train: settings of PPO, as in --train steps=2000000 multiplier.largest=10.
    """

    task: TaskName
    experts: Path
    method: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    seed: int = 0
    threads: int | None = None
    settings: Options = ()
    learn: Pairs = ()
    train: Pairs = ()

    def read(self, number: int | None = None) -> "Request":
        """What the options stand for; with `number`, so many of the demonstrations."""
        from tacit.inference.experts import as_simulated
        from tacit.methods import Method, find_method

        if self.method is not None:
            # Before anything takes time.
            find_method(self.method)
        task = find_task(self.task, self.settings)
        demonstrations = load_experts(self.experts, number, self.seed)
        method = method_with(self.method, task, self.learn)
        forward = None
        if isinstance(method, Method):
            simulator, _ = as_simulated(task, demonstrations)
            forward = ppo_with(method.forward(simulator), self.train)
        elif self.train:
            raise ArgumentError(
                f"--train has no meaning for {method.name!r} on {task.name}, which is computed "
                "without acting; leave it away, or name a method that acts, as in --method vicrl"
            )
        return Request(task, demonstrations, method, forward)

    @contextmanager
    def shown(self, asked: "Request", doing: str) -> Iterator[dict[str, Any]]:
        """Show that something is learned, and how far it is; gives options of the library."""
        options = {"method": asked.method, "seed": self.seed, "threads": self.threads}
        if asked.forward is None:
            with console.status("learning"):
                yield options
            return
        with watched(f"{doing} on {asked.task.name}", asked.forward) as watch:
            yield options | {"forward": asked.forward, "progress": watch}


class Request(NamedTuple):
    """What to learn on, from and by; `forward` is None where nothing acts."""

    task: TabularTask | SimulatedTask
    demonstrations: "Trajectories"
    method: "NamedMethod"
    forward: "PPO | None"


def parse_setting(setting: str, flag: str = "--set") -> tuple[str, Value]:
    """`key=value` with the value as true, false, none, a whole number, a number or text."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise TaskError(f"{flag} takes key=value, as in {flag} {EXAMPLES[flag]}, not {setting!r}")
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


def method_with(
    name: str | None, task: TabularTask | SimulatedTask, settings: tuple[str, ...]
) -> "NamedMethod":
    """The method called `name`, or the task's default: its preset, changed by `key=value`."""
    from tacit.methods import chosen_method

    method = chosen_method(name, task)
    if not settings:
        return method
    kind = type(method)
    changes = read_fields(kind, settings, f"of method {kind.name!r}", "--learn")
    try:
        return kind.preset(task, **changes)
    except TypeError as error:
        # Annotations of a user's own method may say less than the method needs.
        raise ArgumentError(f"--learn: method {kind.name!r} cannot take this: {error}") from error


def ppo_with(base: "PPO", settings: tuple[str, ...]) -> "PPO":
    """`base` with `key=value` changes; the multiplier's are written multiplier.key=value."""
    changes = ppo_changes(tuple(each for each in settings if not each.startswith(PRICE)))
    about_price = tuple(each.removeprefix(PRICE) for each in settings if each.startswith(PRICE))
    price = read_fields(type(base.multiplier), about_price, "of the multiplier", "--train")
    multiplier = dataclasses.replace(base.multiplier, **price)
    return dataclasses.replace(base, **changes, multiplier=multiplier)


def ppo_changes(settings: tuple[str, ...]) -> dict[str, Any]:
    """Settings of PPO from `key=value`, all but those of the multiplier."""
    from tacit.control.settings import PPO

    for setting in settings:
        if setting.partition("=")[0] == "multiplier":
            raise ArgumentError(
                "--train: there is no setting 'multiplier'; its own settings are written like "
                "multiplier.rate=0.05"
            )
    return read_fields(PPO, settings, "of PPO", "--train")


def read_fields(
    record: type[Any], settings: tuple[str, ...], whose: str, flag: str
) -> dict[str, Any]:
    """Values of fields of a dataclass from `key=value`, each checked against its annotation."""
    known = {field.name: field.name for field in dataclasses.fields(record)}
    kinds = annotations_of(record)
    changes: dict[str, Any] = {}
    for setting in settings:
        key, _ = parse_setting(setting, flag)
        if key not in known:
            raise ArgumentError(
                f"{flag}: there is no setting {key!r} {whose}; there are {', '.join(known)}"
                f"{nearest(key.lower(), known)}"
            )
        changes[key] = read_value(kinds.get(key, Any), setting.partition("=")[2], key, flag)
    return changes


def annotations_of(record: type[Any]) -> dict[str, Any]:
    """The annotations of the fields; none where they cannot be read."""
    try:
        return get_type_hints(record)
    except (NameError, TypeError):
        # The annotations mean something to their author only.
        return {}


def read_value(kind: Any, text: str, key: str, flag: str) -> Any:
    """The value of the kind that the text stands for, or an error that says what would do."""
    parts = tuple(part for part in text.split(",") if part)
    many = tuple(parse_value(part) for part in parts), parts
    # Where the annotation takes anything, commas make it many.
    first, second = ((), many) if "," not in text else (many, ())
    for value in (*first, parse_value(text), text, *second):
        if fits(value, kind) and has_length(value, kind):
            return value
    choices = choices_of(kind)
    if choices:
        raise ArgumentError(f"{flag}: {key} is one of {', '.join(choices)}, not {text!r}")
    raise ArgumentError(f"{flag}: {key} cannot be {text!r}; it takes {kind_in_words(kind)}")


def has_length(value: object, kind: Any) -> bool:
    """Whether a tuple has as many members as its annotation."""
    members = get_args(kind)
    if get_origin(kind) is not tuple or Ellipsis in members or not isinstance(value, tuple):
        return True
    return len(value) == len(members)


def choices_of(kind: Any) -> list[str]:
    """The words among which a setting chooses; none where it takes something else."""
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    members = [member for member in get_args(kind) if member is not type(None)]
    return choices_of(members[0]) if len(members) == 1 and get_origin(kind) is not tuple else []


def kind_in_words(kind: Any) -> str:
    """What values an annotation stands for, as they are written on the command line."""
    plain = {int: "int", float: "float", bool: "true | false", str: "text", type(None): "none"}
    origin, members = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " | ".join(map(str, members))
    if origin is tuple:
        words = [kind_in_words(member) for member in members if member is not Ellipsis]
        return f"{words[0]},{words[0]},..." if Ellipsis in members else ",".join(words)
    if members and origin is not type:
        # Classes are for Python; here a name stands for them.
        return " | ".join(kind_in_words(each) for each in members if get_origin(each) is not type)
    return plain.get(kind, getattr(kind, "__name__", str(kind)))
