"""A run in a folder is resumed where its last checkpoint left it."""

import pytest

from tacit.errors import DivergenceError
from tacit.runs.metrics_file import read_metrics
from tacit.runs.resumable_run import run_until_finished


class Counter:
    """Counts to `end`; its state exists from the first advance on, and counting can break."""

    def __init__(self, end, breaks_at=None):
        self.end, self.breaks_at = end, breaks_at
        self.iteration, self.total = 0, None
        self.states_asked_for = 0

    @property
    def steps(self):
        return 10 * self.iteration

    @property
    def finished(self):
        return self.iteration >= self.end

    def advance(self):
        if self.iteration == self.breaks_at:
            raise DivergenceError("the loss is not finite")
        self.iteration += 1
        self.total = (self.total or 0) + self.iteration
        return {"steps": self.steps, "total": self.total}

    def state(self):
        self.states_asked_for += 1
        return {"iteration": self.iteration, "total": self.total or 0}

    def restore(self, state):
        self.iteration, self.total = state["iteration"], state["total"]


def run(counter, folder, **others):
    run_until_finished(counter, folder, {"seed": 1}, label="counting", every=2, **others)
    return counter


def test_without_a_folder_every_advance_is_told(tmp_path):
    told = []
    assert run(Counter(3), None, progress=told.append).total == 6
    assert [facts["total"] for facts in told] == [1, 3, 6]


def test_a_stopped_run_goes_on_from_its_checkpoint(tmp_path):
    with pytest.raises(DivergenceError, match=r"last checkpoint before that is kept in .*run"):
        run(Counter(6, breaks_at=5), tmp_path / "run")
    told, notices = [], []
    counter = run(Counter(6), tmp_path / "run", progress=told.append, notice=notices.append)
    assert counter.total == 21
    assert [facts["total"] for facts in told] == [15, 21]
    assert [line["total"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [
        *(1, 3, 6, 10, 15, 21)
    ]
    assert "goes on after 40 steps" in notices[0]
    finished = []
    assert run(Counter(6), tmp_path / "run", notice=finished.append).total == 21
    assert "is complete" in finished[0]


def test_the_state_is_asked_for_only_where_there_is_a_checkpoint(tmp_path):
    with pytest.raises(DivergenceError, match=r"no checkpoint is in .*run"):
        run(broken := Counter(6, breaks_at=1), tmp_path / "run")
    assert broken.states_asked_for == 0
    assert read_metrics(tmp_path / "run" / "metrics.jsonl") != []
    with pytest.raises(DivergenceError):
        run(again := Counter(6, breaks_at=1), tmp_path / "run")
    assert again.states_asked_for == 0
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) == 1
