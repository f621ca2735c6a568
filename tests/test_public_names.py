"""The names that people may rely on, and what `import tacit` does and does not do."""

import inspect
import os
import subprocess
import sys

import pytest

import tacit

# Section 2 of the architecture.
PROMISED = {
    "make": ("name",),
    "register": ("name", "build"),
    "task_from_jax": ("world", "name", "options"),
    "JaxStep": ("state", "observation", "reward", "costs", "terminated", "truncated"),
    "TabularTask": ("transitions", "rewards", "costs", "initial", "horizon"),
    "Trajectories": ("observations", "actions", "rewards", "lengths"),
    "train_expert": ("task", "seed"),
    "collect": ("expert", "number", "seed"),
    "infer": ("task", "demonstrations", "method", "confidence", "seed"),
    "evaluate": ("result",),
    "sufficient": ("task", "demonstrations", "confidence", "reward"),
    "load": ("folder",),
    "CostWrapper": ("env",),
    "SimulatedResult": ("constraint", "policy", "metrics", "training", "settings", "task"),
    "beta_quantile": ("probability", "alpha", "beta"),
}


@pytest.mark.parametrize("name", PROMISED)
def test_promised_names_are_public_and_documented(name):
    assert name in tacit.__all__
    documented = getattr(tacit, name)
    assert callable(documented)
    assert documented.__doc__
    assert len(documented.__doc__.split()) >= 5


@pytest.mark.parametrize(("name", "arguments"), PROMISED.items())
def test_promised_arguments_are_there_in_the_promised_order(name, arguments):
    taken = [own for own in inspect.signature(getattr(tacit, name)).parameters if own in arguments]
    assert tuple(taken) == arguments


def test_every_public_name_exists_and_says_what_it_is():
    assert len(set(tacit.__all__)) == len(tacit.__all__)
    for name in tacit.__all__:
        documented = inspect.getdoc(getattr(tacit, name)) or ""
        assert documented.strip(), name
        # What dataclasses write by themselves explains nothing.
        assert not documented.startswith(f"{name}("), name


def test_import_registers_the_environments_and_leaves_the_precision_of_jax_alone():
    program = (
        "import jax, warnings\n"
        "warnings.simplefilter('error')\n"
        "import tacit, gymnasium\n"
        "print(jax.config.jax_enable_x64, jax.numpy.ones(1).dtype)\n"
        "print(sorted(name for name in gymnasium.registry if name.startswith('tacit/')))\n"
        "print(gymnasium.make('tacit/Chain-v0', length=5, limit=-1).reset(seed=0)[0])\n"
    )
    clean = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "False float32",
        str(
            [
                f"tacit/{name}-v0"
                for name in (
                    "BiasedPendulum",
                    "BlockedAnt",
                    "BlockedHalfCheetah",
                    "BlockedPoint",
                    "BlockedSwimmer",
                    "BlockedWalker",
                    "Chain",
                    "GridWorld",
                    "HighwayDistance",
                    "HighwayVelocity",
                )
            ]
        ),
        "2",
    ]
