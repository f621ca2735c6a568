"""`tacit.infer` on tasks that can only be stepped: folders, files, other processes, odd data."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tacit
from tacit.control.settings import PPO
from tacit.errors import ArgumentError, DemonstrationError, StorageError
from tacit.inference.result import CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE
from tacit.runs.array_file import read_arrays
from tacit.runs.metrics_file import read_metrics

TASK = tacit.make("BiasedPendulum", horizon=12)
SETTINGS = PPO(steps=4 * 16 * 4, worlds=4, rollout=16, minibatch=32, epochs=2, hidden=(8,))
SMALL = {"minibatch": 16, "passes": 2, "rows": 32, "rounds": 3, "every": 2}
CLASSIFIER = {"method": "bc2l", "forward": SETTINGS, "hidden": (8,), **SMALL}
VOTING = {
    "method": "ca-icrl",
    "forward": SETTINGS,
    "reading": "hard",
    "encoder": "bidaf",
    "width": 8,
    "tokens": 2,
    "voters": 6,
    "compared": 4,
    "temptations": 2,
    **SMALL,
}
RANDOM = np.random.default_rng(0)
SEEN = RANDOM.normal(0, 0.01, (7, 4)).astype(np.float32)
DONE = RANDOM.uniform(-1, 1, (7, 1)).astype(np.float32)


pytestmark = pytest.mark.usefixtures("hasty_imitation")


def demonstrations(number=10, steps=12, seed=0, size=4):
    random = np.random.default_rng(seed)
    return tacit.Trajectories(
        observations=random.normal(0, 0.01, (number, steps + 1, size)).astype(np.float32),
        actions=random.uniform(-1, 1, (number, steps, 1)).astype(np.float32),
        rewards=np.ones((number, steps), np.float32),
        lengths=np.full(number, steps),
    )


DATA = demonstrations()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("infer") / "run"


@pytest.fixture(scope="module")
def result(folder):
    return tacit.infer(TASK, DATA, **CLASSIFIER, seed=3, confidence=0.7, folder=folder)


@pytest.fixture(scope="module")
def voted():
    return tacit.infer(TASK, DATA, **VOTING)


def test_a_result_has_a_constraint_a_policy_and_how_they_came_about(result):
    assert isinstance(result, tacit.SimulatedResult)
    assert result.task is TASK
    assert result.constraint.confidence == 0.7
    assert result.constraint.facts == {
        "method": "bc2l",
        "task": "BiasedPendulum",
        "seed": 3,
        "demonstrations": 10,
    }
    cost = result.constraint.cost(SEEN, DONE)
    assert cost.shape == (7,)
    assert ((cost > 0) & (cost < 1)).all()
    assert np.asarray(result.policy(SEEN)).shape == (7, 1)
    assert result.training.shape[1] == 4
    assert 0 < len(result.training) <= 100
    names = {"training_reward", "training_violation", "constraint_loss", "expert_cost", "steps"}
    assert names <= set(result.metrics)
    assert all(np.isfinite(value) for value in result.metrics.values())
    assert result.metrics["steps"] == SETTINGS.steps
    assert result.settings["settings"]["minibatch"] == 16
    assert result.settings["ppo"]["worlds"] == 4
    assert result.settings["versions"]
    assert tacit.evaluate(result, episodes=3).episodes == 3


def test_a_folder_holds_the_run_and_the_result(result, folder):
    names = {path.name for path in folder.iterdir()}
    assert {"settings.json", "metrics.jsonl", "checkpoint.safetensors"} <= names
    assert {CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE} <= names
    lines = read_metrics(folder / "metrics.jsonl")
    assert [line["steps"] for line in lines] == [64, 128, 192, 256]


def test_a_loaded_result_is_the_one_that_was_saved(result, folder):
    back = tacit.load(folder)
    assert isinstance(back, tacit.SimulatedResult)
    assert back.constraint.cost(SEEN, DONE).tobytes() == (
        result.constraint.cost(SEEN, DONE).tobytes()
    )
    np.testing.assert_array_equal(back.policy(SEEN), result.policy(SEEN))
    np.testing.assert_array_equal(back.training, result.training)
    assert back.metrics == result.metrics
    assert back.settings["settings"]["hidden"] == [8]
    assert (back.task.name, back.task.horizon) == ("BiasedPendulum", 12)


def test_the_same_call_again_learns_nothing_and_gives_the_same(result, folder):
    notices, told = [], []
    again = tacit.infer(
        TASK,
        DATA,
        **CLASSIFIER,
        seed=3,
        confidence=0.7,
        folder=folder,
        notice=notices.append,
        progress=told.append,
    )
    assert told == []
    assert ["is complete" in notice for notice in notices] == [True]
    assert again.metrics == result.metrics
    assert again.constraint.cost(SEEN, DONE).tobytes() == (
        result.constraint.cost(SEEN, DONE).tobytes()
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 4}, "seed: 3 there, 4 here"),
        ({"minibatch": 32}, "settings.minibatch: 16 there, 32 here"),
        ({"confidence": 0.9}, "confidence: 0.7 there, 0.9 here"),
        ({"forward": dataclasses.replace(SETTINGS, clip=0.1)}, "ppo.clip"),
        ({"method": "icrl"}, "method"),
    ],
)
def test_a_folder_is_not_taken_for_another_run(result, folder, changes, words):
    call = {**CLASSIFIER, "seed": 3, "confidence": 0.7, "folder": folder, **changes}
    with pytest.raises(StorageError, match=words):
        tacit.infer(TASK, DATA, **call)


def test_a_run_is_not_continued_with_other_demonstrations(result, folder):
    others = demonstrations(seed=1)
    with pytest.raises(StorageError, match="demonstrations_sha256"):
        tacit.infer(TASK, others, **CLASSIFIER, seed=3, confidence=0.7, folder=folder)


def test_a_constraint_needs_neither_the_data_nor_this_process(voted, tmp_path):
    voted.constraint.save(tmp_path / "constraint.safetensors")
    np.savez(tmp_path / "steps.npz", seen=SEEN, done=DONE)
    program = (
        "import jax, numpy as np\n"
        "jax.config.update('jax_disable_most_optimizations', True)\n"
        "from tacit.inference.constraint import LearnedConstraint\n"
        "constraint = LearnedConstraint.load('constraint.safetensors')\n"
        "steps = np.load('steps.npz')\n"
        "for level in (0.5, 0.8, 0.95):\n"
        "    print(constraint.feasibility(steps['seen'], steps['done'], level).tobytes().hex())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        voted.constraint.feasibility(SEEN, DONE, level).tobytes().hex()
        for level in (0.5, 0.8, 0.95)
    ]


def test_a_method_or_setting_that_is_misspelt_is_an_error_with_a_hint():
    with pytest.raises(ArgumentError, match=r"ca-icrl, icrl.*'icrll'; did you mean icrl\?"):
        tacit.infer(TASK, DATA, method="icrll")
    with pytest.raises(ArgumentError, match=r"no setting 'minibach'.*did you mean minibatch"):
        tacit.infer(TASK, DATA, method="icrl", minibach=3)
    with pytest.raises(ArgumentError, match="no setting 'reading'"):
        tacit.infer(TASK, DATA, method="icrl", reading="soft")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"objective": "counts", "votes": "abstain"}, "does not go with"),
        ({"objective": "nonsense"}, "objective"),
        ({"encoder": "nonsense"}, "encoder"),
        ({"passes": 0}, "passes"),
        ({"past": 1.5}, r"past must lie in \[0, 1\]"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"budget": -1}, "budget"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"seed": -1}, "seed"),
        ({"forward": tacit.PPO(charge_once=True)}, "charge_once is for a cost of 0 or 1"),
    ],
)
def test_what_cannot_work_is_an_error_before_anything_is_done(settings, words, tmp_path):
    with pytest.raises(ArgumentError, match=words):
        tacit.infer(TASK, DATA, folder=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_demonstrations_that_do_not_fit_the_task_are_an_error():
    with pytest.raises(DemonstrationError, match="has 4 numbers, the demonstrations have 5"):
        tacit.infer(TASK, demonstrations(size=5))
    with pytest.raises(ArgumentError, match="must be Trajectories"):
        tacit.infer(TASK, [])


def test_twenty_thousand_experts_work(voted):
    result = tacit.infer(TASK, demonstrations(20_000, 2), **VOTING)
    assert result.settings["demonstrations"] == 20_000
    # All of them count, though only a few vote.
    memory = result.constraint.model.memory
    assert (float(memory.number), len(memory.expert)) == (20_000, 6)
    assert np.isfinite(list(result.metrics.values())).all()
    evidence = result.constraint.evidence(SEEN, DONE)
    assert (evidence.votes_for + evidence.votes_against <= 20_000 * (1 + 1e-4)).all()
    assert evidence.expert.max() > 100


@pytest.mark.parametrize("chosen", [CLASSIFIER, VOTING], ids=["bc2l", "ca-icrl"])
def test_a_single_expert_with_a_single_step_works(chosen):
    result = tacit.infer(TASK, demonstrations(1, 1), **chosen)
    assert result.metrics["steps"] == SETTINGS.steps
    assert np.isfinite(result.constraint.cost(SEEN, DONE)).all()


@pytest.fixture(scope="module")
def chain():
    """A tabular task, and experts that stay where they are."""
    task = tacit.make("Chain", length=11, limit=-2, horizon=10)
    states = np.full((8, 11), 5)
    walks = tacit.Trajectories(
        observations=states[..., None],
        actions=np.full((8, 10, 1), task.actions.index("stay")),
        rewards=np.zeros((8, 10)),
        lengths=np.full(8, 10),
    )
    return task, walks


def test_on_a_tabular_task_the_others_learn_by_sampling(chain):
    task, walks = chain
    chosen = {**CLASSIFIER, "method": "icrl"}
    result = tacit.infer(task, walks, **chosen)
    assert isinstance(result, tacit.SimulatedResult)
    assert result.settings["task"] == task.name
    observations = np.eye(12, dtype=np.float32)[:11]
    cost = result.constraint.cost(observations, np.zeros(11, np.int64))
    assert cost.shape == (11,)
    assert len(result.training) > 0


def test_ca_icrl_on_a_tabular_task_takes_settings_of_ppo_only_if_it_is_to_sample(chain):
    task, walks = chain
    with pytest.raises(ArgumentError, match="sampled=True"):
        tacit.infer(task, walks, forward=SETTINGS)


@pytest.mark.slow
def test_an_encoder_samples_on_a_tabular_task_if_asked_to(chain):
    task, walks = chain
    chosen = {name: value for name, value in VOTING.items() if name != "method"}
    result = tacit.infer(task, walks, sampled=True, objective="counts", **chosen)
    assert isinstance(result, tacit.SimulatedResult)


ITERATIONS = 16
SCRIPT = """
import sys
import time

