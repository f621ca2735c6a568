"""Experts of simulated tasks: trained by PPO-Lagrange on the true cost, or brought by the user."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.control.actor import Actor
from tacit.control.play import Act, Episodes, play
from tacit.control.record import feasible_score
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer, checkpoint_every
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.runs.resumable_run import run_until_finished

WORLDS = 64
TESTED_EPISODES = 128
# Streams of random numbers: for choosing between policies, for measuring the chosen one, and for
# collecting demonstrations.
CHOOSING, MEASURING, COLLECTING = 1, 2, 3
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
    """Train on the true cost until all steps are taken, and return the closed trainer.

    Arguments are those of `train_expert`. A `folder` gets settings.json, metrics.jsonl,
    TensorBoard's events and a checkpoint every 20 updates or more.
    """
    trainer = Trainer(task, settings, seed=seed, threads=threads)
    try:
        run_until_finished(
            trainer,
            folder,
            run_settings(trainer),
            label="expert",
            every=checkpoint_every(trainer),
            progress=progress,
            notice=notice,
        )
    finally:
        trainer.close()
    return trainer


def run_settings(trainer: Trainer) -> dict[str, Any]:
    """Everything that decides the numbers of a run."""
    return {
        "task": trainer.task.name,
        "options": dict(trainer.task.options),
        **({"data_sha256": trainer.task.data_sha256} if trainer.task.data_sha256 else {}),
        "seed": trainer.seed,
        "ppo": dataclasses.asdict(trainer.settings),
    }


def best_of(
    trainer: Trainer, threads: int | None = None
) -> tuple[Actor, dict[str, float], dict[str, Any]]:
    """Choose between the best actor in training and the last one by a test without exploration.

    Returns:
        The better actor, its numbers over 128 episodes other than those of the test, and facts
        about its training.
    """
    candidates = [(trainer.actor, trainer.steps)]
    if trainer.now.best is not None:
        candidates.append((trainer.now.best.actor, trainer.now.best.steps))
    measured = partial(measure, trainer.task, seed=trainer.seed, threads=threads)
    scores = [measured(actor, stream=CHOOSING)["score"] for actor, _ in candidates]
    actor, steps = candidates[int(np.argmax(scores))]
    facts = {
        **run_settings(trainer),
        "steps": steps,
        "trained_steps": trainer.steps,
        "minutes": trainer.now.seconds / 60,
    }
    return actor, measured(actor, stream=MEASURING), facts


def measure(
    task: SimulatedTask, act: Act, *, seed: int, stream: int = MEASURING, threads: int | None = None
) -> dict[str, float]:
    """Measure reward, feasible reward, violation and score over 128 fresh episodes."""
    rewards, violated = [], []
    for episodes in batches(task, act, seed=seed, stream=stream, threads=threads):
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


def batches(
    task: SimulatedTask, act: Act, *, seed: int, stream: int, threads: int | None
) -> Iterator[Episodes]:
    """Play episodes without end, 64 at a time; each stream of a seed gives other episodes."""
    worlds = task.worlds(WORLDS, threads=threads)
    try:
        number = 0
        while True:
            words = np.random.SeedSequence([seed, number, stream]).generate_state(1, np.uint32)
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
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[dict[str, np.ndarray], int]:
    """Play until `number` episodes obey the true rule: their arrays, and the number of the others.

    `progress` is told the number of episodes kept so far.
    """
    kept: list[Episodes] = []
    have = attempts = 0
    for episodes in batches(task, act, seed=seed, stream=COLLECTING, threads=threads):
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
    return join(kept), attempts - number


def join(parts: list[Episodes]) -> dict[str, np.ndarray]:
    """Join episodes of several batches into the arrays of `Trajectories`.

    The costs of a step are added up over constraints.
    """
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
