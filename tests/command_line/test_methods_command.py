"""`tacit methods`: what there is, and what each method can be told."""

import dataclasses
import re
import subprocess
import sys

import pytest

from tacit.command_line import main
from tacit.command_line.inputs import annotations_of, kind_in_words
from tacit.command_line.methods import default_of, first_sentence, meanings_of
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.counts.counts import Counts
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.encoder.method import CAICRL
from tacit.inference.reach.method import Reach
from tacit.methods import METHODS

OURS = ("bc2l", "gacl", "icl", "icrl", "vicrl", "counts", "likelihood", "ca-icrl", "reach")


@pytest.fixture
def printed(capsys, monkeypatch):
    """What a command prints, with single spaces and without the lines of tables."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr("tacit.command_line.console.console.width", 250, raising=False)

    def run(*arguments):
        main(arguments)
        return re.sub(r"[\s│┃]+", " ", capsys.readouterr().out)

    return run


def test_all_methods_are_listed_with_what_they_need(printed):
    text = printed("methods")
    for name in OURS:
        assert f" {name} " in text
        assert first_sentence(METHODS[name]) in text
    assert "counts tables heeded" in text
    assert "reach simulators, tables heeded" in text
    assert "vicrl simulators, tables - " in text


@pytest.mark.parametrize("name", OURS)
def test_all_settings_are_listed_with_kind_default_and_meaning(printed, name):
    text, kind = printed("methods", name), METHODS[name]
    kinds, meanings = annotations_of(kind), meanings_of(kind)
    for field in dataclasses.fields(kind):
        words = [
            field.name,
            kind_in_words(kinds[field.name]),
            default_of(field),
            meanings[field.name],
        ]
        assert " ".join(" ".join(words).split()) in text


@pytest.mark.parametrize("arguments", [("--method", "vicrl"), ("--method=vicrl",)])
@pytest.mark.parametrize("command", ["infer", "sufficient", "tradeoff"])
def test_help_method_asks_for_neither_task_nor_experts(printed, command, arguments):
    expected = printed("methods", "vicrl")
    assert printed(command, *arguments, "--help-method") == expected
    assert printed(command, "Chain", "--help-method", *arguments) == expected


def test_help_method_without_a_method_lists_them_all(printed):
    assert printed("infer", "--help-method") == printed("methods")


def test_the_nearest_class_says_what_a_setting_means():
    assert meanings_of(Counts)["votes"].startswith('"visits": a state that one expert visited')
    assert meanings_of(Likelihood)["reading"] == meanings_of(Counts)["reading"]
    assert meanings_of(VICRL)["prior"] == "alpha and beta of the prior."
    assert meanings_of(BC2L)["every"] == "updates of the policy between two of the constraint."


def test_kinds_and_defaults_are_written_as_on_the_command_line():
    def of(kind, name):
        field = {field.name: field for field in dataclasses.fields(kind)}[name]
        return kind_in_words(annotations_of(kind)[name]), default_of(field)

    assert of(Reach, "about") == ("int,int,... | none", "none")
    assert of(Reach, "ratios") == ("text,text,...", "")
    assert of(Reach, "start") == ("nothing | clone", "nothing")
    assert of(VICRL, "prior") == ("float,float", "0.9,0.1")
    assert of(CAICRL, "encoder") == ("text", "transformer")
    assert of(CAICRL, "width") == ("int", "32")


@pytest.mark.parametrize(
    "arguments", [("methods", "vicrl"), ("infer", "--method", "vicrl", "--help-method")]
)
def test_the_settings_are_shown_in_a_fresh_process(arguments):
    done = subprocess.run(
        [sys.executable, "-c", "from tacit.command_line import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "multiplier_rate" in done.stdout or "learning_rate" in done.stdout
