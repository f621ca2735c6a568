"""CA-ICRL on tables by sampling: what is counted, what rounds do, and what comes out."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacit
from tacit.control import conduct
from tacit.control.constrained_planning import Dynamics
from tacit.control.policy_mixture import mixed_policy
from tacit.control.ppo import PPO
from tacit.control.sampled_planning import Played
from tacit.control.soft_planning import occupancy
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_compiled import tabular_compiled
from tacit.errors import ArgumentError, DivergenceError, StorageError
from tacit.inference import sampled_ca_icrl
from tacit.inference.counted_belief import LEVELS
from tacit.inference.data_set import DataSet
from tacit.inference.round_settings import round_settings
from tacit.inference.sampled_ca_icrl import ENDS, ROUNDS, SWEEPS, TEMPTING, SampledRounds
from tacit.inference.sampled_inference import in_rounds


@pytest.fixture(scope="module", autouse=True)
def few_episodes():
    """Policies are watched for less long; that they are watched well is tested by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conduct, "WATCHED", 2**13)
        yield


@pytest.fixture(scope="module")
def task():
    """Nine states, of which the two most rewarding are forbidden."""
    return chain(length=9, limit=-2, horizon=10, reward_scale=3)


@pytest.fixture(scope="module")
def walks(task):
    return tacit.collect(tacit.train_expert(task), 12, seed=3)


@pytest.fixture(scope="module")
def quick(task):
    """Rounds of four updates."""
    settings = round_settings(task)
    return dataclasses.replace(
        settings, worlds=8, minibatch=8 * 10 // 2, epochs=1, hidden=(8,), steps=4 * 8 * 10
    )


def test_a_data_set_counts_visitors_and_actions(task, walks):
    counted = DataSet.of(task, walks)
    visitors = np.zeros(task.number_of_states)
    actions = np.zeros((task.horizon, task.number_of_states, task.number_of_actions))
    for states, taken, length in zip(
        walks.observations[:, :, 0], walks.actions, walks.lengths, strict=True
    ):
        for state in set(states[:length].tolist()):
            visitors[state] += 1
        for step in range(length):
            actions[step, states[step], np.ravel(taken)[step]] += 1
    assert counted.number == len(walks)
    np.testing.assert_array_equal(counted.visitors, visitors)
    np.testing.assert_array_equal(counted.actions, actions)


@pytest.fixture(scope="module")
def followed(task, walks, quick):
    """A finished run with a large budget, the orders of its rounds and who was tempted in each."""
    generous = dataclasses.replace(task, budget=0.5)
    run = SampledRounds(generous, [DataSet.of(task, walks)], [0.9], [0], quick)
    run.compiled = tabular_compiled(task)
    orders, tempted = [], []
    while not run.finished:
        orders.append(run.orders())
        run.advance()
        tempted.append(run.tempted.copy())
    return run, orders, tempted


def test_rounds_tempt_first_and_end_at_the_confidence(followed):
    run, orders, tempted = followed
    assert run.iteration == len(orders) == ROUNDS
    assert not np.asarray(orders[0].costs).any()
    for place, ordered in enumerate(orders):
        tempting = place < len(TEMPTING)
        imitate, price = (False, 1.0) if tempting else ENDS[place - len(TEMPTING)]
        assert bool(ordered.imitate[0]) == imitate
        assert float(ordered.price[0]) == price
        assert bool(ordered.firm[0]) != tempting
        assert float(ordered.budget[0]) == pytest.approx(0.5 if tempting else 1 - 0.9)
        assert tempting or float(run.prices[place, 0]) == price
    for before, after in itertools.pairwise(tempted):
        assert (after >= before).all()
    # What the levels of a sweep find counts when all of them have been played.
    counts = [
        place + 1 for place in range(1, ROUNDS) if (tempted[place] > tempted[place - 1]).any()
    ]
    assert counts
    assert set(counts) <= set(SWEEPS)
    # The last rounds find out no more: what they play is the constraint's own policy.
    np.testing.assert_array_equal(tempted[len(TEMPTING) - 1], tempted[-1])
    assert tempted[0].max() > 0


def test_a_run_ends_with_the_best_mixture_of_what_it_met(task, followed):
    run, *_ = followed
    dynamics = Dynamics.of(task)
    ending = run.ending(0)
    policy, weights, spent, _ = ending
    costs = np.asarray(run.costs(run.confidences)[0])[:, None]
    for each, cost in zip(run.policies[:, 0], spent, strict=True):
        pairs = occupancy(dynamics.transitions, dynamics.initial, jnp.asarray(each))
        assert cost == pytest.approx(float((pairs * costs).sum()), rel=0.1, abs=0.01)
    assert weights @ spent <= max(0.1, 1.05 * spent.min()) + 1e-6
    assert run.facts(ending)["learned_cost"] == pytest.approx(weights @ spent)
    np.testing.assert_allclose(
        policy, mixed_policy(run.policies[:, 0], run.presence[:, 0], weights)
    )


