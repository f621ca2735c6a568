"""A tree in one file, back bit for bit or not at all."""

import json
from typing import Any, NamedTuple

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import HealthCheck, given, settings

from tacit.errors import ArgumentError, StorageError
from tacit.runs.tree_file import read_stored, write_tree

NUMPY = [">f8", "complex128", "bfloat16", "datetime64[s]"]
BOTH = ["float16", "float32", "float64", "complex64", "bool"] + [
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
]


def read_tree(path, like):
    stored = read_stored(path)
    return stored.tree(like), stored.header


class Pair(NamedTuple):
    first: Any
    second: Any


def from_bytes(name, shape, seed):
    """Any bits at all: NaN with a payload, infinities, numbers below the normal ones."""
    dtype = jnp.dtype(name)
    content = np.random.default_rng(seed).bytes(int(np.prod(shape)) * dtype.itemsize)
    if name == "bool":
        content = bytes(byte % 2 for byte in content)
    return np.frombuffer(content, dtype).reshape(shape)


def to_jax(array):
    with jax.enable_x64(True):
        return jnp.array(array)


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
leaves = st.one_of(
    st.builds(from_bytes, st.sampled_from(NUMPY + BOTH), shapes, seeds),
    st.builds(from_bytes, st.sampled_from(["bfloat16", *BOTH]), shapes, seeds).map(to_jax),
    st.builds(from_bytes, st.sampled_from(BOTH), st.just(()), seeds).map(lambda one: one[()]),
    st.builds(jax.random.key, seeds, impl=st.sampled_from(["threefry2x32", "rbg"])),
    st.booleans(),
    st.integers(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.none(),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=8,
)


def blank(leaf):
    """Another leaf of the same form."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key(0, impl=str(jax.random.key_impl(leaf)))
    if isinstance(leaf, jax.Array):
        return to_jax(np.zeros(leaf.shape, leaf.dtype))
    if isinstance(leaf, np.ndarray | np.generic):
        zeros = np.zeros(leaf.shape, leaf.dtype)
        return zeros[()] if isinstance(leaf, np.generic) else zeros
    return type(leaf)()


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return str(leaf.dtype), leaf.shape, np.asarray(jax.random.key_data(leaf)).tobytes()
    if isinstance(leaf, jax.Array):
        return leaf.dtype, leaf.shape, leaf.weak_type, np.asarray(leaf).tobytes()
    if isinstance(leaf, np.ndarray | np.generic):
        return type(leaf), leaf.dtype, leaf.shape, leaf.tobytes()
    if isinstance(leaf, float | complex):
        return type(leaf), np.asarray(leaf).tobytes()
    return type(leaf), leaf


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert bits(left) == bits(right)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tree=trees)
def test_every_tree_comes_back_bit_for_bit(tree, tmp_path):
    path = write_tree(tmp_path / "tree.safetensors", tree, {"a": [1, None, "ä"]})
    like = jax.tree.map(blank, tree)
    found, header = read_tree(path, like)
    assert header == {"a": [1, None, "ä"]}
    assert_same(found, tree)


OPTIMISER = optax.chain(
    optax.clip_by_global_norm(1.0), optax.adam(optax.linear_schedule(0.1, 0.0, 100))
)


def state_of_a_network(seed):
    key = jax.random.key(seed)
    network = eqx.nn.MLP(3, 2, 8, 1, activation=jnp.tanh, key=key)
    fitted = OPTIMISER.init(eqx.filter(network, eqx.is_inexact_array))
    return {"network": network, "optimiser": fitted, "key": key, "steps": 0}


@eqx.filter_jit
def step(network, fitted, key):
    key, draw = jax.random.split(key)
    inputs = jax.random.normal(draw, (16, 3))
    gradient = eqx.filter_grad(lambda net: (jax.vmap(net)(inputs) ** 2).mean())(network)
    change, fitted = OPTIMISER.update(gradient, fitted)
    return eqx.apply_updates(network, change), fitted, key


def train(state, number):
    network, fitted, key = state["network"], state["optimiser"], state["key"]
    for _ in range(number):
        network, fitted, key = step(network, fitted, key)
    steps = state["steps"] + number
    return {"network": network, "optimiser": fitted, "key": key, "steps": steps}


def test_training_continues_bit_for_bit_from_a_file(tmp_path):
    half = train(state_of_a_network(0), 7)
    whole = train(half, 7)
    path = write_tree(tmp_path / "half", half, {})
    like = state_of_a_network(1)
    found, _ = read_tree(path, like)
    assert found["network"].activation is like["network"].activation
    assert found["steps"] == 7
    assert_same(*(eqx.filter(one, eqx.is_array) for one in (found, half)))
    continued = train(found, 7)
    assert continued["steps"] == 14
    assert_same(*(eqx.filter(one, eqx.is_array) for one in (continued, whole)))


def test_a_description_of_the_tree_is_enough_to_read_it(tmp_path):
    tree = {"keys": jax.random.split(jax.random.key(3), 4), "w": jnp.arange(3.0)}
    path = write_tree(tmp_path / "tree", tree, {})
    assert_same(read_tree(path, jax.eval_shape(lambda: tree))[0], tree)
    with pytest.raises(ArgumentError, match=r"\['keys'\]: is the description"):
        write_tree(path, jax.eval_shape(lambda: tree), {})


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("number", [0.5, 3])
def test_weak_types_survive_so_that_later_numbers_have_the_same_dtype(tmp_path, number, wide):
    with jax.enable_x64(wide):
        tree = [jnp.asarray(number), jnp.broadcast_to(jnp.asarray(number), (2, 3))]
    assert all(leaf.weak_type for leaf in tree)
    path = write_tree(tmp_path / "tree", tree, {})
    found, _ = read_tree(path, jax.tree.map(blank, tree))
    assert_same(found, tree)
    strong = jax.tree.map(lambda leaf: to_jax(np.asarray(leaf)), tree)
    assert_same(read_tree(write_tree(path, strong, {}), tree)[0], strong)


def test_arrays_of_numpy_can_be_written_to_after_reading(tmp_path):
    tree = [np.ones(2), np.ones(2, ">f8")]
    found, _ = read_tree(write_tree(tmp_path / "tree", tree, {}), tree)
    for array in found:
        array += 1
        assert array.tolist() == [2, 2]


BASE = {"a": np.zeros((2, 3)), "b": [1, jnp.zeros(2)], "c": jnp.tanh}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.zeros((3, 2))}, r"\['a'\] is float64\[2, 3\] there and float64\[3, 2\] here"),
        ({"a": np.zeros((2, 3), "f4")}, r"\['a'\] is float64\[2, 3\] there and float32\[2, 3\]"),
        ({"a": None}, r"\['a'\] is in the file only"),
        ({"b": [1.0, jnp.zeros(2)]}, r"\['b'\]\[0\] is int there and float here"),
        ({"b": [1]}, r"\['b'\]\[1\] is in the file only"),
        ({"b": [1, jnp.zeros(2), 3]}, r"\['b'\]\[2\] is not in the file"),
        ({"c": 1.0}, r"\['c'\] is not data there and float here"),
        ({"d": 1.0}, r"\['d'\] is not in the file"),
        ({"b": [1, jax.random.key(0)]}, r"\['b'\]\[1\] is float32\[2\] there and key<fry>\[\]"),
        ({"a": np.zeros(1), "b": [2.0]}, r"\['a'\] is float64"),
    ],
)
def test_the_first_leaf_that_differs_is_named(tmp_path, change, message):
    path = write_tree(tmp_path / "tree.safetensors", BASE, {})
    with pytest.raises(StorageError, match=r"tree\.safetensors: holds another tree.*" + message):
        read_tree(path, {**BASE, **change})


def test_the_same_leaves_under_other_names_are_an_error(tmp_path):
    path = write_tree(tmp_path / "tree", {"a": [1, 2]}, {})
    with pytest.raises(StorageError, match=r"\.first is not in the file"):
        read_tree(path, {"a": Pair(1, 2)})


def test_keys_of_another_generator_are_named(tmp_path):
    path = write_tree(tmp_path / "tree", jax.random.key(0), {})
    with pytest.raises(StorageError, match=r"the tree is key<fry>\[\] there and key<rbg>\[\] here"):
        read_tree(path, jax.random.key(0, impl="rbg"))


def example_file(folder):
    tree = {"a": np.arange(7.0), "key": jax.random.key(1), "n": 3, "s": "word"}
    return write_tree(folder / "tree.safetensors", tree, {"note": "x" * 20}), tree


def test_a_file_cut_short_anywhere_is_an_error_that_names_it(tmp_path):
    path, tree = example_file(tmp_path)
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 25).astype(int):
        path.write_bytes(content[:length])
        with pytest.raises(StorageError, match=r"tree\.safetensors: damaged"):
            read_tree(path, tree)
    path.write_bytes(content + b"\0")
    with pytest.raises(StorageError, match=r"tree\.safetensors: damaged"):
        read_tree(path, tree)


def test_a_flipped_bit_anywhere_is_an_error_or_changes_nothing(tmp_path):
    """Nothing, where it falls on the blanks that safetensors fills its own header up with."""
    path, tree = example_file(tmp_path)
    content = path.read_bytes()
    _, header = read_tree(path, tree)
    unnoticed = 0
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        try:
            found, note = read_tree(path, tree)
        except StorageError:
            continue
        assert_same(found, tree)
        assert note == header
        unnoticed += 1
    assert unnoticed < 8


def test_altered_numbers_are_found_by_their_hash(tmp_path):
    path, tree = example_file(tmp_path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="sha256 differs"):
        read_tree(path, tree)


@pytest.mark.parametrize(
    ("tree", "header", "message"),
    [
        ({"a": np.array([None])}, {}, r"\['a'\]: an array of Python objects"),
        ({"a": 1}, {"odd": {1, 2}}, "set cannot be written as JSON"),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_the_old_file(tmp_path, tree, header, message):
    path, old = example_file(tmp_path)
    with pytest.raises(ArgumentError, match=message):
        write_tree(path, tree, header)
    assert_same(read_tree(path, old)[0], old)
    assert list(tmp_path.iterdir()) == [path]


def test_two_leaves_of_one_name_are_an_error(tmp_path):
    class Twin:
        def __init__(self, order):
            self.order = order

        def __lt__(self, other):
            return self.order < other.order

        def __repr__(self):
            return "twin"

    with pytest.raises(ArgumentError, match=r"\[twin\]: two leaves"):
        write_tree(tmp_path / "tree", {Twin(0): 1, Twin(1): 2}, {})


def test_the_header_is_json_that_anyone_can_read(tmp_path):
    path, _ = example_file(tmp_path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    facts = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["tacit"])
    assert facts["kind"] == "tacit tree"
    assert facts["header"] == {"note": "x" * 20}
    assert [leaf["name"] for leaf in facts["leaves"]] == ["['a']", "['key']", "['n']", "['s']"]
