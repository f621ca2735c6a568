"""One leaf of a tree as an array that a file can hold, and back, bit for bit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacit.errors import ArgumentError
from tacit.precision import double_precision

NOT_DATA = "not data"
PLAIN = (bool, int, float, complex, str)
ARRAYS = (np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct)
BYTES = np.dtype(np.uint8)
# What safetensors both writes and reads through NumPy; all other dtypes are kept as their bytes.
NATIVE = {np.dtype(name) for name in ("bool", "float16", "float32", "float64", "complex64")} | {
    np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}


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
    """What `encode` was given: the value from the file, as the kind of object that `like` is."""
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