def test_a_sweep_counts_what_fits_the_budget(task, walks, quick):
    """By hand: one policy goes everywhere at a cost, one nowhere for nothing."""
    run = SampledRounds(task, [DataSet.of(task, walks)], [0.9], [0], quick)
    run.iteration, free, seen = SWEEPS[1], 4, task.number_of_states - 1
    run.tempted[:] = 0.9 * (np.arange(task.number_of_states) < free)
    beyond = int(np.flatnonzero(run.costs(run.confidences)[0] > 0)[0])
    run.policies[:6] = 1 / 3
    run.presence[:6, 0, :, free] = 1
    run.visits[:6, 0, free] = 1
    run.presence[1, 0, :, free], run.presence[1, 0, :, beyond] = 0, 1
    run.visits[1, 0] = np.isin(np.arange(task.number_of_states), [beyond, seen])
    levels = [run.costs(jnp.full(1, level))[0, beyond] * task.horizon for level in LEVELS]
    run.tempt()
    assert run.tempted[0, free] == 1
    assert run.tempted[0, beyond] == pytest.approx(0.9)
    # The first policy of a sweep is that of the first level.
    assert (
        task.budget / levels[0] - 1e-4 <= run.tempted[0, seen] <= task.budget / min(levels) + 1e-4
    )
    assert run.tempted[0, seen] < 1


def test_what_tempts_is_found_once_for_all_confidences(task, walks, quick):
    sets = [DataSet.of(task, walks), DataSet.of(task, walks.take([0, 1]))]
    both = SampledRounds(task, sets, [0.5, 0.5], [4, 5], quick)
    both.advance()
    named = both.at([1, 1, 0], [0.3, 0.9, 0.7])
    assert named.iteration == 1
    np.testing.assert_array_equal(named.tempted, both.tempted[[1, 1, 0]])
    np.testing.assert_array_equal(named.policies, both.policies[:, [1, 1, 0]])
    np.testing.assert_array_equal(named.numbers, [2, 2, 12])
    np.testing.assert_allclose(named.confidences, [0.3, 0.9, 0.7])
    np.testing.assert_array_equal(
        jax.random.key_data(named.keys), jax.random.key_data(both.keys[np.array([1, 1, 0])])
    )
    both.iteration = len(TEMPTING) + 1
    with pytest.raises(ArgumentError, match="have begun"):
        both.at([0], [0.5])


def test_runs_side_by_side_are_what_they_are_alone(task, walks, quick):
    sets = [DataSet.of(task, walks), DataSet.of(task, walks.take([0, 1, 2, 3]))]
    both = SampledRounds(task, sets, [0.9, 0.5], [4, 5], quick)
    alone = SampledRounds(task, sets[1:], [0.5], [5], quick)
    for _ in range(2):
        both.advance()
        alone.advance()
    np.testing.assert_allclose(both.tempted[1], alone.tempted[0], atol=0.02)
    assert np.abs(both.tempted[0] - both.tempted[1]).max() > 0


def test_a_result_is_like_that_of_the_exact_computation(task, walks, quick, tmp_path):
    told = []
    result = tacit.infer(
        task,
        walks,
        confidence=0.7,
        seed=2,
        sampled=True,
        forward=quick,
        folder=tmp_path / "run",
        progress=told.append,
    )
    assert isinstance(result, tacit.Result)
    assert len(told) == ROUNDS
    assert result.settings["sampled"] is True
    np.testing.assert_allclose(result.policy.sum(axis=-1), 1)
    exact = tacit.infer(task, walks, confidence=0.7)
    # Visits are proof either way; what nobody visited is judged by what was tempting.
    np.testing.assert_allclose(result.constraint.alpha, exact.constraint.alpha)
    assert 0 <= float(tacit.evaluate(result).violation.value) <= 1
    again = tacit.load(tmp_path / "run")
    np.testing.assert_array_equal(again.policy, result.policy)
    np.testing.assert_array_equal(again.constraint.beta, result.constraint.beta)