import numpy as np

import tacit
from tacit.control import trainer
from tacit.control.settings import PPO

trainer.CHECKPOINT_EVERY = 2
random = np.random.default_rng(0)
experts = tacit.Trajectories(
    observations=random.normal(0, 0.01, (10, 13, 4)).astype(np.float32),
    actions=random.uniform(-1, 1, (10, 12, 1)).astype(np.float32),
    rewards=np.ones((10, 12), np.float32),
    lengths=np.full(10, 12),
)
tacit.infer(
    tacit.make("BiasedPendulum", horizon=12),
    experts,
    method="ca-icrl",
    forward=PPO(
        steps=4 * 8 * int(sys.argv[2]), worlds=4, rollout=8, minibatch=16, epochs=2, hidden=(8,)
    ),
    folder=sys.argv[1],
    progress=lambda facts: time.sleep(0.02),
    notice=lambda sentence: print("NOTICE", sentence),
    encoder="bidaf", reading="hard", width=8, tokens=2, voters=6, compared=4, temptations=2,
    minibatch=16, passes=2, rows=32, rounds=3, every=2,
)
print("DONE")
"""


@pytest.fixture
def begin(tmp_path):
    """Starts the script on a folder; what the first process has compiled, the others find."""
    script = tmp_path / "infer.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    started = []

    def start(folder):
        started.append(
            subprocess.Popen(
                [sys.executable, str(script), str(folder), str(ITERATIONS)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(process):
    output, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    return output.splitlines()


def lines(folder):
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def without_seconds(folder):
    metrics = read_metrics(folder / "metrics.jsonl")
    return [{name: line[name] for name in line if name != "seconds"} for line in metrics]


# In the quick suite test_loop.py goes on from a file bit for bit, with every method.
@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_run_that_was_killed_ends_bit_for_bit_as_an_undisturbed_one(begin, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert finish(begin(whole)) == ["DONE"]
    process = begin(killed)
    while lines(killed) < 7 and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 7 <= lines(killed) < ITERATIONS
    assert not (killed / SUMMARY_FILE).exists()

    notice, done = finish(begin(killed))
    assert "the run in this folder goes on after" in notice
    assert done == "DONE"
    assert len(without_seconds(whole)) == ITERATIONS
    assert without_seconds(whole) == without_seconds(killed)
    for name in ("checkpoint.safetensors", CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE):
        first, second = (read_arrays(path / name)[0] for path in (whole, killed))
        assert set(first) == set(second)
        for key in set(first) - {"['seconds']", "['trainer']['seconds']"}:
            assert first[key].dtype == second[key].dtype
            assert first[key].tobytes() == second[key].tobytes(), (name, key)
