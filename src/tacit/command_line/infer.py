"""`tacit infer`: learn a constraint and a policy that keeps it."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import tacit.evaluation.evaluate as evaluation
import tacit.inference.infer as inference
from tacit.command_line.tables import console, percent, show_facts
from tacit.command_line.tasks import find_task
from tacit.command_line.training import method_settings, watched, with_settings
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import simulator_of
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.evaluate import Evaluation
from tacit.inference.method import Method
from tacit.inference.methods import check_method, forward_preset, kind_of
from tacit.inference.reach.model import ReachModel
from tacit.inference.result import Result
from tacit.inference.simulated_result import SimulatedResult

SHOWN_RULES = 3
RULE = "violation of the learned rule"
# What `expert_cost` is: of most methods, and of CA-ICRL by reach.
OWN = {False: "that of the experts", True: "share of fresh experts who go further"}


def infer(
    task: tyro.conf.Positional[str],
    experts: Path,
    number: int | None = None,
    method: str = "ca-icrl",
    confidence: float = 0.8,
    objective: Literal["reach", "counts", "evidence", "quantile"] | None = None,
    votes: Literal["visits", "visits-fallible", "independent", "abstain"] | None = None,
    reading: Literal["graded", "soft", "hard"] | None = None,
    seed: int = 0,
    out: Path | None = None,
    sampled: bool = False,
    threads: int | None = None,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    learn: tuple[str, ...] = (),
    train: tuple[str, ...] = (),
) -> None:
    """Learn the rule that the experts obeyed, and a policy that keeps it.

    Args:
        task: name of a task (GridWorld, BlockedHalfCheetah ...), a Gymnasium id, or an .npz file
            with your own arrays.
        experts: file or folder with the demonstrations.
        number: use so many of them, drawn at random by the seed; by default all.
        method: ca-icrl, icrl, vicrl, bc2l, gacl or icl.
        confidence: how sure the constraint must be at least as tight as the truth (ca-icrl).
        objective: how the belief is learned (ca-icrl); by default counts on tables and reach
            elsewhere.
        votes: how an expert speaks for or against a step (ca-icrl): visits or
            visits-fallible with counts, independent or abstain with evidence and quantile.
        reading: how the confidence reads a constraint off the belief (ca-icrl).
        seed: of everything random.
        out: folder to keep the result in, and the run: the same command continues it there.
        sampled: let ca-icrl learn by sampling on a tabular task, as it does on all others.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
        learn: settings of the method, as in --learn learning_rate=1e-3 every=10.
        train: settings of PPO, as in --train steps=2000000 multiplier.largest=10.
    """
    check_method(method)
    chosen = find_task(task, settings)
    demonstrations = Trajectories.load(experts)
    if number is not None:
        demonstrations = demonstrations.subset(number, seed=seed)
    given = {"objective": objective, "votes": votes, "reading": reading}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    asked = {"method": method, "confidence": confidence, "seed": seed, "folder": out, **options}
    if isinstance(chosen, TabularTask) and method == "ca-icrl" and not sampled:
        facts = learned_exactly(chosen, demonstrations, asked, train or learn)
    else:
        asked.update(sampled=sampled, threads=threads)
        facts = learned_with_settings(chosen, demonstrations, asked, options, learn, train)
    show_facts(
        f"{method} on {chosen.name}, {len(demonstrations)} demonstrations",
        {**facts, **({"saved in": str(out)} if out else {})},
    )


def learned_with_settings(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    asked: dict[str, Any],
    options: dict[str, Any],
    learn: tuple[str, ...],
    train: tuple[str, ...],
) -> dict[str, str]:
    """Learn by sampling with the settings of --learn and --train, then say how it went."""
    method, given = asked["method"], {**options, **given_words(learn)}
    kind = kind_named(method, learn, options)
    asked.update(method_settings(kind, learn))
    forward = with_settings(forward_preset(kind, as_simulator(task)), train)
    return sampled_performance(learned_by_sampling(task, demonstrations, forward, asked))


def kind_named(method: str, learn: tuple[str, ...], options: dict[str, Any]) -> type[Method]:
    """The class of the method that these settings are of."""
    given: dict[str, Any] = {**options, **given_words(learn)}
    return kind_of(method, given)


def given_words(learn: tuple[str, ...]) -> dict[str, str]:
    """The settings of --learn as they were written."""
    return {name: value for name, _, value in (setting.partition("=") for setting in learn)}


def learned_exactly(
    task: TabularTask,
    demonstrations: Trajectories,
    asked: dict[str, Any],
    beyond: tuple[str, ...],
) -> dict[str, str]:
    """Learn without sampling, then say how it went."""
    if beyond:
        raise ArgumentError(
            f"CA-ICRL on {task.name} is computed without sampling: --train and --learn are for "
            "--sampled, simulated tasks and the other methods"
        )
    with console.status("learning"):
        result = inference.infer(task, demonstrations, **asked)
    return performance(result)


def as_simulator(task: TabularTask | SimulatedTask) -> SimulatedTask:
    """The task as one that is stepped."""
    return simulator_of(task) if isinstance(task, TabularTask) else task


def learned_by_sampling(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    forward: PPO,
    asked: dict[str, Any],
    rounds: int = 1,
) -> Any:
    """Learn with a progress bar, over so many rounds of `forward`."""
    whole = dataclasses.replace(forward, steps=rounds * forward.iterations * forward.batch)
    with watched(f"{asked['method']} on {task.name}", whole) as watch:
        return inference.infer(
            task,
            demonstrations,
            progress=watch,
            notice=lambda sentence: console.print(f"note: {sentence}", markup=False),
            forward=forward,
            **asked,
        )


def effort(result: Result | SimulatedResult) -> dict[str, str]:
    """What it took to learn by sampling."""
    return {
        "steps": f"{int(result.metrics['steps']):,}",
        "time": f"{result.metrics['minutes']:.1f} min",
    }


def sampled_performance(result: SimulatedResult) -> dict[str, str]:
    """The numbers of a result that was learned by sampling, in words."""
    metrics = result.metrics
    with console.status("playing episodes"):
        report = evaluation.evaluate(result)
    facts = {}
    if result.settings["method"] == "ca-icrl":
        facts["confidence"] = f"{result.constraint.confidence:g}"
    if report.rule_violation is not None:
        facts[RULE] = percent(report.rule_violation)
        for warning in warning_of(report, 1 - result.constraint.confidence):
            console.print(f"note: {warning}", markup=False)
    facts |= {
        "violation of the true rule": percent(report.violation),
        "reward per episode": str(report.reward),
        "feasible reward": str(report.feasible_reward),
    }
    if report.training is not None:
        facts |= {
            "violation while training": percent(report.training.violation),
            "feasible reward while training": str(report.training.feasible_reward),
        }
    if "cost" in metrics:
        facts |= {
            "learned cost of a step": f"{metrics['cost']:.3f}",
            OWN["rules" in metrics]: f"{metrics['expert_cost']:.3f}",
            "price of cost": f"{metrics['multiplier']:.1f}",
        }
    if "constraint_loss" in metrics:
        facts["loss of the constraint"] = f"{metrics['constraint_loss']:.3f}"
    if isinstance(result.constraint.model, ReachModel):
        for place, rule in enumerate(result.constraint.rules()[:SHOWN_RULES]):
            facts[f"rule {place + 1}"] = str(rule)
    return facts | effort(result)


def warning_of(report: Evaluation, promised: float) -> list[str]:
    """What to say where the policy does not even keep the rule that it learned."""
    if report.rule_violation is None or report.rule_violation <= promised:
        return []
    return [
        f"the policy breaks the rule that it learned in {percent(float(report.rule_violation))} of "
        f"its episodes, where at most {percent(promised)} were asked for: nothing shows that the "
        "promise is kept. It may take more steps or better experts, or be out of reach"
    ]


def performance(result: Result, episodes: int | None = None, seed: int = 51) -> dict[str, str]:
    """The numbers of an exact result in words."""
    report = evaluation.evaluate(result, episodes=episodes, seed=seed)
    allowed = result.constraint.allowed_map()
    return {
        "confidence": f"{result.constraint.confidence:g}",
        "allowed by the constraint": f"{allowed.sum()} of {allowed.size} "
        + ("states" if result.task.rule_on == "state" else "state-action pairs"),
        "violation of the true rule": f"{percent(report.violation)} "
        f"(promise: at most {percent(1 - result.constraint.confidence)}, "
        f"{'kept' if report.violation <= 1 - result.constraint.confidence else 'BROKEN'})",
        "reward per episode": str(report.reward),
        "feasible reward": str(report.feasible_reward),
        "price of a violated step": f"{result.metrics['multiplier']:.1f}",
    }