def test_a_run_goes_on_bit_for_bit(task, walks, quick, tmp_path, monkeypatch):
    asked = {"confidence": 0.8, "seed": 1, "sampled": True, "forward": quick}
    whole = tacit.infer(task, walks, **asked)
    advance, rounds = SampledRounds.advance, iter(range(5))

    def stopped(run):
        if next(rounds, None) is None:
            raise KeyboardInterrupt
        return advance(run)

    monkeypatch.setattr(SampledRounds, "advance", stopped)
    with pytest.raises(KeyboardInterrupt):
        tacit.infer(task, walks, folder=tmp_path / "run", **asked)
    with pytest.raises(StorageError, match="not finished"):
        tacit.load(tmp_path / "run")
    monkeypatch.setattr(SampledRounds, "advance", advance)
    heard = []
    continued = tacit.infer(task, walks, folder=tmp_path / "run", notice=heard.append, **asked)
    assert "goes on" in heard[0]
    np.testing.assert_array_equal(continued.policy, whole.policy)
    np.testing.assert_array_equal(continued.constraint.beta, whole.constraint.beta)
    with pytest.raises(StorageError, match="other settings"):
        tacit.infer(task, walks, folder=tmp_path / "run", **{**asked, "confidence": 0.5})
    generous = dataclasses.replace(task, budget=0.5)
    with pytest.raises(StorageError, match="other settings"):
        tacit.infer(generous, walks, folder=tmp_path / "run", **asked)


@pytest.mark.slow
def test_pairs_may_be_what_a_rule_is_about(quick):
    task = dataclasses.replace(chain(length=9, limit=-2, horizon=10), rule_on="pair")
    walks = tacit.collect(tacit.train_expert(task), 5, seed=0)
    result = tacit.infer(task, walks, sampled=True, forward=quick)
    assert result.constraint.beta.shape == (task.number_of_states * task.number_of_actions,)
    assert (result.constraint.beta > 1).any()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"temptation": 0.5}, "no setting temptation"),
        ({"reading": "soft"}, "no setting reading='soft'"),
        ({"confidence": 1.5}, "confidence"),
        ({"objective": "reach"}, "no setting objective='reach'"),
        ({"forward": round_settings(chain())}, "rollout must be 10"),
        ({"forward": PPO(rollout=10)}, "discount must be 1.0"),
    ],
)
def test_what_makes_no_sense_is_refused(task, walks, wrong, words):
    with pytest.raises(ArgumentError, match=words):
        tacit.infer(task, walks, sampled=True, **wrong)


def test_a_budget_of_another_kind_is_refused(task, walks, quick):
    price = dataclasses.replace(quick.multiplier, budget_per="step")
    with pytest.raises(ArgumentError, match=r"multiplier\.budget_per must be 'episode'"):
        tacit.infer(task, walks, sampled=True, forward=dataclasses.replace(quick, multiplier=price))


def test_a_round_that_ends_in_no_number_stops_the_run(task, walks, quick, monkeypatch):
    run = SampledRounds(task, [DataSet.of(task, walks)], [0.9], [0], quick)
    shape = (1, task.horizon, task.number_of_states, task.number_of_actions)
    played = Played(jnp.full(shape, 1 / 3), jnp.full(1, jnp.nan))
    monkeypatch.setattr(sampled_ca_icrl, "play_rounds", lambda *given: played)
    with pytest.raises(DivergenceError, match=f"price is not finite in round 1 of {ROUNDS}"):
        run.advance()
    assert run.iteration == 0


def test_settings_of_an_encoder_are_not_for_rounds():
    assert in_rounds("ca-icrl", {})
    assert in_rounds("ca-icrl", {"objective": "counts", "votes": "visits"})
    assert in_rounds("ca-icrl", {"temptation": 0.5})
    assert not in_rounds("ca-icrl", {"objective": "counts", "width": 8})
    assert in_rounds("ca-icrl", {"votes": "visits-fallible"})
    assert not in_rounds("ca-icrl", {"objective": "counts", "votes": "visits-fallible"})
    assert not in_rounds("vicrl", {})


def test_violations_in_the_demonstrations_are_warned_of(task, walks, quick):
    costs = np.zeros_like(walks.costs)
    costs[0, 0] = 1
    with pytest.warns(UserWarning, match="1 demonstrations have steps with a cost"):
        tacit.infer(task, dataclasses.replace(walks, costs=costs), sampled=True, forward=quick)


@pytest.mark.slow
def test_the_belief_is_nearly_that_of_the_exact_computation(task, walks):
    settings = dataclasses.replace(round_settings(task), steps=100 * 64 * 10)
    sampled = tacit.infer(task, walks, confidence=0.7, sampled=True, forward=settings)
    exact = tacit.infer(task, walks, confidence=0.7)
    share = (sampled.constraint.beta - exact.constraint.beta) / len(walks)
    np.testing.assert_allclose(share, 0, atol=0.15)
    assert (exact.constraint.beta > 5).any()
