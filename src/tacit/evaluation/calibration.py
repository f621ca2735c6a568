"""Does a stated probability mean what it says: expected calibration error."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from tacit.errors import ArgumentError
from tacit.evaluation.intervals import finite

Subject = Literal["prediction", "feasible"]


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """One row per bin, for reliability plots; an empty bin has NaN accuracy and confidence.

    Attributes:
        edges: [bins + 1], from 0 to 1; bin m holds the values in (edges[m], edges[m + 1]].
        counts: [bins], how many trajectories fell into the bin.
        accuracy: [bins], acc(B_m).
        confidence: [bins], conf(B_m).
    """

    edges: Float[np.ndarray, " edges"]
    counts: Int[np.ndarray, " bins"]
    accuracy: Float[np.ndarray, " bins"]
    confidence: Float[np.ndarray, " bins"]


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 5, *, subject: Subject = "prediction"
) -> float:
    """ECE = sum_m |B_m| / n * |acc(B_m) - conf(B_m)|, by the paper's recipe (its appendix on ECE).

    The paper assigns label 1 (feasible) to a trajectory with p > 0.5 and label 0 otherwise, splits
    into 5 equally wide bins and cites the usual formula (Guo et al. 2017). There acc(B_m) is the
    share of *assigned labels* that are right and conf(B_m) the mean probability of the assigned
    label, max(p, 1 - p), by which the trajectories are also binned. That is our default. As
    max(p, 1 - p) >= 0.5, only the upper bins (3 of 5) are ever used, and an error on feasible
    trajectories can cancel the opposite error on infeasible ones in the same bin.

    `subject="feasible"` bins by p itself and compares the share of feasible trajectories with the
    mean of p: all bins are used, nothing cancels between the two ends, and no threshold is needed.
    Prefer it to judge p as a probability of feasibility, the default to compare with the paper.

    Arguments:
        probabilities: p, [n], the stated probability that the trajectory is feasible.
        labels: [n], 1 or True where it truly is feasible.
        bins: number of equally wide bins on [0, 1].
        subject: whose probability is judged: the assigned label's, or that of "feasible".
    """
    table = calibration_table(probabilities, labels, bins, subject=subject)
    used = table.counts > 0
    gap = np.abs(table.accuracy[used] - table.confidence[used])
    return float(np.sum(table.counts[used] * gap) / table.counts.sum())


def calibration_table(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 5, *, subject: Subject = "prediction"
) -> CalibrationTable:
    """Counts, accuracy and confidence per bin; arguments as in `expected_calibration_error`.

    Bins are open below and closed above, ((m - 1) / M, m / M], as in Guo et al.; 0 is in the first.
    """
    stated, truth = check(probabilities, labels)
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ArgumentError(f"bins must be a whole number of at least 1, not {bins!r}")
    if subject not in ("prediction", "feasible"):
        raise ArgumentError(f"subject must be 'prediction' or 'feasible', not {subject!r}")
    if subject == "prediction":
        right, stated = (stated > 0.5) == truth, np.maximum(stated, 1 - stated)
    else:
        right = truth
    edges = np.arange(bins + 1) / bins
    place = np.searchsorted(edges[1:-1], stated, side="left")
    counts, correct, confidence = (
        np.bincount(place, weights, minlength=bins) for weights in (None, right, stated)
    )
    number = np.where(counts > 0, counts, np.nan)
    return CalibrationTable(edges, counts, correct / number, confidence / number)


def check(probabilities: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities in [0, 1] and as many labels of 0 or 1."""
    stated, truth = finite("probabilities", probabilities), finite("labels", labels)
    if stated.ndim != 1 or stated.shape != truth.shape:
        raise ArgumentError(
            "probabilities and labels must both have the shape [n], "
            f"not {list(stated.shape)} and {list(truth.shape)}"
        )
    outside = np.flatnonzero((stated < 0) | (stated > 1))
    if len(outside):
        raise ArgumentError(
            f"probabilities[{outside[0]}] = {stated[outside[0]]:g} is not in [0, 1]"
        )
    odd = np.flatnonzero((truth != 0) & (truth != 1))
    if len(odd):
        raise ArgumentError(f"labels[{odd[0]}] = {truth[odd[0]]:g} is neither 0 nor 1")
    return stated, truth == 1
