"""Experts of simulated tasks: trained by PPO-Lagrange on the true cost, or brought by the user."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit.control.actor import Actor
from tacit.control.episode_ledger import feasible_score
from tacit.control.play import Act, Episodes, play
from tacit.control.ppo import PPO
from tacit.control.trainer import Trainer
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.runs.run_folder import RunFolder

WORLDS = 64
TESTED_EPISODES = 128
CHECKPOINT_EVERY = 20
MOST_ATTEMPTS_PER_EPISODE = 100
FIRST_LOOK = 4 * WORLDS


def train(
    task: SimulatedTask,
    settings: PPO,
    *,
    seed: int,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: Callable[[dict[str, float]], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Trainer:
    """Train on the true cost until all steps are taken; returns the trainer, closed.

    With a `folder` the run is kept there: settings.json, metrics.jsonl, TensorBoard's events, a
    checkpoint every 20 updates. The same call on the same folder continues a run that was stopped,
    bit for bit. Worlds that cannot be saved begin anew at every checkpoint.

    Arguments are those of `train_expert`.
    """
    trainer = Trainer(task, settings, seed=seed, threads=threads)
    try:
        if folder is None:
            while not trainer.finished:
                facts = trainer.advance()
                if progress is not None:
                    progress(facts)
        else:
            train_in_folder(trainer, Path(folder), progress, notice)
    finally:
        trainer.close()
    return trainer


def train_in_folder(
    trainer: Trainer,
    path: Path,
    progress: Callable[[dict[str, float]], None] | None,
    notice: Callable[[str], None] | None,
) -> None:
    """Take up the run in the folder and finish it."""
    with RunFolder.open(path, described(trainer), label="expert") as folder:
        saved = folder.latest(like=trainer.state())
        if saved is not None:
            trainer.restore(saved.tree)
        for sentence in folder.notices:
            if notice is not None:
                notice(sentence)
        while not trainer.finished:
            facts = trainer.advance()
            folder.record(facts)
            if trainer.iteration % CHECKPOINT_EVERY == 0 or trainer.finished:
                folder.save(trainer.state(), steps=trainer.steps)
            if progress is not None:
                progress(facts)


def described(trainer: Trainer) -> dict[str, Any]:
    """All that decides the numbers of a run."""
    return {
        "task": trainer.task.name,
        "options": dict(trainer.task.options),
        "seed": trainer.seed,
        "ppo": dataclasses.asdict(trainer.settings),
    }


def best_of(trainer: Trainer) -> tuple[Actor, dict[str, float], dict[str, Any]]:
    """The better one, without exploration, of the best actor in training and the last.

    Returns:
        The actor, how it did in 128 fresh episodes, and where it is from.
    """
    candidates = [(trainer.actor, trainer.steps)]
    if trainer.best is not None:
        candidates.append((trainer.best.actor, trainer.best.steps))
    tests = [tested(trainer.task, actor, seed=trainer.seed) for actor, _ in candidates]
    place = int(np.argmax([test["score"] for test in tests]))
    actor, steps = candidates[place]
    facts = {
        **described(trainer),
        "steps": steps,
        "trained_steps": trainer.steps,
        "minutes": trainer.seconds / 60,
    }
    return actor, tests[place], facts


def tested(task: SimulatedTask, act: Act, *, seed: int) -> dict[str, float]:
    """Reward, feasible reward, violation and score of a policy over 128 fresh episodes."""
    rewards, violated = [], []
    for episodes in batches(task, act, seed=seed):
        rewards.append(episodes.rewards.sum(axis=1))
        violated.append(episodes.violated)
        if sum(map(len, rewards)) >= TESTED_EPISODES:
            break
    total, broken = np.concatenate(rewards), np.concatenate(violated)
    return {
        "reward": float(total.mean()),
        "feasible_reward": float((total * ~broken).mean()),
        "violation": float(broken.mean()),
        "score": feasible_score(total, broken),
    }


def batches(task: SimulatedTask, act: Act, *, seed: int) -> Iterator[Episodes]:
    """Episodes of a policy without end, 64 at a time."""
    worlds = task.worlds(WORLDS)
    try:
        number = 0
        while True:
            words = np.random.SeedSequence([seed, number, 1]).generate_state(1, np.uint32)
            yield play(worlds, act, seed=int(words[0]))
            number += 1
    finally:
        worlds.close()


def feasible_episodes(
    task: SimulatedTask,
    act: Act,
    number: int,
    *,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[dict[str, np.ndarray], int]:
    """Arrays of `number` episodes that obey the true rule; how many others were discarded."""
    kept: list[Episodes] = []
    have = attempts = 0
    for episodes in batches(task, act, seed=seed):
        places = np.flatnonzero(~episodes.violated)[: number - have]
        last = places[-1] + 1 if have + len(places) == number else len(episodes.lengths)
        attempts += int(last)
        have += len(places)
        if len(places):
            kept.append(episodes.chosen(places))
        if progress is not None:
            progress(have)
        if have == number:
            break
        if attempts >= max(FIRST_LOOK, MOST_ATTEMPTS_PER_EPISODE * (have + 1)):
            raise TaskError(
                f"only {have} of {attempts} episodes on {task.name} obey the rule: "
                "too few to collect demonstrations from"
            )
    return joined(kept), attempts - number


def joined(parts: list[Episodes]) -> dict[str, np.ndarray]:
    """Episodes of several batches as the arrays of `Trajectories`; costs of a step are added up."""
    steps = max(part.rewards.shape[1] for part in parts)

    def together(name: str, rows: int) -> np.ndarray:
        fields = [getattr(part, name) for part in parts]
        whole = np.zeros((sum(map(len, fields)), rows, *fields[0].shape[2:]), fields[0].dtype)
        place = 0
        for field in fields:
            whole[place : place + len(field), : field.shape[1]] = field
            place += len(field)
        return whole

    return {
        "observations": together("observations", steps + 1),
        "actions": together("actions", steps),
        "rewards": together("rewards", steps),
        "costs": together("costs", steps).sum(axis=-1),
        "lengths": np.concatenate([part.lengths for part in parts]),
        "terminated": np.concatenate([part.terminated for part in parts]),
    }
