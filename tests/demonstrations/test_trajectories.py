import copy
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tacit.demonstrations import checks
from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError, DemonstrationError


def example(lengths=(2, 5, 3), seed=0, with_costs=True, **changes):
    draw = np.random.default_rng(seed).normal
    fields = {
        "observations": [draw(size=(steps + 1, 3)) for steps in lengths],
        "actions": [draw(size=(steps, 2)) for steps in lengths],
        "rewards": [draw(size=steps) for steps in lengths],
        "costs": [np.arange(steps) == 3 for steps in lengths] if with_costs else None,
    }
    return Trajectories.from_arrays(**{**fields, **changes})


def test_episodes_of_different_lengths_are_padded_with_zeros():
    trajectories = example()
    assert trajectories.observations.shape == (3, 6, 3)
    assert trajectories.actions.shape == (3, 5, 2)
    assert trajectories.lengths.tolist() == [2, 5, 3]
    assert trajectories.mask.sum(axis=1).tolist() == [2, 5, 3]
    assert not trajectories.rewards[~trajectories.mask].any()
    assert not trajectories.observations[0, 3:].any()
    assert trajectories.steps == 10
    assert len(trajectories) == 3


def test_an_episode_comes_back_without_padding():
    episodes = list(example(terminated=[True, False, True]))
    assert [len(episode) for episode in episodes] == [2, 5, 3]
    assert [episode.observations.shape for episode in episodes] == [(3, 3), (6, 3), (4, 3)]
    assert [episode.terminated for episode in episodes] == [True, False, True]
    assert example()[-1].rewards.tolist() == episodes[2].rewards.tolist()
    with pytest.raises(IndexError):
        example()[3]


def test_returns_and_violations_are_per_episode():
    trajectories = example(rewards=[[1, 2], [1, 1, 1, 1, 1], [0, 0, -4]])
    assert trajectories.returns.tolist() == [3, 5, -4]
    assert trajectories.violated.tolist() == [False, True, False]
    with pytest.raises(DemonstrationError, match="'costs'"):
        _ = example(with_costs=False).violated


