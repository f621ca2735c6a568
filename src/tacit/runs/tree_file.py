"""A whole training state in one file: any tree of arrays, read back bit for bit or not at all.

Written are arrays of JAX and NumPy of every dtype, JAX's typed random keys, and Python's bool, int,
float, complex and str. Every other leaf, such as the activation function of an equinox module, is
code and not data: the file has its name only, and the leaf is taken from `like` upon reading. So
are the parts of a tree that are not leaves: None, empty containers, static fields.

Arrays of JAX come back on the default device.
"""

import hashlib
import json
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tacit.errors import ArgumentError, StorageError
from tacit.runs.array_file import plain, read_arrays, write_arrays
from tacit.runs.tree_leaf import NOT_DATA, decode, describe, encode, form

KIND = "tacit tree"


def write_tree(path: Path, tree: Any, header: dict[str, Any]) -> Path:
    """Write a tree and a JSON-able header to `path`, whole or not at all."""
    leaves = named_leaves(tree)
    entries = [describe(name, leaf) for name, leaf in leaves.items()]
    arrays = {
        entry["name"]: encode(entry["name"], leaves[entry["name"]])
        for entry in entries
        if entry["form"] != NOT_DATA
    }
    try:
        # As it will be read: tuples become lists, NumPy's numbers plain ones.
        facts = json.loads(json.dumps(header, default=plain))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{path}: the header cannot be written: {error}") from None
    content = {"kind": KIND, "leaves": entries, "header": facts}
    return write_arrays(path, arrays, {**content, "sha256": fingerprint(arrays, content)})


def read_tree(path: Path, like: Any) -> tuple[Any, dict[str, Any]]:
    """Read what `write_tree` wrote, as a tree like `like`; gives the tree and the header.

    The values of `like` do not matter, only names, shapes and dtypes, so that it may come from
    `jax.eval_shape`. A file that is damaged, or that holds another tree, is a `StorageError`.
    """
    stored = read_stored(path)
    return stored.tree(like), stored.header


@dataclass(frozen=True, eq=False)
class Stored:
    """The content of a file, found to be undamaged.

    Fields:
        path: the file.
        leaves: name, form and more of every leaf, in the order of the tree.
        arrays: the leaves that are data, by name.
        header: what the writer said about the tree.
    """

    path: Path
    leaves: list[dict[str, Any]]
    arrays: dict[str, np.ndarray]
    header: dict[str, Any]

    def tree(self, like: Any) -> Any:
        """The stored values in a tree like `like`; every leaf must have the same name and form."""
        wanted = named_leaves(like)
        self.check(wanted)
        values = [
            leaf if entry["form"] == NOT_DATA else decode(self.arrays[entry["name"]], entry, leaf)
            for entry, leaf in zip(self.leaves, wanted.values(), strict=True)
        ]
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), values)

    def check(self, wanted: dict[str, Any]) -> None:
        """Raise an error that names the first leaf that differs."""
        forms = {entry["name"]: entry["form"] for entry in self.leaves}
        for found, name in zip_longest(forms, wanted):
            if found == name and forms[found] == form(wanted[name]):
                continue
            if found == name:
                difference = f"{name} is {forms[found]} there and {form(wanted[name])} here"
            elif name is not None and name not in forms:
                difference = f"{name} is not in the file"
            elif found is not None and found not in wanted:
                difference = f"{found} is in the file only"
            else:
                difference = f"{found} there is in the place of {name} here"
            raise StorageError(
                f"{self.path}: holds another tree than the one asked for: {difference}; "
                "build the tree with the settings that the file was written with"
            )


def read_stored(path: Path) -> Stored:
    """Read a file and make sure that it is as it was written."""
    arrays, content = read_arrays(path)
    if content.get("kind") != KIND:
        raise StorageError(f"{path}: damaged, or not a tree that tacit wrote")
    if content.pop("sha256", None) != fingerprint(arrays, content):
        raise StorageError(f"{path}: damaged: its content is not what was written (sha256 differs)")
    if not {"leaves", "header"} <= set(content):
        raise StorageError(f"{path}: damaged: its header is incomplete")
    return Stored(path, content["leaves"], arrays, content["header"])


def fingerprint(arrays: dict[str, np.ndarray], content: dict[str, Any]) -> str:
    """The sha256 of all arrays with their names, dtypes and shapes, and of the rest of the header.

    The rest is hashed too because a state with altered facts is as wrong as one with altered bits.
    """
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves by their path in the tree, such as `.layers[0].weight`, in the tree's order."""
    leaves: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = jax.tree_util.keystr(path) or "the tree"
        if name in leaves:
            raise ArgumentError(f"{name}: two leaves of the tree have this name; rename one")
        leaves[name] = leaf
    return leaves
