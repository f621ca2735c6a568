"""Quantities: what is measured, what a rule may be about, and what makes no sense."""

import jax.numpy as jnp
import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.inference.reach.quantities import SMALLEST, Quantities


def test_ratios_follow_after_the_observation():
    seen = jnp.array([[20.0, 10.0, -4.0], [30.0, 0.0, 2.0], [1.0, -1e-9, 0.0]])
    measured = Quantities.of(("0/1", "2/0"), None).measured(seen)
    np.testing.assert_array_equal(measured[:, :3], seen)
    wanted = [[2, -0.2], [30 / SMALLEST, 2 / 30], [-1 / SMALLEST, 0]]
    np.testing.assert_allclose(measured[:, 3:], wanted, rtol=1e-6)
    assert np.isfinite(measured).all()


def test_without_ratios_an_observation_is_what_is_measured():
    seen = jnp.ones((4, 2))
    assert Quantities().measured(seen) is seen
    assert Quantities().counted(2).all()


def test_a_rule_is_about_what_is_asked_about():
    asked = Quantities.of(("0/1",), (2,))
    assert asked.number(2) == 3
    assert asked.counted(3).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("ratios", "about", "words"),
    [
        (("0/2",), None, "no quantity 2; there are 2"),
        (("0/1",), (3,), "no quantity 3; there are 3"),
        ((), (-1,), "no quantity -1"),
        ((), (), "there must be a quantity"),
        (("0",), None, "like 22/6"),
        (("a/b",), None, "like 22/6"),
        (("1/2/3",), None, "like 22/6"),
    ],
)
def test_what_is_not_there_is_an_error(ratios, about, words):
    with pytest.raises(ArgumentError, match=words):
        Quantities.of(ratios, about).check(2)
