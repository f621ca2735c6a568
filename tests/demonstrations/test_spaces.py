import json

import numpy as np
import pytest

from tacit.demonstrations.spaces import describe_space, parse_space

BOX = {"type": "Box", "dtype": "float64", "shape": [2], "low": [-1, -1], "high": [1, 1]}
DISCRETE = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 9}


def describe(rows, declared=None):
    text = None if declared is None else json.dumps(declared)
    return json.loads(describe_space(np.array(rows), text))


def test_spaces_are_inferred_from_the_numbers():
    assert describe([[1], [4]]) == {"type": "Discrete", "dtype": "int64", "start": 0, "n": 5}
    assert describe([[-2], [4]])["start"] == -2
    assert describe([[1, 2], [0, 5]])["high"] == [1, 5]
    assert describe([[1.0, 2.0]])["low"] == [-np.inf, -np.inf]
    assert describe([[-(2**63)], [2**63 - 1]])["type"] == "Box"


@pytest.mark.parametrize(("rows", "space"), [([[0.5, -1]], BOX), ([[3], [8]], DISCRETE)])
def test_a_declared_space_is_kept_where_the_numbers_fit(rows, space):
    assert describe(rows, space) == space


@pytest.mark.parametrize(
    ("rows", "space"),
    [
        ([[0.5, 2.0]], BOX),
        ([[0.5]], BOX),
        ([[0, 1]], BOX),
        ([[0.5, 0.5]], {**BOX, "shape": [1]}),
        ([[0.5, 0.5]], {"type": "Box", "dtype": "float64"}),
        ([[0.5, 0.5]], {**BOX, "low": ["a", "b"]}),
        ([[9]], DISCRETE),
        ([[-1]], DISCRETE),
        ([[1.0]], DISCRETE),
        ([[1]], {"type": "Discrete"}),
        ([[1]], {"type": "Graph"}),
        ([[1]], [1]),
    ],
)
def test_a_declared_space_is_dropped_where_the_numbers_do_not_fit(rows, space):
    assert describe(rows, space) == describe(rows)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", 7])
def test_what_is_not_a_space_is_no_space(text):
    assert parse_space(text) == {}
