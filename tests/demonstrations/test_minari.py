"""Minari opens what we write and we open what Minari writes: both ways with the real library."""

import json
import shutil

import gymnasium
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from minari.data_collector import EpisodeBuffer
from minari.dataset._storages.hdf5_storage import HDF5Storage

from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import DemonstrationError

# Minari warns that no environment was given, which is the point, and drops a temporary folder.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`eval_env` is set to None:UserWarning"),
    pytest.mark.filterwarnings("ignore:env_spec is None:UserWarning"),
    pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning"),
]

LENGTHS = (4, 1, 7)
ABOUT = {
    "code_permalink": "https://example.org",
    "author": "someone",
    "author_email": "someone@example.org",
    "algorithm_name": "expert",
    "description": "a test",
}


@pytest.fixture(autouse=True)
def minari_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def real_episodes(dtype=np.float64, **more):
    draw = np.random.default_rng(0).normal
    return Trajectories.from_arrays(
        observations=[draw(size=(steps + 1, 3)).astype(dtype) for steps in LENGTHS],
        actions=[draw(size=(steps, 2)).astype(dtype) for steps in LENGTHS],
        rewards=[draw(size=steps) for steps in LENGTHS],
        terminated=[True, False, True],
        **more,
    )


def discrete_episodes():
    draw = np.random.default_rng(0).integers
    return Trajectories.from_arrays(
        observations=[draw(0, 9, steps + 1) for steps in LENGTHS],
        actions=[draw(-2, 3, steps) for steps in LENGTHS],
        rewards=[np.ones(steps) for steps in LENGTHS],
        costs=[draw(0, 2, steps) for steps in LENGTHS],
    )


def assert_minari_says_the_same(dataset, ours):
    assert len(dataset) == len(ours)
    assert dataset.total_steps == ours.steps
    for theirs, episode in zip(dataset.iterate_episodes(), ours, strict=True):
        assert len(theirs) == len(episode)
        for name in ("observations", "actions"):
            array = getattr(theirs, name)
            assert np.array_equal(array.reshape(len(array), -1), getattr(episode, name))
            assert array.dtype == getattr(episode, name).dtype
        assert np.array_equal(theirs.rewards, episode.rewards)
        assert theirs.terminations.tolist() == [False] * (len(episode) - 1) + [episode.terminated]
        assert theirs.truncations[-1] != episode.terminated
        if episode.costs is not None:
            assert np.array_equal(theirs.infos["cost"][1:], episode.costs)
        assert all(row in dataset.observation_space for row in theirs.observations)
        assert all(row in dataset.action_space for row in theirs.actions)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minari_opens_our_folder(minari_folder, dtype):
    ours = real_episodes(dtype, costs=[np.arange(steps) % 2 for steps in LENGTHS])
    ours.save(minari_folder / "experts-v2")
    dataset = minari.load_dataset("experts-v2")
    assert dataset.id == "experts-v2"
    assert dataset.observation_space.shape == (3,)
    assert_minari_says_the_same(dataset, ours)
    assert_minari_says_the_same(minari.MinariDataset(minari_folder / "experts-v2" / "data"), ours)


def test_minari_opens_our_discrete_folder(minari_folder):
    ours = discrete_episodes()
    ours.save(minari_folder / "grid")
    dataset = minari.MinariDataset(minari_folder / "grid" / "data")
    assert isinstance(dataset.observation_space, Discrete)
    assert isinstance(dataset.action_space, Discrete)
    assert dataset.action_space.start == -2
    assert dataset[0].observations.shape == (LENGTHS[0] + 1,)
    assert dataset.spec.dataset_name == "grid"
    assert_minari_says_the_same(dataset, ours)


def test_minari_opens_integers_of_several_dimensions(minari_folder):
    ours = Trajectories.from_arrays([[[1, -2], [3, 4]]], [[[0, 9]]], [[1.0]])
    ours.save(minari_folder / "pairs")
    assert_minari_says_the_same(minari.MinariDataset(minari_folder / "pairs" / "data"), ours)


def test_minari_reads_our_single_file(minari_folder):
    ours = real_episodes()
    ours.save(minari_folder / "experts.hdf5")
    (minari_folder / "data").mkdir()
    shutil.copy(minari_folder / "experts.hdf5", minari_folder / "data" / "main_data.hdf5")
    unbounded = [Box(-np.inf, np.inf, (size,), np.float64) for size in (3, 2)]
    episodes = HDF5Storage(minari_folder / "data", *unbounded).get_episodes(range(3))
    for theirs, episode in zip(episodes, ours, strict=True):
        assert np.array_equal(theirs["observations"], episode.observations)


def test_minari_can_add_episodes_to_our_folder(minari_folder):
    ours = real_episodes()
    ours.save(minari_folder / "experts-v0")
    dataset = minari.load_dataset("experts-v0")
    dataset.update_dataset_from_buffer([buffer(episode) for episode in ours.take([1])])
    grown = Trajectories.load(minari_folder / "experts-v0")
    assert grown == ours + ours.take([1])


def buffer(episode, infos=None, flat=False):
    last = np.arange(len(episode)) == len(episode) - 1
    return EpisodeBuffer(
        observations=episode.observations[:, 0] if flat else episode.observations,
        actions=episode.actions[:, 0] if flat else episode.actions,
        rewards=list(episode.rewards),
        terminations=list(last & episode.terminated),
        truncations=list(last & (not episode.terminated)),
        infos=infos,
    )


