"""Lets the API pages read the "Fields:" of our docstrings, which tools know as "Attributes:"."""

from typing import Any

import griffe


class Fields(griffe.Extension):
    """Renames the section of every class before its docstring is parsed."""

    def on_class_instance(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Called for every class that is read."""
        if cls.docstring is not None:
            cls.docstring.value = cls.docstring.value.replace("\nFields:\n", "\nAttributes:\n")
