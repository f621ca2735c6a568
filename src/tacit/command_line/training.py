"""How training is set up and watched on the command line."""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_origin, get_type_hints

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tacit.argument_checks import fits, nearest
from tacit.command_line.tasks import parse_setting, parse_value
from tacit.control.settings import PPO
from tacit.errors import ArgumentError
from tacit.inference.method import Method

SECONDS_BETWEEN_LINES = 30

Watch = Callable[[dict[str, float]], None]


def with_settings(base: PPO, settings: tuple[str, ...]) -> PPO:
    """`base` with `key=value` changes; the multiplier's are written multiplier.key=value."""
    changes: dict[str, Any] = {}
    prices: dict[str, Any] = {}
    for setting in settings:
        key, _ = parse_setting(setting, "--train")
        text = setting.partition("=")[2]
        if key.startswith("multiplier."):
            name = key.removeprefix("multiplier.")
            prices[name] = checked(base.multiplier, name, text, key)
        else:
            changes[key] = checked(base, key, text, key)
    multiplier = dataclasses.replace(base.multiplier, **prices)
    return dataclasses.replace(base, **changes, multiplier=multiplier)


def method_settings(method: type[Method], settings: tuple[str, ...]) -> dict[str, Any]:
    """Settings of a method from `key=value`."""
    changes = {}
    for setting in settings:
        key, _ = parse_setting(setting, "--learn")
        changes[key] = checked(method, key, setting.partition("=")[2], key, "--learn")
    return changes


def checked(record: Any, name: str, text: str, key: str, flag: str = "--train") -> Any:
    """The value of a field from its text, or an error that names what would do."""
    fields = {field.name: field.name for field in dataclasses.fields(record)}
    if name not in fields or name == "multiplier":
        raise ArgumentError(
            f"{flag}: there is no setting {key!r}; there are {', '.join(fields)}"
            f"{nearest(name.lower(), fields)}"
        )
    kind = get_type_hints(record if isinstance(record, type) else type(record))[name]
    value = parse_value(text)
    if "," in text:
        value = tuple(parse_value(part) for part in text.split(",") if part)
    choices = getattr(kind, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            raise ArgumentError(f"{flag}: {key} is one of {', '.join(choices)}, not {text!r}")
        return value
    if value is not None and not isinstance(value, bool) and get_origin(kind) is tuple:
        value = value if isinstance(value, tuple) else (value,)
    allowed = value is None and type(None) in choices
    right = isinstance(value, bool) if kind is bool else fits(value, kind)
    if not allowed and not right:
        raise ArgumentError(f"{flag}: {key} cannot be {text!r}")
    return value


@contextmanager
def watched(title: str, settings: PPO) -> Iterator[Watch]:
    """A progress bar with speed, reward, violation and multiplier; lines without a terminal.

    Gives the function that is to be told the numbers of every update.
    """
    console = Console(stderr=True, emoji=False)
    if not console.is_terminal:
        yield lines(title, settings)
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[facts]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        job = bar.add_task(title, total=settings.iterations * settings.batch, facts="")
        speed = Speed()

        def show(facts: dict[str, float]) -> None:
            words = f"{speed(facts):,.0f} steps/s  {summary(facts)}"
            bar.update(job, completed=int(facts["steps"]), facts=words)

        yield show


def lines(title: str, settings: PPO) -> Watch:
    """One line every half minute, for logs."""
    speed = Speed()
    last = time.monotonic()
    say(f"{title}: starting; the first update compiles")

    def show(facts: dict[str, float]) -> None:
        nonlocal last
        done = facts["steps"] / (settings.iterations * settings.batch)
        if time.monotonic() - last < SECONDS_BETWEEN_LINES and done < 1:
            return
        last = time.monotonic()
        say(f"{title}: {done:4.0%}  {speed(facts):,.0f} steps/s  {summary(facts)}")

    return show


def say(line: str) -> None:
    """Write a line for people to the error stream, at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Speed:
    """Steps per second since the first update that was seen (which compiles)."""

    def __init__(self) -> None:
        self.first: tuple[float, float] | None = None

    def __call__(self, facts: dict[str, float]) -> float:
        """The mean speed so far."""
        now = facts["steps"], facts["seconds"]
        if self.first is None:
            self.first = now
        steps, seconds = now[0] - self.first[0], now[1] - self.first[1]
        return steps / seconds if seconds > 0 else now[0] / now[1]


def summary(facts: dict[str, float]) -> str:
    """Reward, violation, multiplier, and cost and loss of a constraint that learns, in words."""
    words = []
    if "reward" in facts:
        words = [f"reward {facts['reward']:.1f}"]
    if "violation" in facts:
        words.append(f"violation {100 * facts['violation']:.0f} %")
    prices = [value for name, value in facts.items() if name.startswith("multiplier")]
    if "constraint_loss" in facts and "cost" in facts:
        words.append(f"cost {facts['cost']:.3f}")
    if prices:
        words.append(f"multiplier {'/'.join(f'{price:.2f}' for price in prices)}")
    if "constraint_loss" in facts:
        words.append(f"constraint loss {facts['constraint_loss']:.3f}")
    return "  ".join(words)
