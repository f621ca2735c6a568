"""The last policy or the imitation it began as: by the learned rule, and only if it is clear."""

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.control.play import Episodes
from tacit.inference import final_policy as module
from tacit.inference.final_policy import chosen_policy

LAST, IMITATION = SimpleNamespace(name="last"), SimpleNamespace(name="imitation")
WORLDS = SimpleNamespace(close=lambda: None)


class Rule:
    """Forbids observations above 1."""

    promises, confidence = False, 0.7

    def cost(self, observations, actions):
        assert len(observations) == len(actions)
        return np.where(observations[:, 0] > 1, 0.9, 0.4)


@pytest.fixture
def choose(monkeypatch):
    """Which is chosen if they earn so much an episode, and are at these places."""

    def choice(last, imitation, last_at=0.0, imitation_at=0.0, padding_at=0.0, promises=False):
        def play(worlds, act, *, seed):
            assert (worlds, seed) == (WORLDS, 7)
            earned, place = (last, last_at) if act is LAST else (imitation, imitation_at)
            earned = np.broadcast_to(earned, 64).astype(float)
            observations = np.zeros((64, 4, 1))
            observations[:, :2] = np.broadcast_to(place, 64)[:, None, None]
            observations[:, 2:] = padding_at
            return Episodes(
                observations=observations,
                actions=np.zeros((64, 3, 1)),
                rewards=np.stack([earned, 0 * earned, 0 * earned], axis=1),
                costs=np.ones((64, 3, 1)),  # the true cost, which must not matter
                lengths=np.full(64, 2),
                terminated=np.ones(64, bool),
            )

        monkeypatch.setattr(module, "play", play)
        monkeypatch.setattr(module, "as_function", lambda actor: actor)
        trainer = SimpleNamespace(
            actor=LAST,
            now=SimpleNamespace(imitation=IMITATION),
            task=SimpleNamespace(worlds=lambda number, threads: WORLDS),
            iteration=12,
            world_seed={12: 7}.__getitem__,
        )
        rule = Rule()
        rule.promises = promises
        return chosen_policy(trainer, rule, None).name

    return choice


def test_who_earns_more_within_the_learned_rule_is_chosen(choose):
    assert choose(last=5, imitation=4) == "last"
    assert choose(last=4, imitation=5) == "imitation"
    assert choose(last=5, imitation=5) == "last"


def test_what_is_earned_by_breaking_the_learned_rule_does_not_count(choose):
    assert choose(last=9, imitation=4, last_at=2.0) == "imitation"
    assert choose(last=4, imitation=9, imitation_at=2.0) == "last"


def test_where_rewards_are_charges_breaking_the_rule_is_no_gain(choose):
    assert choose(last=-9, imitation=-9, last_at=2.0) == "last"
    assert choose(last=-9, imitation=-5, imitation_at=2.0) == "last"


def test_a_promise_goes_before_a_gain(choose):
    share = np.linspace(0, 1, 64)

    def broken(part):
        """Places that break the rule in this part of the episodes."""
        return np.where(share < part, 2.0, 0.0)

    # At confidence 0.7 the rule may be broken in 30 % of the episodes.
    for last, imitation, chosen in (
        (0.25, 0.05, "last"),
        (0.45, 0.25, "imitation"),
        (0.45, 0.40, "imitation"),
        (0.45, 0.60, "last"),
    ):
        places = {"last_at": broken(last), "imitation_at": broken(imitation)}
        assert choose(last=9, imitation=4, **places, promises=True) == chosen
        # Where nothing is promised, there is nothing to keep.
        assert choose(last=9, imitation=4, **places) == "last"


def test_steps_after_the_end_do_not_count(choose):
    assert choose(last=5, imitation=4, padding_at=2.0) == "last"


def test_a_small_gain_among_large_differences_is_none(choose):
    noise = np.random.default_rng(0).normal(0, 10, 64)
    assert choose(last=0, imitation=noise - noise.mean() + 1) == "last"
    assert choose(last=0, imitation=noise - noise.mean() + 4) == "imitation"


def test_who_never_imitated_is_the_last_one():
    trainer = SimpleNamespace(actor=LAST, now=SimpleNamespace(imitation=None))
    assert chosen_policy(trainer, Rule(), None) is LAST
