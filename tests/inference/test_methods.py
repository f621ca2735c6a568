"""Settings of methods: what they may be, and what each task starts from."""

import dataclasses
import itertools

import pytest

import tacit
from tacit.errors import ArgumentError
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.gacl import GACL
from tacit.inference.baselines.icl import ICL
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.counts.counts import Counts
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.encoder.method import CAICRL
from tacit.inference.method import ExactMethod, chosen_method, default_method, find_method
from tacit.inference.reach.method import Reach
from tacit.methods import METHODS

OURS = (BC2L, CAICRL, GACL, ICL, ICRL, VICRL, Counts, Likelihood, Reach)
ACTING = tuple(kind for kind in OURS if not issubclass(kind, ExactMethod))
TRAINED = tuple(kind for kind in ACTING if kind is not Reach)
POINT, CHAIN = tacit.make("BlockedPoint"), tacit.make("Chain")
DATA = tacit.Trajectories.from_arrays([[0, 1]], [[0]], [[0.0]])

every_method = pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.name)


def typo(kind):
    """A setting of the method, and the same with its second and third letter the wrong way."""
    meant = dataclasses.fields(kind)[-1].name
    return meant[0] + meant[2] + meant[1] + meant[3:], meant


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
        (CAICRL, {"objective": "contrast", "votes": "abstain"}, "does not go with"),
        (CAICRL, {"objective": "counts"}, "objective must be 'quantile'"),
        (CAICRL, {"votes": "visits"}, "does not go with"),
        (CAICRL, {"objective": "evidence", "votes": "visits"}, "does not go with"),
        (CAICRL, {"reading": "gentle"}, "reading"),
        (CAICRL, {"granularity": "episode"}, "granularity"),
        (CAICRL, {"encoder": "lstm"}, "encoder"),
        (CAICRL, {"encoder": int}, "encoder"),
        (CAICRL, {"encoder": tacit.Encoder}, "encoder"),
        (CAICRL, {"tokens": 0}, "tokens"),
        (Reach, {"every": 0}, "every"),
        (Reach, {"temptation": -0.1}, "temptation"),
        (ICRL, {"temptation": 1.1}, "temptation"),
        (Reach, {"reading": "gentle"}, "reading"),
        (Reach, {"objective": "counts"}, "objective"),
        (Reach, {"start": "able"}, "start must be 'nothing' or 'clone'"),
        (Reach, {"votes": "independent"}, "votes must be 'visits' or"),
        (Counts, {"votes": "abstain"}, "votes must be 'visits' or"),
        (Likelihood, {"objective": "counts"}, "objective must be 'evidence' or"),
        (GACL, {"weight": -1.0}, "weight"),
        (BC2L, {"minibatch": 0}, "minibatch"),
        (BC2L, {"rows": 2.5}, "rows"),
        (BC2L, {"final_learning_rate": 2}, "final_learning_rate"),
        (BC2L, {"budget": float("nan")}, "budget"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, settings, message):
    with pytest.raises(ArgumentError, match=message):
        kind(**settings)


def test_layers_may_be_given_as_a_list_and_settings_are_hashable():
    assert ICRL(hidden=[8, 8]) == ICRL(hidden=(8, 8))
    for kind in OURS:
        assert hash(kind()) == hash(kind())
        assert kind() == kind()


@pytest.mark.parametrize(
    ("objective", "votes"),
    [("contrast", "visits"), ("evidence", "independent"), ("quantile", "independent")],
)
def test_votes_follow_the_objective(objective, votes):
    assert CAICRL(objective=objective).votes == votes


def test_the_papers_own_algorithm_is_what_ca_icrl_means():
    paper = METHODS["ca-icrl"]()
    assert (paper.objective, paper.votes, paper.reading) == ("quantile", "independent", "soft")
    assert not paper.any_confidence
    assert CAICRL(objective="evidence").any_confidence


@pytest.mark.parametrize("kind", ACTING, ids=lambda kind: kind.name)
def test_every_method_has_settings_for_every_robot(kind):
    for robot in ("BlockedHalfCheetah", "BiasedPendulum"):
        task = tacit.make(robot)
        method = find_method(kind.name).preset(task)
        assert type(method) is kind
        assert kind.forward(task).steps >= 1_000_000
        assert kind.preset(task, every=77).settings()["every"] == 77


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.name)
def test_a_preset_is_what_worked_on_the_task_and_what_is_asked_for(kind):
    pendulum = tacit.make("BiasedPendulum")
    worked = kind() if kind is GACL else kind(every=2, passes=40, learning_rate=3e-3)
    assert kind.preset(pendulum) == worked
    assert kind.preset(pendulum, passes=7) == dataclasses.replace(worked, passes=7)
    assert kind.preset(POINT) == kind()


