"""Tasks given by arrays, whose dynamics are exact, so that every claim can be checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from tacit.errors import TaskError

ROW_SUM_TOLERANCE = 1e-6
FILE_NEEDS = ("transitions", "rewards", "costs", "initial", "horizon")
FILE_MAY_HAVE = ("temperature", "budget", "positions")
EXACT = 1e-12  # closer sums are left alone, so that a task written and read again is the same


@dataclass(frozen=True, eq=False)
class TabularTask:
    """A finite constrained Markov decision process, given by arrays (section 2.1 of the paper).

    One episode is `horizon` steps. Step t happens in state s_t with action a_t: it earns
    `rewards[s_t, a_t]`, costs `costs[s_t, a_t]`, moves on by `transitions[s_t, a_t]`. An episode
    violates the rule when any of its steps has a cost above zero. The experts maximise reward plus
    `temperature` times entropy while their expected number of violated steps per episode stays
    within `budget` (equation 4; the paper's beta is our temperature). Slippery dynamics may make
    zero violations impossible, hence a budget.

    Arguments:
        transitions: [S, A, S], each row a distribution over next states.
        rewards: [S, A], or [S] when the action does not matter, or [S, A, S] (averaged over s').
        costs: the true rule, [S] for a rule about states or [S, A] for one about state-action
            pairs; zero is allowed, anything above is forbidden.
        initial: [S], the distribution of the first state.
        horizon: number of steps of an episode.
        temperature: weight of the entropy.
        budget: expected number of violated steps per episode that the experts tolerate.
        rule_on: whether the rule to be learned is about states or about state-action pairs. By
            default: pairs if `costs` differs between actions of some state, states otherwise.
        positions: [S, 2] row and column of each state, for pictures.
        actions: names of the actions, for pictures and tables.
        name: what the task is called in tables.
    """

    transitions: Float[np.ndarray, "S A S"]
    rewards: Float[np.ndarray, "S A"]
    costs: Float[np.ndarray, "S A"]
    initial: Float[np.ndarray, " S"]
    horizon: int
    temperature: float = 1.0
    budget: float = 0.02
    rule_on: Literal["state", "pair"] | None = None
    positions: Int[np.ndarray, "S 2"] | None = None
    actions: Sequence[str] | None = None
    name: str = "tabular task"

    def __post_init__(self) -> None:
        transitions = check_transitions(self.transitions)
        rewards = check_rewards(self.rewards, transitions)
        costs = check_costs(self.costs, transitions)
        initial = check_initial(self.initial, transitions.shape[0])
        check_scalars(self.horizon, self.temperature, self.budget)
        rule_on = check_rule(self.rule_on, costs)
        check_labels(self.positions, self.actions, transitions.shape)
        for field, value in {
            "transitions": transitions,
            "rewards": rewards,
            "costs": costs,
            "initial": initial,
            "horizon": int(self.horizon),
            "rule_on": rule_on,
            "positions": None if self.positions is None else np.array(self.positions),
            "actions": None if self.actions is None else tuple(self.actions),
        }.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field, value)

    @property
    def number_of_states(self) -> int:
        """S, the number of states."""
        return self.transitions.shape[0]

    @property
    def number_of_actions(self) -> int:
        """A, the number of actions."""
        return self.transitions.shape[1]

    @property
    def number_of_queries(self) -> int:
        """How many points the rule decides on: S states or S * A pairs."""
        return self.number_of_states * (self.number_of_actions if self.rule_on == "pair" else 1)

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What is observed at a step: the number of the state."""
        return ("state",)

    @property
    def allowed(self) -> np.ndarray:
        """[queries] True where the true rule allows the state (or pair)."""
        costs = self.costs if self.rule_on == "pair" else self.costs[:, 0]
        return costs.reshape(-1) <= 0

    def on_pairs(self, values: np.ndarray) -> np.ndarray:
        """Spread values [..., queries] over all state-action pairs: [..., S, A]."""
        shape = (*values.shape[:-1], self.number_of_states, -1)
        return np.broadcast_to(values.reshape(shape), (*shape[:-1], self.number_of_actions))

    def queries(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The index of the query that a step (state, action) belongs to."""
        return states * self.number_of_actions + actions if self.rule_on == "pair" else states


def load_task(path: str | Path) -> TabularTask:
    """Read a `TabularTask` from arrays called as its arguments are.

    Write one with `numpy.savez(path, transitions=..., rewards=..., costs=..., initial=...,
    horizon=...)`; temperature, budget and positions may be there too.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: np.asarray(file[name]) for name in file.files}
    except FileNotFoundError:
        raise TaskError(f"{path}: there is no such file") from None
    except Exception as error:  # damage may surface anywhere in zip, zlib or the header's parser
        raise TaskError(
            f"{path}: not an .npz file of plain arrays ({type(error).__name__}: {error})"
        ) from None
    missing = [name for name in FILE_NEEDS if name not in arrays]
    unknown = [name for name in arrays if name not in (*FILE_NEEDS, *FILE_MAY_HAVE)]
    if missing or unknown:
        problem = f"{missing[0]} is missing" if missing else f"{unknown[0]} is not known"
        raise TaskError(f"{path}: {problem}; a task has {', '.join((*FILE_NEEDS, *FILE_MAY_HAVE))}")
    for name in ("horizon", "temperature", "budget"):
        if name in arrays:
            if arrays[name].size != 1:
                raise TaskError(f"{path}: {name} must be one number")
            arrays[name] = arrays[name].item()
    try:
        return TabularTask(**arrays, name=path.stem)
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from None


def check_transitions(transitions: object) -> np.ndarray:
    """Float64 copy of [S, A, S] whose rows are distributions, or an error naming the row."""
    array = as_finite("transitions", transitions)
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise TaskError(f"transitions must have the shape [S, A, S], not {list(array.shape)}")
    negative = np.argwhere(array < 0)
    if len(negative):
        state, action, successor = negative[0]
        raise TaskError(
            f"transitions[{state}, {action}, {successor}] = {array[state, action, successor]:g} "
            f"is negative: state {state}, action {action}"
        )
    sums = array.sum(axis=2)
    wrong = np.argwhere(np.abs(sums - 1) > ROW_SUM_TOLERANCE)
    if len(wrong):
        state, action = wrong[0]
        raise TaskError(
            f"transitions of state {state}, action {action} sum to {sums[state, action]:.8g}, "
            f"not to one ({len(wrong)} such rows in all)"
        )
    return np.where(np.abs(sums - 1) > EXACT, 1 / sums, 1.0)[:, :, None] * array


def check_rewards(rewards: object, transitions: np.ndarray) -> np.ndarray:
    """Rewards as [S, A]."""
    array = as_finite("rewards", rewards)
    states, actions, _ = transitions.shape
    if array.shape == (states, actions, states):
        return np.einsum("ijk,ijk->ij", transitions, array)
    return spread("rewards", array, states, actions, "[S, A], [S] or [S, A, S]")


def check_costs(costs: object, transitions: np.ndarray) -> np.ndarray:
    """Costs as [S, A], zero or more."""
    array = as_finite("costs", costs)
    states, actions, _ = transitions.shape
    array = spread("costs", array, states, actions, "[S] or [S, A]")
    negative = np.argwhere(array < 0)
    if len(negative):
        state, action = negative[0]
        raise TaskError(f"the cost of state {state}, action {action} is negative")
    return array


def check_initial(initial: object, states: int) -> np.ndarray:
    """The start distribution [S]."""
    array = as_finite("initial", initial)
    if array.shape != (states,):
        raise TaskError(f"initial must have the shape [{states}], not {list(array.shape)}")
    negative = np.flatnonzero(array < 0)
    if len(negative):
        raise TaskError(f"initial is negative at state {negative[0]}")
    if abs(array.sum() - 1) > ROW_SUM_TOLERANCE:
        raise TaskError(f"initial must be a distribution; it sums to {array.sum():.8g}")
    return array / array.sum() if abs(array.sum() - 1) > EXACT else array


def check_scalars(horizon: object, temperature: object, budget: object) -> None:
    """Raise an error unless these are numbers within their bounds."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise TaskError(f"horizon must be a whole number of at least 1, not {horizon!r}")
    for field, value, least in (("temperature", temperature, 1e-12), ("budget", budget, 0.0)):
        if not isinstance(value, int | float | np.number) or not least <= value < np.inf:
            wanted = "positive" if least else "zero or more"
            raise TaskError(f"{field} must be a finite number, {wanted}, not {value!r}")


def check_rule(rule_on: str | None, costs: np.ndarray) -> str:
    """What the rule is about, states or pairs; by default what the costs show."""
    if rule_on not in (None, "state", "pair"):
        raise TaskError(f"rule_on must be 'state' or 'pair', not {rule_on!r}")
    differing = np.flatnonzero((costs != costs[:, :1]).any(axis=1))
    if rule_on == "state" and len(differing):
        raise TaskError(
            f"rule_on='state', but the costs of state {differing[0]} differ between its actions"
        )
    return rule_on or ("pair" if len(differing) else "state")


def check_labels(positions: object, actions: Sequence[str] | None, shape: Sequence[int]) -> None:
    """Raise an error unless there is one position per state and one name per action."""
    if positions is not None:
        array = np.asarray(positions)
        if array.shape != (shape[0], 2) or array.dtype.kind not in "iu":
            raise TaskError(f"positions must be whole numbers of the shape [{shape[0]}, 2]")
    if actions is not None and len(actions) != shape[1]:
        raise TaskError(f"there are {shape[1]} actions but {len(actions)} names for them")


def spread(field: str, array: np.ndarray, states: int, actions: int, wanted: str) -> np.ndarray:
    """[S] or [S, A] as [S, A]."""
    if array.shape == (states,):
        return np.repeat(array[:, None], actions, axis=1)
    if array.shape == (states, actions):
        return array
    raise TaskError(
        f"{field} must have the shape {wanted} with S = {states} and A = {actions}, "
        f"not {list(array.shape)}"
    )


def as_finite(field: str, values: object) -> np.ndarray:
    """A float64 copy without NaN or infinity, or an error that names the entry."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TaskError(f"{field} is not an array of numbers: {error}") from None
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        words = ("state", "action", "next state")
        place = ", ".join(f"{word} {index}" for word, index in zip(words, bad[0], strict=False))
        raise TaskError(f"{field} is {array[tuple(bad[0])]} at {place}")
    return array
