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
    "Result": ("constraint", "policy", "metrics", "settings", "task", "training"),
    "Constraint": (
        "model",
        "confidence",
        "spaces",
        "any_confidence",
        "facts",
        "threshold",
        "names",
    ),
    "ConstraintModel": (),
    "Method": ("every", "temptation"),
    "Encoder": (),
    "RuleFamily": ("task", "allowed"),
    "limit_rules": ("task",),
    "subset_rules": ("task", "candidates"),
    "exact_posterior": ("family", "demonstrations"),
    "tradeoff": ("task", "demonstrations", "method", "confidences", "seed"),
    "calibrate": ("constraint",),
    "recovery": ("constraint", "task", "behaviours"),
    "transfer": ("constraint", "task", "reward"),
    "CostWrapper": ("env",),
    "beta_quantile": ("probability", "alpha", "beta"),
}


@pytest.mark.parametrize("name", PROMISED)
def test_promised_names_are_public_and_documented(name):
    assert name in tacit.__all__
    documented = getattr(tacit, name)
    assert callable(documented)
    assert documented.__doc__
    assert len(documented.__doc__.split()) >= 5


# What the call decides by itself is not among the settings of a method.
WHOLE = {
    "infer": (
        "task",
        "demonstrations",
        "method",
        "confidence",
        "seed",
        "forward",
        "folder",
        "threads",
        "progress",
        "notice",
    ),
    "load": ("folder",),
}
METHODS = ("BC2L", "CAICRL", "Counts", "GACL", "ICL", "ICRL", "Likelihood", "Reach", "VICRL")
# Names of version 0.1.0 that would now mean two things.
GONE = ("SimulatedResult", "LearnedConstraint", "TabularConstraint")


@pytest.mark.parametrize(("name", "arguments"), WHOLE.items())
def test_these_take_nothing_else(name, arguments):
    assert tuple(inspect.signature(getattr(tacit, name)).parameters) == arguments


def test_everything_but_task_and_demonstrations_is_given_by_name():
    parameters = inspect.signature(tacit.infer).parameters.values()
    assert [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY] == [
        "task",
        "demonstrations",
    ]


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_public_by_their_names(name):
    kind = getattr(tacit.methods, name)
    assert name in tacit.methods.__all__
    assert kind.__name__ == name
    assert tacit.methods.METHODS[kind.name] is kind
    assert "Fields:" in inspect.getdoc(kind) or name == "BC2L"
    assert all(
        each.kind is each.KEYWORD_ONLY for each in inspect.signature(kind).parameters.values()
    )


@pytest.mark.parametrize("name", GONE)
def test_names_of_before_are_gone(name):
    assert not hasattr(tacit, name)


def test_what_is_given_back_is_typed():
    for function, given in ((tacit.infer, "Result"), (tacit.load, "Result")):
        returned = inspect.signature(function).return_annotation
        assert getattr(returned, "__name__", returned) == given


def test_importing_the_package_imports_no_jax():
    program = (
        "import sys, tacit; print([name for name in ('jax', 'equinox') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


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
