"""Every public function shows how it is called, and what it shows is true."""

import doctest
import inspect

import numpy as np
import pytest

import tacit

FUNCTIONS = [name for name in tacit.__all__ if inspect.isfunction(getattr(tacit, name))]


def examples_of(name):
    documented = getattr(tacit, name)
    known = {**vars(inspect.getmodule(documented)), "tacit": tacit, "np": np}
    return doctest.DocTestFinder(recurse=False).find(documented, name, globs=known)


def test_there_are_functions():
    assert {"infer", "evaluate", "make", "sufficient"} <= set(FUNCTIONS)


@pytest.mark.usefixtures("hasty_imitation")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_gives_what_it_says(name):
    (found,) = examples_of(name)
    assert found.examples, f"{name} has no example"
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(found, out=said.append).failed == 0, "".join(said)
