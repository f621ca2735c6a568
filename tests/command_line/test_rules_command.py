"""`tacit rules`: what is forbidden, in words."""

import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.constraint_model import Spaces

CHAIN = ("--set", "length=11", "limit=-2", "horizon=10", "reward_scale=10")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    main(["expert", "Chain", "--out", str(folder / "experts.hdf5"), "--number", "12", *CHAIN])
    options = ["--experts", str(folder / "experts.hdf5"), "--confidence", "0.7"]
    main(["infer", "Chain", *options, "--out", str(folder / "run"), *CHAIN])
    return folder / "run"


def lines(capsys, *arguments):
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out.splitlines()


def test_rules_are_printed_the_strongest_first(run, capsys):
    constraint = tacit.load(run).constraint
    title, *found = lines(capsys, "rules", run)
    assert title == f"{run} (counts on {constraint.facts['task']}) at confidence 0.7:"
    rules = constraint.rules()
    assert rules
    assert found == [f"{place}. {rule}" for place, rule in enumerate(rules, start=1)]
    assert "is forbidden" in found[0]


def test_they_are_read_at_any_confidence_and_from_a_file_too(run, capsys):
    file = run / "constraint.safetensors"
    constraint = tacit.Constraint.load(file)
    title, *found = lines(capsys, "rules", file, "--confidence", 0.95)
    assert title.endswith("at confidence 0.95:")
    assert [line.split(". ", 1)[1] for line in found] == [str(r) for r in constraint.rules(0.95)]


def test_a_rule_nobody_speaks_for_is_said_to_be_none(tmp_path, capsys, run):
    constraint = tacit.Constraint.load(run / "constraint.safetensors")
    model = constraint.model
    free = type(model)(
        np.full_like(model.alpha, 20.0), np.ones_like(model.beta), model.reading, model.budget,
        model.number_of_actions, model.rule_on,
    )  # fmt: skip
    tacit.Constraint(free, 0.7, constraint.spaces, True).save(tmp_path / "free.safetensors")
    title, found = lines(capsys, "rules", tmp_path / "free.safetensors")
    assert title.endswith("free.safetensors at confidence 0.7:")
    assert found.startswith("no rule")


def failure(capsys, *arguments):
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert left.value.code == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert len(caught.err.splitlines()) == 1
    return caught.err


def test_a_network_has_no_rules_and_says_so_in_one_line(tmp_path, capsys, point):
    task, _ = point
    spaces = Spaces(task.observation_space, task.action_space)
    model = ClassifierModel.blank(spaces, {"hidden": [4]})
    path = tacit.Constraint(model, 0.8, spaces, False).save(tmp_path / "network.safetensors")
    assert "network, which nobody can read" in failure(capsys, "rules", path)


def test_a_confidence_that_is_none_is_one_line(run, capsys):
    assert "strictly between 0 and 1" in failure(capsys, "rules", run, "--confidence", 1.5)


def test_the_constraint_of_a_table_has_nothing_to_calibrate(run, capsys):
    experts = run.parent / "experts.hdf5"
    for place in (run, run / "constraint.safetensors"):
        error = failure(capsys, "calibrate", place, "--experts", experts)
        assert "has nothing to calibrate" in error
