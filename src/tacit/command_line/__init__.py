"""The `tacit` command."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tyro
from rich.console import Console
from rich.markup import escape

from tacit.command_line.calibrate import calibrate
from tacit.command_line.data import data
from tacit.command_line.demo import demo
from tacit.command_line.evaluate import evaluate
from tacit.command_line.experiment import experiment
from tacit.command_line.expert import expert
from tacit.command_line.infer import infer
from tacit.command_line.sufficient import sufficient
from tacit.command_line.tradeoff import tradeoff
from tacit.errors import TacitError

COMMANDS = {
    "demo": demo,
    "expert": expert,
    "infer": infer,
    "evaluate": evaluate,
    "calibrate": calibrate,
    "sufficient": sufficient,
    "tradeoff": tradeoff,
    "experiment": experiment,
    "data": data,
}


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error of ours becomes one line and exit code 2."""
    try:
        with no_interrupt_lost():
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="tacit",
                description="Learn the unwritten rules experts follow, at a confidence you choose.",
                args=arguments,
            )
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
