import json
import os
import re

import h5py
import numpy as np
import pytest

from tacit.demonstrations import minari_file
from tacit.demonstrations.minari_file import describe_space, parse_space
from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError, DemonstrationError, StorageError, TacitError


def example(seed=0, lengths=(4, 2, 6)):
    draw = np.random.default_rng(seed).normal
    return Trajectories.from_arrays(
        observations=[draw(size=(steps + 1, 3)) for steps in lengths],
        actions=[draw(size=(steps, 2)) for steps in lengths],
        rewards=[draw(size=steps) for steps in lengths],
        costs=[np.arange(steps) for steps in lengths],
        terminated=[steps == 2 for steps in lengths],
        provenance={"task": "Chain", "seed": 3},
    )


@pytest.fixture
def path(tmp_path):
    example().save(tmp_path / "experts.hdf5")
    return tmp_path / "experts.hdf5"


def replaced(name, value):
    def change(file):
        del file[name]
        file[name] = value

    return change


def deleted(name):
    return lambda file: file.__delitem__(name)


def with_nan(file):
    file["episode_2/observations"][3, 1] = np.nan


def with_attribute(group, name, value):
    return lambda file: file[group].attrs.__setitem__(name, value)


def with_link(file):
    del file["episode_0/rewards"]
    file["episode_0/rewards"] = h5py.ExternalLink("other.hdf5", "/rewards")


def early_end(file):
    file["episode_2/terminations"][1] = True


def huge(file):
    del file["episode_0/actions"]
    file.create_dataset("episode_0/actions", (2**40, 2), float, chunks=(1024, 2))


DAMAGES = {
    "missing group": (deleted("episode_1"), "episode 1: .*promises 3 episodes and holds 2"),
    "missing last": (deleted("episode_2"), "episode 2: .*promises 3 episodes and holds 2"),
    "renamed group": (lambda f: f.move("episode_1", "episode_7"), "episode 1: is missing"),
    "one more group": (lambda f: f.create_group("episode_3"), "episode 3: .*promises 3 .*holds 4"),
    "missing field": (deleted("episode_1/rewards"), "episode 1, field 'rewards': is missing"),
    "no terminations": (deleted("episode_0/terminations"), "episode 0, field 'terminations'"),
    "missing cost": (deleted("episode_2/infos/cost"), "episode 2, field 'infos/cost'"),
    "NaN": (with_nan, "episode 2, field 'observations', step 3: is nan"),
    "short": (replaced("episode_1/actions", np.ones((1, 2))), "episode 1, field 'actions'.*1 rows"),
    "lost rewards": (
        replaced("episode_1/rewards", np.ones(1)),
        "episode 1, field 'rewards'.*1 row",
    ),
    "wide": (replaced("episode_1/actions", np.ones((2, 3))), r"episode 1, field 'actions'.*\(3,\)"),
    "flat": (replaced("episode_0/observations", np.ones(5)), "episode 0, field 'observations'"),
    "scalar": (replaced("episode_0/rewards", 1.0), "episode 0, field 'rewards'"),
    "text": (replaced("episode_0/rewards", ["a"] * 4), "episode 0, field 'rewards'"),
    "complex": (replaced("episode_0/actions", np.ones((4, 2)) * 1j), "episode 0, field 'actions'"),
    "zero steps": (replaced("episode_0/rewards", np.ones(0)), "episode 0, field 'rewards'"),
    "long cost": (replaced("episode_0/infos/cost", np.ones(9)), "episode 0, field 'costs'.*9 rows"),
    "link": (with_link, "episode 0, field 'rewards': is a link"),
    "array for group": (replaced("episode_1", np.ones(3)), "episode 1: is missing or not a group"),
    "wrong steps": (with_attribute("episode_1", "total_steps", 5), "episode 1, .*promises 5"),
    "bad steps": (
        with_attribute("episode_1", "total_steps", "x"),
        "episode 1, field 'total_steps'",
    ),
    "total": (with_attribute("/", "total_steps", 99), "field 'total_steps': .*99"),
    "episodes": (with_attribute("/", "total_episodes", "many"), "promises many episodes"),
    "facts": (with_attribute("/", "tacit_provenance", "{"), "tacit_provenance"),
    "early end": (early_end, "episode 2, field 'terminations', step 1: the episode ends here"),
    "marks": (replaced("episode_1/truncations", [False] * 9), "episode 1, field 'truncations'.*9"),
    "odd marks": (replaced("episode_1/truncations", [0, 7]), "episode 1, field 'truncations'"),
    "huge": (huge, "episode 0, field 'actions': declares"),
    "nothing": (lambda f: (f.clear(), f.attrs.clear()), "no episodes"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_file_is_refused_with_file_episode_and_field(path, case):
    change, message = DAMAGES[case]
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(DemonstrationError, match=message) as error:
        Trajectories.load(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"random bytes" * 99, "not HDF5"),
        (b"\x89HDF\r\n\x1a\n", "cannot be read"),
    ],
)
def test_what_is_not_hdf5_is_refused(tmp_path, content, message):
    (tmp_path / "file.hdf5").write_bytes(content)
    with pytest.raises(DemonstrationError, match=f"file.hdf5: .*{message}"):
        Trajectories.load(tmp_path / "file.hdf5")


