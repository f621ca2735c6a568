"""Reward and violation against confidence, exactly and by one run with warm starts."""

import json

import pytest

import tacit
from tacit.command_line import main
from tacit.control.multiplier import Multiplier
from tacit.errors import ArgumentError
from tacit.evaluation import tradeoff as module

pytestmark = pytest.mark.usefixtures("hasty_imitation")

TINY = tacit.PPO(
    steps=8 * 4 * 20,
    worlds=4,
    rollout=20,
    minibatch=40,
    epochs=2,
    hidden=(8,),
    intent=0.5,
    multiplier=Multiplier(kind="share", budget_per="worst", largest=10.0),
)


def test_on_a_table_every_level_is_what_inference_gives():
    task = tacit.make("Chain")
    demonstrations = tacit.collect(tacit.train_expert(task), 10, seed=1)
    choices = tacit.tradeoff(task, demonstrations, confidences=(0.9, 0.5))
    assert [choice.confidence for choice in choices] == [0.5, 0.9]
    for choice in choices:
        result = tacit.infer(task, demonstrations, confidence=choice.confidence)
        assert choice.violation == tacit.evaluate(result).violation
        assert choice.violation <= choice.promised


def test_one_run_in_full_and_a_quarter_for_each_further_level(point, monkeypatch):
    monkeypatch.setattr(module, "EXECUTED_EPISODES", 4)
    told = []
    choices = tacit.tradeoff(
        *point, confidences=(0.3, 0.5, 0.9), forward=TINY, progress=told.append
    )
    assert [choice.confidence for choice in choices] == [0.3, 0.5, 0.9]
    assert [facts["iteration"] for facts in told] == [*range(1, 9), 7, 8, 7, 8]
    # A quarter of the learning rates, but other draws: the repeated iterations differ.
    assert told[8]["kl"] != told[6]["kl"] != told[10]["kl"]
    again = tacit.tradeoff(*point, confidences=(0.3, 0.5, 0.9), forward=TINY)
    assert again == choices


def test_levels_must_differ_and_be_levels(point):
    with pytest.raises(ArgumentError, match="differ"):
        tacit.tradeoff(*point, confidences=(0.5, 0.5))
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        tacit.tradeoff(*point, confidences=(0.5, 1.5))
    with pytest.raises(ArgumentError, match="one confidence only"):
        tacit.tradeoff(*point, method="ca-icrl")
    with pytest.raises(ArgumentError, match=r"did you mean reach\?"):
        tacit.tradeoff(*point, method="rech")


def test_the_command_writes_a_table_and_a_figure(tmp_path, capsys):
    task = tacit.make("Chain")
    tacit.collect(tacit.train_expert(task), 5, seed=1).save(tmp_path / "experts.hdf5")
    experts, out = str(tmp_path / "experts.hdf5"), tmp_path / "out"
    main(
        [
            "tradeoff",
            "Chain",
            "--experts",
            experts,
            "--out",
            str(out),
            "--confidences",
            "0.5",
            "0.9",
        ]
    )
    rows = json.loads((out / "tradeoff.json").read_text())
    assert [row["confidence"] for row in rows] == [0.5, 0.9]
    assert (out / "tradeoff.png").read_bytes().startswith(b"\x89PNG")
    assert "<= 10 %" in capsys.readouterr().out