def test_nothing_can_be_changed_afterwards():
    given = np.zeros((1, 3, 1))
    trajectories = Trajectories(given, np.zeros((1, 2, 1)), np.zeros((1, 2)), np.array([2]))
    given[:] = 7
    assert not trajectories.observations.any()
    with pytest.raises(ValueError, match="read-only"):
        trajectories.observations[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        trajectories[0].rewards[0] = 1
    with pytest.raises(FrozenInstanceError):
        trajectories.rewards = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        trajectories.provenance["task"] = "other"  # type: ignore[index]


def large(number=64, steps=256, lengths=None):
    """Arrays of a few megabytes that the caller has given up."""
    arrays = {
        "observations": np.ones((number, steps + 1, 18), np.float32),
        "actions": np.ones((number, steps, 6), np.float32),
        "rewards": np.ones((number, steps), np.float32),
    }
    lengths = np.full(number, steps) if lengths is None else lengths
    for name, array in arrays.items():
        rows = lengths + (name == "observations")
        array[np.arange(array.shape[1]) >= rows[:, None]] = 0
        array.setflags(write=False)
    return {**arrays, "lengths": lengths}


def ragged():
    return np.maximum(1, np.arange(64) * 4 + 4)


@pytest.mark.parametrize("lengths", [None, ragged()], ids=["equal", "ragged"])
def test_read_only_arrays_are_taken_over(lengths):
    given = large(lengths=lengths)
    trajectories = Trajectories(**given)
    for name in ("observations", "actions", "rewards"):
        assert getattr(trajectories, name) is given[name]
    writable = {name: array.copy() for name, array in given.items()}
    assert trajectories == Trajectories(**writable)


def frozen(array):
    array.setflags(write=False)
    return array


NOT_GIVEN_UP = {
    "writable": lambda: np.zeros((2, 4, 1)),
    "a view of a writable one": lambda: frozen(np.zeros((2, 4, 1))[:]),
    "memory of others": lambda: frozen(np.frombuffer(bytearray(64)).reshape(2, 4, 1)),
    "a part of more": lambda: frozen(np.zeros((9, 4, 1)))[:2],
    "another order": lambda: frozen(np.zeros((2, 4, 3), order="F")),
    "another type": lambda: frozen(np.zeros((2, 4, 1), np.float16)),
    "too long": lambda: frozen(np.zeros((2, 5, 1))),
    "not zero beyond": lambda: frozen(np.ones((2, 4, 1))),
    "minus zero beyond": lambda: frozen(-np.zeros((2, 4, 1))),
}


@pytest.mark.parametrize("case", NOT_GIVEN_UP)
def test_other_arrays_are_copied(case):
    given = NOT_GIVEN_UP[case]()
    trajectories = Trajectories(given, np.zeros((2, 3, 1)), np.zeros((2, 3)), np.array([3, 2]))
    assert not np.shares_memory(trajectories.observations, given)
    assert not trajectories.observations.flags.writeable
    assert not trajectories.observations[1, 3:].view(np.uint8).any()


def test_a_view_of_all_of_a_read_only_array_is_taken_over():
    given = frozen(np.zeros(8)).reshape(2, 4, 1)
    trajectories = Trajectories(given, np.zeros((2, 3, 1)), np.zeros((2, 3)), np.array([3, 3]))
    assert trajectories.observations is given


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (lambda given, _: Trajectories(**given), 0.1),
        (lambda given, _: Trajectories(**{n: a.copy() for n, a in given.items()}), 2.1),
        (lambda _, known: known.take(np.arange(64)[::-1]), 1.1),
        (lambda _, known: known.subset(32, seed=0), 0.6),
        (lambda _, known: known + known, 2.2),
    ],
    ids=["read-only", "writable", "take", "subset", "merge"],
)
@pytest.mark.parametrize("lengths", [None, ragged()], ids=["equal", "ragged"])
def test_large_records_are_not_held_more_often_than_needed(monkeypatch, build, most, lengths):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 2**16)
    given = large(lengths=lengths)
    known = Trajectories(**given)
    tracemalloc.start()
    built = build(given, known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(built) in (32, 64, 128)
    assert peak < most * sum(array.nbytes for array in given.values())


@pytest.mark.parametrize("size", [1, 2**10, 2**24])
def test_blocks_of_any_size_find_the_same_mistake(monkeypatch, size):
    monkeypatch.setattr(checks, "BLOCK_BYTES", size)
    rewards = np.zeros((40, 9))
    rewards[17, 8] = rewards[30, 0] = np.inf
    rewards[16, 8] = np.nan
    arrays = np.zeros((40, 10, 2)), np.zeros((40, 9, 1)), rewards
    with pytest.raises(DemonstrationError, match="episode 17, field 'rewards', step 8: is inf"):
        Trajectories(*arrays, np.where(np.arange(40) == 16, 8, 9))


def test_what_lies_beyond_an_episode_is_ignored_and_cut():
    padded = np.full((1, 9, 1), np.nan)
    padded[:, :3] = 1
    trajectories = Trajectories(padded, padded[:, :8] * 0 + 1, np.ones((1, 8)), np.array([1]))
    assert trajectories.observations.tolist() == [[[1], [1]]]
    assert trajectories.rewards.tolist() == [[1]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_numbers_keep_their_precision(dtype):
    trajectories = example(observations=[np.ones((steps + 1, 1), dtype) for steps in (2, 5, 3)])
    assert trajectories.observations.dtype == dtype


def test_integer_lists_are_discrete():
    trajectories = Trajectories.from_arrays([[0, 1, 2], [3, 4]], [[0, 1], [1]], [[0, 1], [1]])
    assert trajectories.observations.dtype == np.int64
    assert trajectories.observations.shape == (2, 3, 1)
    assert trajectories.actions[0].tolist() == [[0], [1]]
    assert trajectories.rewards.dtype == np.float64


def test_the_same_seed_draws_the_same_subset_and_smaller_ones_are_its_start():
    trajectories = example(lengths=range(1, 31))
    large = trajectories.subset(20, seed=4)
    small = trajectories.subset(5, seed=4)
    assert small == large.take(range(5))
    assert large == trajectories.subset(20, seed=4)
    assert len(set(large.lengths.tolist())) == 20
    assert small != trajectories.subset(5, seed=5)
    assert small.provenance["subsets"] == [{"number": 5, "seed": 4, "of": 30}]


@pytest.mark.parametrize(("number", "seed"), [(0, 0), (4, 0), (-1, 0), (2, -1)])
def test_an_impossible_subset_is_refused(number, seed):
    with pytest.raises(ArgumentError):
        example().subset(number, seed=seed)


@pytest.mark.parametrize("indices", [[], [3], [-4], [0.5], [[0]]])
def test_taking_episodes_that_are_not_there_is_refused(indices):
    with pytest.raises(ArgumentError, match="indices"):
        example().take(indices)


def test_merging_keeps_order_and_pads():
    first, second = example(lengths=(2,), seed=1), example(lengths=(7, 1), seed=2)
    both = first + second
    assert both.lengths.tolist() == [2, 7, 1]
    assert both.take([0]) == first
    assert both.take([1, 2]) == second
    assert Trajectories.merge([first]) == first
    with pytest.raises(ArgumentError):
        Trajectories.merge([])


def test_merging_remembers_where_the_parts_come_from():
    first, second = example(provenance={"seed": 1}), example(provenance={"seed": 2})
    assert (first + second).provenance == {"merged": [{"seed": 1}, {"seed": 2}]}
    assert (first + first).provenance == {"seed": 1}


def test_merging_what_does_not_belong_together_is_refused():
    with pytest.raises(DemonstrationError, match="'costs'"):
        example() + example(with_costs=False)
    other = example(observations=[np.ones((steps + 1, 4)) for steps in (2, 5, 3)])
    with pytest.raises(DemonstrationError, match="episode 3, field 'observations'"):
        example() + other
    other = example(actions=[np.ones((steps, 2), np.float32) for steps in (2, 5, 3)])
    with pytest.raises(DemonstrationError, match=r"field 'actions'.*float32"):
        example() + other
    with pytest.raises(TypeError):
        example() + 1  # type: ignore[operator]


def test_equality_is_by_numbers_not_by_origin():
    assert example() == example(provenance={"seed": 1})
    assert example() != example(seed=1)
    assert example() != example(with_costs=False)
    assert example() != "trajectories"


def test_records_can_be_copied_and_sent_to_a_worker_process():
    trajectories = example(provenance={"seed": 1})
    for other in (copy.deepcopy(trajectories), pickle.loads(pickle.dumps(trajectories))):
        assert other == trajectories
        assert other.provenance == {"seed": 1}


def test_the_representation_is_one_short_line():
    assert repr(example()) == (
        "Trajectories(3 episodes, 10 steps, observations 3 x float64, actions 2 x float64, "
        "with costs)"
    )


@pytest.mark.parametrize("facts", [{"array": np.zeros(2)}, {"value": float("nan")}, {"a": {1, 2}}])
def test_provenance_must_be_json(facts):
    with pytest.raises(DemonstrationError, match="provenance"):
        example(provenance=facts)


BAD_EPISODES = {
    "no final observation": (
        {"observations": [np.ones((2, 3)), np.ones((6, 3)), np.ones((4, 3))]},
        "episode 0, field 'observations'.*final",
    ),
    "NaN": (
        {"rewards": [[0, 0], [0, 0, np.nan, 0, 0], [0, 0, 0]]},
        "episode 1, field 'rewards', step 2: is nan",
    ),
    "infinite": (
        {"actions": [np.ones((2, 2)), np.ones((5, 2)), np.full((3, 2), -np.inf)]},
        "episode 2, field 'actions', step 0: is -inf",
    ),
    "empty episode": ({"rewards": [[0, 0], [], [0, 0, 0]]}, "episode 1, field 'rewards'.*no steps"),
    "fewer costs": ({"costs": [[0, 0], [0] * 4, [0] * 3]}, "episode 1, field 'costs'.*4 rows"),
    "words": ({"actions": [[["a", "b"]] * 2] * 3}, "episode 0, field 'actions'.*not numbers"),
    "complex": ({"rewards": [[1j, 0], [0] * 5, [0] * 3]}, "episode 0, field 'rewards'.*complex"),
    "ragged": ({"actions": [[[1, 2], [1]]] * 3}, "episode 0, field 'actions'.*different lengths"),
    "real 1-D": ({"actions": [np.ones(2)] * 3}, "episode 0, field 'actions'.*shape"),
    "other size": (
        {"actions": [np.ones((2, 2)), np.ones((5, 3)), np.ones((3, 2))]},
        "episode 1, field 'actions'.*episode 0",
    ),
    "too few episodes": ({"actions": [np.ones((2, 2))]}, "field 'actions'.*1 episodes"),
    "terminated": ({"terminated": [1, 0]}, "field 'terminated'"),
    "terminated value": ({"terminated": [1, 0, 2]}, "field 'terminated'"),
    "no size": (
        {"actions": [np.ones((steps, 0)) for steps in (2, 5, 3)]},
        "field 'actions'.*shape",
    ),
    "uint64": (
        {"actions": [np.full((steps, 2), 2**63, np.uint64) for steps in (2, 5, 3)]},
        "episode 0, field 'actions'.*int64",
    ),
}


@pytest.mark.parametrize("case", BAD_EPISODES)
def test_bad_episodes_are_refused_with_episode_and_field(case):
    changes, message = BAD_EPISODES[case]
    with pytest.raises(DemonstrationError, match=message):
        example(**changes)


def test_no_episodes_are_refused():
    with pytest.raises(DemonstrationError, match="no episodes"):
        Trajectories.from_arrays([], [], [])


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([], "no episodes"),
        ([2, 0], "episode 1, field 'lengths'"),
        ([-1, 2], "episode 0, field 'lengths'"),
        ([2, 3], "episode 1, field 'observations': needs 4 rows, has 3"),
        ([2.0, 2.0], "whole numbers"),
        ([[2, 2]], "whole numbers"),
        ([2, 2, 2], "holds 2 episodes"),
    ],
)
def test_bad_lengths_are_refused(lengths, message):
    arrays = np.zeros((2, 3, 1)), np.zeros((2, 2, 1)), np.zeros((2, 2))
    with pytest.raises(DemonstrationError, match=message):
        Trajectories(*arrays, np.array(lengths, dtype=None if lengths else int))


def test_padding_beyond_all_memory_is_refused(monkeypatch):
    monkeypatch.setattr(checks, "LARGEST_BYTES", 100)
    with pytest.raises(DemonstrationError, match="field 'observations': padded to"):
        example()