def create(buffers, observation_space, action_space, name="theirs-v0", **options):
    return minari.create_dataset_from_buffers(
        name,
        buffers,
        observation_space=observation_space,
        action_space=action_space,
        **ABOUT,
        **options,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("extra", [0, 1], ids=["info per step", "info of reset too"])
def test_we_open_what_minari_wrote(minari_folder, dtype, extra):
    costs = [np.arange(steps) % 2.0 for steps in LENGTHS]
    ours = real_episodes(dtype, costs=costs)
    buffers = [
        buffer(episode, {"cost": [9.0] * extra + list(cost), "other": [1] * len(cost)})
        for episode, cost in zip(ours, costs, strict=True)
    ]
    create(buffers, Box(-9, 9, (3,), dtype), Box(-9, 9, (2,), dtype))
    folder = minari_folder / "theirs-v0"
    for path in (folder, folder / "data", folder / "data" / "main_data.hdf5"):
        assert Trajectories.load(path) == ours
    assert Trajectories.load(folder).provenance["minari"]["algorithm_name"] == "expert"


def test_we_open_discrete_data_that_minari_wrote_and_keep_its_spaces(minari_folder):
    ours = discrete_episodes()
    buffers = [buffer(episode, {"cost": list(episode.costs)}, flat=True) for episode in ours]
    create(buffers, Discrete(20), Discrete(7, start=-3))
    loaded = Trajectories.load(minari_folder / "theirs-v0")
    assert loaded == ours
    loaded.save(minari_folder / "again-v0")
    again = minari.load_dataset("again-v0")
    assert again.observation_space == Discrete(20)
    assert again.action_space == Discrete(7, start=-3)


def test_we_open_integers_of_several_dimensions_that_minari_wrote(minari_folder):
    ours = Trajectories.from_arrays([[[1, 2], [0, 1]]], [[[0, 1]]], [[1.0]])
    create(map(buffer, ours), MultiDiscrete([3, 4]), MultiDiscrete([2, 2]))
    assert Trajectories.load(minari_folder / "theirs-v0") == ours


class Walk(gymnasium.Env):
    """One step to the right or left; the cost is being right of 2."""

    observation_space = Box(-100, 100, (1,), np.float32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x], np.float32), {"cost": 0.0}

    def step(self, action):
        self.x += 2 * int(action) - 1
        observation = np.array([self.x], np.float32)
        return observation, self.x, self.x < -1, False, {"cost": float(self.x > 2)}


def test_we_open_what_minaris_collector_recorded(minari_folder):
    env = minari.DataCollector(gymnasium.wrappers.TimeLimit(Walk(), 6), record_infos=True)
    for actions in ([1, 1, 1, 0, 1, 1], [0, 0]):
        env.reset(seed=1)
        for action in actions:
            env.step(action)
    env.create_dataset("walk-v0", **ABOUT)
    env._tmp_dir.cleanup()
    loaded = Trajectories.load(minari_folder / "walk-v0")
    assert loaded.observations[0, :, 0].tolist() == [0, 1, 2, 3, 2, 3, 4]
    assert loaded.observations.dtype == np.float32
    assert loaded.costs is not None
    assert loaded.costs[0].tolist() == [0, 0, 1, 0, 1, 1]
    assert loaded.lengths.tolist() == [6, 2]
    assert loaded.terminated.tolist() == [False, True]
    assert loaded.actions[1].tolist() == [[0], [0], [0], [0], [0], [0]]


def test_dictionary_observations_are_refused_by_key(minari_folder):
    space = Dict({"goal": Box(0, 1, (1,)), "arm": Box(0, 1, (2,))})
    rows = {"goal": np.zeros((2, 1), np.float32), "arm": np.zeros((2, 2), np.float32)}
    end = {"rewards": [0.0], "terminations": [True], "truncations": [False]}
    create([EpisodeBuffer(observations=rows, actions=np.zeros(1, int), **end)], space, Discrete(2))
    with pytest.raises(DemonstrationError, match=r"episode 0, field 'observations'.*arm, goal"):
        Trajectories.load(minari_folder / "theirs-v0")


def test_packed_images_are_refused(minari_folder):
    rows = np.zeros((2, 32, 32, 3), np.uint8)
    end = {"rewards": [0.0], "terminations": [True], "truncations": [False]}
    images = EpisodeBuffer(observations=rows, actions=np.zeros(1, int), **end)
    create([images], Box(0, 255, (32, 32, 3), np.uint8), Discrete(2))
    with pytest.raises(DemonstrationError, match="episode 0, field 'observations'"):
        Trajectories.load(minari_folder / "theirs-v0")


def test_another_storage_format_is_refused_by_name(minari_folder):
    real_episodes().save(minari_folder / "experts-v0")
    data = minari_folder / "experts-v0" / "data"
    facts = json.loads((data / "metadata.json").read_text())
    (data / "metadata.json").write_text(json.dumps({**facts, "data_format": "arrow"}))
    (data / "main_data.hdf5").unlink()
    with pytest.raises(DemonstrationError, match=r"experts-v0: .*arrow"):
        Trajectories.load(minari_folder / "experts-v0")
