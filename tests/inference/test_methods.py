"""Settings of methods: what they may be, and what each task starts from."""

import pytest

import tacit
from tacit.errors import ArgumentError
from tacit.inference.baselines.icl import ICL
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.encoder.method import CAICRL
from tacit.inference.methods import KINDS, METHODS, forward_preset, kind_of, make_method
from tacit.inference.reach.method import ReachCAICRL


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ICRL, {"hidden": 64}, "hidden"),
        (ICRL, {"hidden": (64, 0)}, "hidden"),
        (ICRL, {"regulariser": -1.0}, "regulariser"),
        (ICRL, {"past": 1.5}, "past"),
        (ICRL, {"every": 0}, "every"),
        (ICRL, {"learning_rate": 0.0}, "learning_rate"),
        (ICL, {"penalty": -1.0}, "penalty"),
        (VICRL, {"prior": (0.9,)}, "prior"),
        (VICRL, {"prior": (0.9, 0.0)}, "prior"),
        (CAICRL, {"objective": "counts", "votes": "abstain"}, "does not go with"),
        (CAICRL, {"objective": "evidence", "votes": "visits"}, "does not go with"),
        (CAICRL, {"reading": "gentle"}, "reading"),
        (CAICRL, {"granularity": "episode"}, "granularity"),
        (CAICRL, {"encoder": "lstm"}, "encoder"),
        (CAICRL, {"tokens": 0}, "tokens"),
        (ReachCAICRL, {"every": 0}, "every"),
        (ReachCAICRL, {"temptation": -0.1}, "temptation"),
        (ICRL, {"temptation": 1.1}, "temptation"),
        (ReachCAICRL, {"reading": "gentle"}, "reading"),
        (ReachCAICRL, {"objective": "counts"}, "objective"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, settings, message):
    with pytest.raises(ArgumentError, match=message):
        kind(**settings)


def test_layers_may_be_given_as_a_list_and_settings_are_hashable():
    assert ICRL(hidden=[8, 8]) == ICRL(hidden=(8, 8))
    for kind in (*KINDS.values(), CAICRL):
        assert hash(kind()) == hash(kind())


@pytest.mark.parametrize(
    ("objective", "votes"),
    [("counts", "visits"), ("evidence", "independent"), ("quantile", "independent")],
)
def test_votes_follow_the_objective(objective, votes):
    assert CAICRL(objective=objective).votes == votes


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_settings_for_every_robot(name):
    for robot in ("BlockedHalfCheetah", "BiasedPendulum"):
        task = tacit.make(robot)
        method = make_method(name, task, {})
        assert method.name == name
        assert forward_preset(type(method), task).steps >= 1_000_000
        assert make_method(name, task, {"rows": 77}).settings()["rows"] == 77


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, ReachCAICRL),
        ({"reading": "hard", "temptation": 0.5}, ReachCAICRL),
        ({"objective": "reach"}, ReachCAICRL),
        ({"objective": "quantile"}, CAICRL),
        ({"encoder": "bidaf"}, CAICRL),
        ({"votes": "visits"}, ReachCAICRL),
        ({"votes": "visits-fallible", "about": (0,)}, ReachCAICRL),
        ({"votes": "visits", "width": 8}, CAICRL),
        ({"temtation": 0.1}, ReachCAICRL),
    ],
)
def test_an_objective_or_a_setting_of_the_encoder_chooses_the_encoder(settings, kind):
    assert kind_of("ca-icrl", settings) is kind
    if "temtation" in settings:
        with pytest.raises(ArgumentError, match="did you mean temptation"):
            make_method("ca-icrl", tacit.make("BlockedPoint"), settings)
        return
    assert type(make_method("ca-icrl", tacit.make("BlockedPoint"), settings)) is kind


def test_votes_that_are_learned_are_those_of_an_encoder():
    assert kind_of("ca-icrl", {"votes": "abstain"}) is CAICRL


def test_one_quantity_need_not_be_a_tuple():
    assert ReachCAICRL(about=3, ratios="1/2").settings()["about"] == (3,)
    assert ReachCAICRL(about=[3, 4], ratios=["1/2"]).ratios == ("1/2",)
    with pytest.raises(ArgumentError, match="votes must be 'visits' or"):
        ReachCAICRL(votes="independent")


def test_reach_does_not_take_settings_of_the_encoder():
    with pytest.raises(ArgumentError, match="no setting 'encoder'"):
        make_method("ca-icrl", tacit.make("BlockedPoint"), {"objective": "reach", "encoder": "x"})
