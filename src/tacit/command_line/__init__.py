"""The `tacit` command: which commands there are, and what becomes of their errors.

A command's module is imported when the command is called, and imports JAX when it begins to work:
help and mistyped commands answer at once.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.markup import escape

from tacit.argument_checks import nearest
from tacit.errors import ArgumentError, TacitError

ABOUT = "Learn the unwritten rules experts follow, at a confidence you choose."
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Learn a rule on a small example and write a report."),
    "expert": ("expert.Train", "Train an expert on the true rule and write its demonstrations."),
    "infer": ("infer.Infer", "Learn the rule that the experts obeyed, and a policy that keeps it."),
    "methods": ("methods", "List the methods, or the settings of one."),
    "rules": ("constraint", "Print the rules of a saved result."),
    "evaluate": ("evaluate.Evaluate", "Judge a saved result by the true rule."),
    "calibrate": ("constraint", "Check a learned constraint with held-out demonstrations."),
    "sufficient": ("advice.Sufficient", "Say whether the demonstrations are enough."),
    "tradeoff": ("advice.Tradeoff", "Show what each confidence costs."),
    "experiment": ("experiment", "Run an experiment of the lab."),
    "data": ("data", "Look at demonstrations, convert them, or make up recordings."),
}
"""Module and one line of each command: a function of its name, or the class with a method `run`."""

HELP_METHOD = "--help-method"
TAKE_A_METHOD = ("infer", "sufficient", "tradeoff")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error of ours becomes one line and exit code 2."""
    try:
        with no_interrupt_lost():
            run(list(sys.argv[1:] if arguments is None else arguments))
    except TacitError as error:
        Console(stderr=True, emoji=False).print(
            f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True, emoji=False).print(
            "stopped; what is kept in a folder goes on if you run the same command again"
        )
        sys.exit(130)


def run(arguments: list[str]) -> None:
    """Run the command that the first of the arguments names; without one, show the help."""
    if not arguments or arguments[0] in ("-h", "--help"):
        show_help()
        sys.exit(0)
    name, *options = arguments
    if name in TAKE_A_METHOD and HELP_METHOD in options:
        name, options = "methods", named_method(options)
    command = find_command(name)

    import tyro

    config = (tyro.conf.OmitSubcommandPrefixes,)
    chosen = tyro.cli(command, prog=f"tacit {name}", args=options, config=config)
    if isinstance(command, type):
        chosen.run()


def show_help() -> None:
    """Print all commands with a line about each."""
    console = Console(highlight=False)
    console.print(f"[bold]usage:[/] tacit COMMAND \\[options]\n\n{ABOUT}\n", soft_wrap=True)
    width = max(map(len, COMMANDS))
    for name, (_, line) in COMMANDS.items():
        console.print(f"  [bold]{name:{width}}[/]  {line}", soft_wrap=True)
    console.print("\n`tacit COMMAND --help` lists the options of a command.", soft_wrap=True)


def find_command(name: str) -> Callable[..., Any]:
    """The function or class of a command, or an error with the nearest one."""
    if name not in COMMANDS:
        hint = nearest(name.lower(), {known: known for known in COMMANDS})
        raise ArgumentError(f"there is no command {name!r}; there are {', '.join(COMMANDS)}{hint}")
    module, _, attribute = COMMANDS[name][0].partition(".")
    return getattr(import_module(f"{__name__}.{module}"), attribute or name)


def named_method(options: Sequence[str]) -> list[str]:
    """The name after --method, if there is one."""
    for place, option in enumerate(options):
        flag, equals, value = option.partition("=")
        if flag == "--method":
            return [value] if equals else list(options[place + 1 : place + 2])
    return []


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """An interrupt that comes while Python cleans up is lost there: send it once more."""
    before = sys.unraisablehook

    def told(error: "sys.UnraisableHookArgs") -> None:
        if isinstance(error.exc_value, KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        else:
            before(error)

    sys.unraisablehook = told
    try:
        yield
    finally:
        sys.unraisablehook = before