def test_settings_of_forward_control_are_of_the_task_but_for_the_price():
    cheetah, pendulum = tacit.make("BlockedHalfCheetah"), tacit.make("BiasedPendulum")
    for kind in ACTING:
        price = kind.forward(cheetah).multiplier
        assert price.budget_per == kind.budget_per
        assert price.kind == {Reach: "share", ICL: "penalty"}.get(kind, price.kind)
    assert VICRL.forward(cheetah).multiplier.largest == 2
    # Where experts need a penalty, so do policies under a learned rule.
    assert VICRL.forward(pendulum).multiplier.kind == "penalty"
    assert Reach.forward(pendulum).multiplier.kind == "share"
    assert (Reach.forward(cheetah).intent, Reach.forward(cheetah).relative_costs) == (0.25, False)


def test_one_quantity_need_not_be_a_tuple():
    assert Reach(about=3, ratios="1/2").settings()["about"] == (3,)
    assert Reach(about=[3, 4], ratios=["1/2"]).ratios == ("1/2",)


@every_method
def test_a_misspelt_setting_is_named_with_the_method_and_the_nearest_one(kind):
    wrong, meant = typo(kind)
    words = rf"method '{kind.name}' has no setting '{wrong}'; it has .*; did you mean {meant}\?"
    task = CHAIN if issubclass(kind, ExactMethod) else POINT
    for ask in (
        lambda **settings: kind(**settings),
        lambda **settings: kind.preset(task, **settings),
        lambda **settings: find_method(kind.name).preset(task, **settings),
        lambda **settings: dataclasses.replace(kind(), **settings),
    ):
        with pytest.raises(ArgumentError, match=words):
            ask(**{wrong: 1})
    # In capital letters it is near, and still another word.
    with pytest.raises(ArgumentError, match=rf"no setting '{meant.upper()}'.*mean {meant}\?"):
        kind(**{meant.upper(): 1})


@every_method
def test_a_word_that_is_near_nothing_is_answered_by_all_settings(kind):
    with pytest.raises(ArgumentError, match="has no setting 'qqqq'") as caught:
        kind(qqqq=1)
    assert "did you mean" not in str(caught.value)
    for field in dataclasses.fields(kind):
        assert field.name in str(caught.value)


@every_method
def test_a_setting_of_another_method_never_changes_which_one_runs(kind):
    own = {field.name for field in dataclasses.fields(kind)}
    others = {field.name for other in OURS for field in dataclasses.fields(other)} - own
    assert others
    for setting, make in itertools.product(others, (kind, lambda **s: kind.preset(CHAIN, **s))):
        with pytest.raises(ArgumentError, match=f"method '{kind.name}' has no setting '{setting}'"):
            make(**{setting: 1})


@every_method
def test_settings_are_given_by_name(kind):
    with pytest.raises(ArgumentError, match=f"{kind.__name__} takes its settings by name"):
        kind(5)


@every_method
def test_settings_cannot_be_changed_and_are_documented(kind):
    method, documented = kind(), "".join(base.__doc__ or "" for base in kind.__mro__)
    for field in dataclasses.fields(kind):
        assert f" {field.name}:" in documented, field.name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, 1)
    assert set(method.settings()) == {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("icrll", "icrl"),
        ("CA-ICRL", "ca-icrl"),
        ("ca_icrl", "ca-icrl"),
        ("count", "counts"),
        ("Reach", "reach"),
        ("likelyhood", "likelihood"),
        ("bcl2", "bc2l"),
    ],
)
def test_an_unknown_method_is_answered_by_all_names_and_the_nearest(name, meant):
    for ask in (find_method, lambda name: tacit.infer(CHAIN, DATA, method=name)):
        with pytest.raises(ArgumentError, match=rf"did you mean {meant}\?") as caught:
            ask(name)
        for known in OURS:
            assert known.name in str(caught.value)
        assert repr(name) in str(caught.value)


def test_a_name_near_nothing_has_no_nearest():
    with pytest.raises(ArgumentError, match="method must be one of") as caught:
        find_method("zzz")
    assert "did you mean" not in str(caught.value)


def test_every_method_of_ours_is_known_by_its_name():
    for kind in OURS:
        assert find_method(kind.name) is METHODS[kind.name] is kind


def test_the_default_is_counts_on_tables_and_reach_on_simulators():
    assert default_method(CHAIN) is Counts
    assert default_method(POINT) is Reach
    assert chosen_method(None, CHAIN) == Counts()
    assert chosen_method(None, POINT) == Reach.preset(POINT)


@pytest.mark.parametrize("kind", [Counts, Likelihood])
def test_what_computes_on_tables_is_refused_elsewhere_with_the_alternative(kind):
    assert kind.fits(CHAIN)
    assert not kind.fits(POINT)
    for method in (kind.name, kind()):
        with pytest.raises(ArgumentError, match=f"'{kind.name}' .*BlockedPoint.*; 'reach'"):
            tacit.infer(POINT, DATA, method=method)


def test_an_object_is_taken_as_it_is_and_a_name_stands_for_the_preset():
    pendulum = tacit.make("BiasedPendulum")
    own = VICRL(regulariser=0.1)
    assert chosen_method(own, pendulum) is own
    assert chosen_method("vicrl", pendulum) == VICRL.preset(pendulum) != VICRL()
    assert chosen_method("vicrl", CHAIN) == VICRL()
