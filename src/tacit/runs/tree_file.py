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
import jax.numpy as jnp
import numpy as np

from tacit.errors import ArgumentError, StorageError
from tacit.precision import double_precision
from tacit.runs.files import plain, read_arrays, write_arrays

KIND = "tacit tree"
NOT_DATA = "not data"
PLAIN = (bool, int, float, complex, str)
ARRAYS = (np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct)
BYTES = np.dtype(np.uint8)
# What safetensors both writes and reads through NumPy; all other dtypes are kept as their bytes.
NATIVE = {np.dtype(name) for name in ("bool", "float16", "float32", "float64", "complex64")} | {
    np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}


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


@dataclass(frozen=True, eq=False)
class Stored:
    """The content of a file whose checksum was right.

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
        """The stored values in a tree like `like`; every leaf must have the same name and form.

        The values of `like` do not matter, only names, shapes and dtypes, so that it may come from
        `jax.eval_shape`. If the file holds another tree, this raises a `StorageError`.
        """
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
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=plain).encode())
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


def form(leaf: Any) -> str:
    """What two leaves must share for one to take the place of the other: type, dtype and shape."""
    if type(leaf) in PLAIN:
        return type(leaf).__name__
    if isinstance(leaf, ARRAYS):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return NOT_DATA


def describe(name: str, leaf: Any) -> dict[str, Any]:
    """What the header of the file says about a leaf."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise ArgumentError(f"{name}: is the description of an array, not an array")
    entry: dict[str, Any] = {"name": name, "form": form(leaf)}
    if is_key(leaf):
        entry["generator"] = str(jax.random.key_impl(leaf))
    elif isinstance(leaf, jax.Array) and leaf.weak_type:
        # A weak type decides the dtype of what is computed next, so it is part of the state.
        entry["weak"] = True
    return entry


def is_key(leaf: Any) -> bool:
    """Whether this is one of JAX's typed random keys, or an array of them."""
    typed = isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)
    return typed and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def encode(name: str, leaf: Any) -> np.ndarray:
    """The leaf as an array that safetensors can hold."""
    if type(leaf) is str:
        return np.frombuffer(leaf.encode("utf-8", "surrogatepass"), BYTES)
    if type(leaf) is int and not -(2**63) <= leaf < 2**63:
        # The states of NumPy's generators are integers of 128 bits.
        return np.frombuffer(
            leaf.to_bytes(leaf.bit_length() // 8 + 1, "little", signed=True), BYTES
        )
    array = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
    if array.dtype.hasobject:
        raise ArgumentError(f"{name}: an array of Python objects cannot be written; use numbers")
    if array.dtype not in NATIVE:
        return np.frombuffer(array.tobytes(), BYTES)
    return array


def decode(array: np.ndarray, entry: dict[str, Any], like: Any) -> Any:
    """The inverse of `encode`: the value from the file, as the kind of object that `like` is."""
    kind = type(like)
    if kind is str:
        return array.tobytes().decode("utf-8", "surrogatepass")
    if kind is int and array.dtype == BYTES:
        return int.from_bytes(array.tobytes(), "little", signed=True)
    if kind is complex:
        return np.frombuffer(array.tobytes(), np.complex128)[0].item()
    if kind in PLAIN:
        return array.item()
    if is_key(like):
        return jax.random.wrap_key_data(jnp.array(array), impl=entry["generator"])
    if array.dtype != like.dtype:
        # A copy, since what `frombuffer` gives cannot be written to.
        array = np.frombuffer(array.tobytes(), like.dtype).reshape(like.shape).copy()
    if isinstance(like, np.ndarray):
        return array
    return array[()] if isinstance(like, np.generic) else as_jax(array, entry.get("weak", False))


def as_jax(array: np.ndarray, weak: bool) -> jax.Array:
    """The array on JAX's default device, with its dtype whatever JAX's global setting is."""
    with double_precision(True):
        strong = jnp.array(array)
    if not weak:
        return strong
    with double_precision(array.dtype in (np.float64, np.int64, np.complex128)):
        # Only a Python number is weakly typed, so one lends its type to the whole array.
        lender = jnp.broadcast_to(jnp.asarray(array.dtype.type(0).item()), array.shape)
    return lender.at[...].set(strong) if lender.dtype == strong.dtype else strong