def test_missing_files_and_foreign_folders_are_refused(tmp_path):
    with pytest.raises(DemonstrationError, match=r"nowhere\.hdf5: does not exist"):
        Trajectories.load(tmp_path / "nowhere.hdf5")
    with pytest.raises(DemonstrationError, match=r"is a folder without data/main_data\.hdf5"):
        Trajectories.load(tmp_path)


@pytest.mark.parametrize("part", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(path, part):
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(DemonstrationError, match=r"experts\.hdf5"):
        Trajectories.load(path)


def test_any_flipped_byte_is_noticed_or_harmless(path):
    content, original = path.read_bytes(), example()
    random = np.random.default_rng(0)
    noticed = 0
    for place in random.choice(len(content), 400, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= int(random.integers(1, 256))
        path.write_bytes(damaged)
        try:
            loaded = Trajectories.load(path)
        except DemonstrationError as error:
            assert str(path) in str(error)  # noqa: PT017
            noticed += 1
        else:
            assert loaded == original
            assert loaded.provenance == original.provenance
    assert noticed > 100


@pytest.mark.parametrize("content", ["{", "[]", '{"total_episodes": 2}', "\udcff"])
def test_damaged_metadata_is_refused(tmp_path, content):
    example().save(tmp_path / "experts")
    place = tmp_path / "experts" / "data" / "metadata.json"
    place.write_text(content, errors="surrogateescape")
    with pytest.raises(DemonstrationError, match=r"experts: "):
        Trajectories.load(tmp_path / "experts")


def test_provenance_of_any_length_is_kept(tmp_path):
    original = example().take([0])
    facts = {"notes": "words " * 50_000}
    long = Trajectories.merge([original]).chosen([0], facts)
    long.save(tmp_path / "long.hdf5")
    assert Trajectories.load(tmp_path / "long.hdf5").provenance == facts


@pytest.mark.parametrize("name", ["experts.hdf5", "experts"])
def test_saving_again_replaces_and_leaves_nothing_behind(tmp_path, name):
    example().save(tmp_path / name)
    example(seed=1).save(tmp_path / name)
    assert Trajectories.load(tmp_path / name) == example(seed=1)
    assert os.listdir(tmp_path) == [name]
    assert name.endswith(".hdf5") or os.listdir(tmp_path / name) == ["data"]


@pytest.mark.parametrize("name", ["experts.hdf5", "experts"])
def test_a_write_that_fails_leaves_the_old_data(tmp_path, name, monkeypatch):
    example().save(tmp_path / name)

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(minari_file, "minari_fields", broken)
    with pytest.raises(StorageError, match=r"cannot be written .*No space left"):
        example(seed=1).save(tmp_path / name)
    assert Trajectories.load(tmp_path / name) == example()
    assert os.listdir(tmp_path) == [name]
    assert name.endswith(".hdf5") or os.listdir(tmp_path / name) == ["data"]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    example().save(tmp_path / "experts")
    rename = os.replace

    def broken(source, target):
        if str(source).endswith(".part"):
            raise OSError("refused")
        rename(source, target)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(StorageError, match="refused"):
        example(seed=1).save(tmp_path / "experts")
    assert Trajectories.load(tmp_path / "experts") == example()
    assert os.listdir(tmp_path / "experts") == ["data"]


def test_saving_never_deletes_what_is_not_a_data_set(tmp_path):
    for name in ("thesis", "thesis.txt"):
        (tmp_path / name).write_text("years of work")
    with pytest.raises(DemonstrationError, match="not a data set"):
        example().save(tmp_path)
    with pytest.raises(DemonstrationError, match="is a file"):
        example().save(tmp_path / "thesis")
    with pytest.raises(ArgumentError, match="ending must be"):
        example().save(tmp_path / "thesis.txt")
    (tmp_path / "folder.hdf5").mkdir()
    with pytest.raises(DemonstrationError, match="is a folder"):
        example().save(tmp_path / "folder.hdf5")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_folders_above_are_made(tmp_path):
    example().save(tmp_path / "a" / "b" / "experts.hdf5")
    assert Trajectories.load(tmp_path / "a" / "b" / "experts.hdf5") == example()
    with pytest.raises(TacitError, match="cannot be written"):
        example().save(tmp_path / "a" / "b" / "experts.hdf5" / "inside.hdf5")


def test_the_metadata_names_a_version_minari_understands(tmp_path):
    example().save(tmp_path / "my experts!")
    facts = json.loads((tmp_path / "my experts!" / "data" / "metadata.json").read_text())
    assert re.fullmatch(r"[-\w]+-v\d+", facts["dataset_id"])
    assert facts["total_episodes"] == 3
    assert facts["total_steps"] == 12
    assert json.loads(facts["tacit_provenance"]) == {"task": "Chain", "seed": 3}


BOX = {"type": "Box", "dtype": "float64", "shape": [2], "low": [-1, -1], "high": [1, 1]}
DISCRETE = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 9}


def describe(rows, declared=None):
    text = None if declared is None else json.dumps(declared)
    return json.loads(describe_space(np.array(rows), text))


def test_spaces_are_inferred_from_the_numbers():
    assert describe([[1], [4]]) == {"type": "Discrete", "dtype": "int64", "start": 0, "n": 5}
    assert describe([[-2], [4]])["start"] == -2
    assert describe([[1, 2], [0, 5]])["high"] == [1, 5]
    assert describe([[1.0, 2.0]])["low"] == [-np.inf, -np.inf]
    assert describe([[-(2**63)], [2**63 - 1]])["type"] == "Box"


@pytest.mark.parametrize(("rows", "space"), [([[0.5, -1]], BOX), ([[3], [8]], DISCRETE)])
def test_a_declared_space_is_kept_where_the_numbers_fit(rows, space):
    assert describe(rows, space) == space


@pytest.mark.parametrize(
    ("rows", "space"),
    [
        ([[0.5, 2.0]], BOX),
        ([[0.5]], BOX),
        ([[0, 1]], BOX),
        ([[0.5, 0.5]], {**BOX, "shape": [1]}),
        ([[0.5, 0.5]], {"type": "Box", "dtype": "float64"}),
        ([[0.5, 0.5]], {**BOX, "low": ["a", "b"]}),
        ([[9]], DISCRETE),
        ([[-1]], DISCRETE),
        ([[1.0]], DISCRETE),
        ([[1]], {"type": "Discrete"}),
        ([[1]], {"type": "Graph"}),
        ([[1]], [1]),
    ],
)
def test_a_declared_space_is_dropped_where_the_numbers_do_not_fit(rows, space):
    assert describe(rows, space) == describe(rows)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", 7])
def test_what_is_not_a_space_is_no_space(text):
    assert parse_space(text) == {}
