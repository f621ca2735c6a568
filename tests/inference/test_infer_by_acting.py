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
from tacit.control.actor import Actor
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.errors import ArgumentError, DemonstrationError, StorageError
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.icrl import ICRL
from tacit.inference.encoder.method import CAICRL
from tacit.inference.reach.method import Reach
from tacit.inference.result import CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE
from tacit.runs.files import read_arrays
from tacit.runs.metrics_file import read_metrics

TASK = tacit.make("BiasedPendulum", horizon=12)
SETTINGS = PPO(steps=4 * 16 * 4, worlds=4, rollout=16, minibatch=32, epochs=2, hidden=(8,))
SMALL = {"minibatch": 16, "passes": 2, "rows": 32, "rounds": 3, "every": 2}
CLASSIFIER = {"method": BC2L(hidden=(8,), **SMALL), "forward": SETTINGS}
OTHER = BC2L(hidden=(8,), **{**SMALL, "minibatch": 32})
VOTES = CAICRL(
    objective="evidence",
    reading="hard",
    encoder="bidaf",
    width=8,
    tokens=2,
    voters=6,
    compared=4,
    **SMALL,
)
VOTING = {"method": VOTES, "forward": SETTINGS}
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
    assert isinstance(result, tacit.Result)
    assert result.method == "bc2l"
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
    assert isinstance(back, tacit.Result)
    assert back.method == "bc2l"
    assert isinstance(back.policy, Actor)
    assert back.constraint.cost(SEEN, DONE).tobytes() == (
        result.constraint.cost(SEEN, DONE).tobytes()
    )
    np.testing.assert_array_equal(back.policy(SEEN), result.policy(SEEN))
    actions, state = back.policy.predict(SEEN)
    np.testing.assert_array_equal(actions, result.policy.predict(SEEN)[0])
    assert state is None
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
        (
            {"method": BC2L(hidden=(8,), **{**SMALL, "minibatch": 32})},
            r"settings\.minibatch: 16 there, 32",
        ),
        ({"confidence": 0.9}, "confidence: 0.7 there, 0.9 here"),
        ({"forward": dataclasses.replace(SETTINGS, clip=0.1)}, r"ppo\.clip"),
        ({"method": ICRL(hidden=(8,), **SMALL)}, "method"),
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
        "import tacit\n"
        "constraint = tacit.Constraint.load('constraint.safetensors')\n"
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


def test_a_method_that_is_misspelt_is_an_error_with_a_hint():
    with pytest.raises(ArgumentError, match=r"method must be .*'icrll'; did you mean icrl\?"):
        tacit.infer(TASK, DATA, method="icrll")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "counts"}, "'reach'"),
        ({"method": Reach(about=(9,))}, "no quantity 9; there are 4"),
        ({"method": Reach(ratios="0/7")}, "no quantity 7; there are 4"),
        ({"method": Reach(ratios="7")}, "like 22/6"),
        ({"method": CAICRL(width=9)}, "multiple of the number of heads, but 9"),
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
    chosen = {**CLASSIFIER, "method": ICRL(hidden=(8,), **SMALL)}
    result = tacit.infer(task, walks, **chosen)
    assert isinstance(result, tacit.Result)
    assert result.task is task
    assert result.settings["task"] == task.name
    observations = np.eye(12, dtype=np.float32)[:11]
    cost = result.constraint.cost(observations, np.zeros(11, np.int64))
    assert cost.shape == (11,)
    assert len(result.training) > 0


@pytest.mark.slow
def test_an_encoder_runs_on_a_tabular_task_as_on_any_simulator(chain):
    task, walks = chain
    method = dataclasses.replace(VOTES, objective="contrast", votes="visits", temptations=2)
    result = tacit.infer(task, walks, method=method, forward=SETTINGS)
    assert (result.method, result.task) == ("ca-icrl", task)
    assert len(result.training) > 0


def test_the_default_on_a_simulator_is_reach_and_the_result_says_so(point):
    task, data = point
    price = Multiplier(kind="share", budget_per="worst", largest=10.0)
    tiny = dataclasses.replace(SETTINGS, steps=128, intent=0.5, multiplier=price)
    results = [
        tacit.infer(task, data, method=method, forward=tiny, seed=2)
        for method in (None, "reach", Reach.preset(task), Reach())
    ]
    first = results[0]
    assert first.method == first.constraint.facts["method"] == "reach"
    assert first.settings["settings"] == Reach().settings()
    assert first.constraint.names == tuple(task.observation_names) == ("x", "y")
    assert {str(rule).split(" is at ")[0] for rule in first.constraint.rules(0.3)} <= {"x", "y"}
    seen = np.random.default_rng(0).uniform(-2, 2, (50, 2)).astype(np.float32)
    for other in results[1:]:
        assert other.metrics["training_reward"] == first.metrics["training_reward"]
        assert other.settings == first.settings
        assert other.constraint.cost(seen, 0 * seen).tobytes() == (
            first.constraint.cost(seen, 0 * seen).tobytes()
        )
        np.testing.assert_array_equal(other.policy(seen), first.policy(seen))


def test_a_name_and_its_preset_give_the_same_numbers():
    named, made, plain = (
        tacit.infer(TASK, DATA, method=method, forward=SETTINGS, seed=3)
        for method in ("bc2l", BC2L.preset(TASK), BC2L())
    )
    assert named.settings == made.settings
    assert named.settings["settings"]["passes"] == 40 != plain.settings["settings"]["passes"]
    assert named.metrics["constraint_loss"] == made.metrics["constraint_loss"]
    costs = [each.constraint.cost(SEEN, DONE).tobytes() for each in (named, made, plain)]
    assert costs[0] == costs[1] != costs[2]


ITERATIONS = 16
SCRIPT = """
import sys
import time

import numpy as np

import tacit
from tacit.control import trainer
from tacit.control.actor import Actor
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
    method=tacit.methods.CAICRL(
        encoder="bidaf", objective="evidence", reading="hard", width=8, tokens=2, voters=6,
        compared=4, minibatch=16, passes=2, rows=32, rounds=3, every=2,
    ),
    forward=PPO(
        steps=4 * 8 * int(sys.argv[2]), worlds=4, rollout=8, minibatch=16, epochs=2, hidden=(8,)
    ),
    folder=sys.argv[1],
    progress=lambda facts: time.sleep(0.02),
    notice=lambda sentence: print("NOTICE", sentence),
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
