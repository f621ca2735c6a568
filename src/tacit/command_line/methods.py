"""`tacit methods`: which methods there are, and the settings of each."""

import dataclasses
import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tacit.command_line.console import show_table, show_text
from tacit.command_line.inputs import annotations_of, kind_in_words

if TYPE_CHECKING:
    from tacit.inference.method import NamedMethod

OptionalName = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")]


def methods(name: OptionalName = None) -> None:
    """List the methods that `tacit infer --method` takes, or all settings of one of them.

    Args:
        name: of a method, to list its settings.
    """
    from tacit.methods import find_method

    if name is None:
        show_methods()
    else:
        show_settings(find_method(name))


def show_methods() -> None:
    """A row for every method."""
    from tacit.inference.method import DEFAULTS, ExactMethod
    from tacit.methods import METHODS

    ordered = sorted(METHODS.values(), key=lambda kind: (kind.name not in DEFAULTS, kind.name))

    show_table(
        "Methods",
        ["method", "learns on", "confidence", "what it is"],
        [
            [
                kind.name,
                "tables" if issubclass(kind, ExactMethod) else "simulators, tables",
                "heeded" if kind.heeds_confidence else "-",
                first_sentence(kind),
            ]
            for kind in ordered
        ],
        words=True,
    )
    show_text(
        "`tacit methods NAME` lists the settings of a method. Where none is named, `counts` learns "
        "on tables and `reach` elsewhere."
    )


def show_settings(kind: "type[NamedMethod]") -> None:
    """What the method is, and a row for every setting."""
    show_text(first_sentence(kind))
    kinds, meanings = annotations_of(kind), meanings_of(kind)
    show_table(
        f"Settings of {kind.name}, as in --learn key=value",
        ["setting", "takes", "default", "meaning"],
        [
            [
                field.name,
                kind_in_words(kinds.get(field.name, field.type)),
                default_of(field),
                meanings.get(field.name, ""),
            ]
            for field in dataclasses.fields(kind)
        ],
        words=True,
    )


def first_sentence(kind: type[Any]) -> str:
    """The first sentence of a class's own documentation."""
    paragraph = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z\"`])", paragraph)[0]


def meanings_of(kind: type[Any]) -> dict[str, str]:
    """The texts of all sections "Fields:" of a class and its bases; the nearest one counts."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        section = re.search(r"^Fields:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
        for name, meaning in re.findall(
            r"^    (\w+): (.+(?:\n {5,}.+)*)", section[1] if section else "", re.MULTILINE
        ):
            meanings[name] = " ".join(meaning.split())
    return meanings


def default_of(field: "dataclasses.Field[Any]") -> str:
    """The default of a setting, as it is written on the command line."""
    if field.default_factory is not dataclasses.MISSING:
        return written(field.default_factory())
    return "" if field.default is dataclasses.MISSING else written(field.default)


def written(value: Any) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, tuple | list):
        return ",".join(map(written, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
