"""Writes the tables of the evidence pages from the result files in `results/`.

    python docs/evidence/generate.py          # or: make evidence

A page has pairs of markers, `<!-- generated: NAME -->` and `<!-- end -->`; what lies between is
replaced. Nothing there is typed by hand, and a test checks that the pages are what this script
writes. Result files:

    results/coverage/                coverage.csv, settings.json of `tacit experiment run coverage`
    results/methods/NAME.json        methods.json of `tacit experiment run methods`
    results/confidence/NAME.json     confidence.json of `tacit experiment run confidence`
    beside any: NAME.about.json      version, seeds, experts, command: what the file
                                     itself does not say
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
NOTHING = "*Not measured with this version yet.*"
MARKED = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
WAY = ("method", "objective", "votes", "reading")
DEFAULT = ({"method": "counts"}, {"votes": "visits", "reading": "graded"})
MISSING = "–"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f} %"


def number(value: float | None) -> str:
    """About four digits."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def share_with_interval(estimate: dict[str, float] | float | None) -> str:
    """A share with its interval, where it has one."""
    if estimate is None:
        return MISSING
    if isinstance(estimate, int | float):
        return percent(estimate)
    low, high = estimate["low"], estimate["high"]
    bounds = "" if low == high else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return percent(estimate["value"]) + bounds


def with_interval(estimate: dict[str, float]) -> str:
    """A number with its interval, where it has one."""
    low, high = estimate["low"], estimate["high"]
    bounds = "" if low == high else f" [{number(low)}, {number(high)}]"
    return number(estimate["value"]) + bounds


def read(file: Path) -> Any:
    """JSON, or nothing where there is no such file."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def result_files(kind: str) -> list[Path]:
    """The result files of an experiment, in the order of their names."""
    found = sorted((RESULTS / kind).glob("*.json"))
    return [file for file in found if not file.name.endswith(".about.json")]


def stamp(file: Path, facts: dict[str, Any]) -> str:
    """Version, seeds, experts and command, in front of every table."""
    facts = {**facts, **read(file.with_name(f"{file.stem}.about.json"))}
    missing = [name for name in ("version", "seeds", "experts", "command") if not facts.get(name)]
    if missing:
        raise SystemExit(f"{file}: add {', '.join(missing)} in {file.stem}.about.json beside it")
    said = " · ".join(f"{name}: {facts[name]}" for name in ("version", "seeds", "experts"))
    return f"{said}\n\n```bash\n{facts['command']}\n```"


def version_of(versions: dict[str, str]) -> str:
    """Of tacit and of what its numbers depend on most."""
    named = {name: versions[name] for name in ("tacit", "jax", "mujoco") if name in versions}
    return ", ".join(f"{name} {version}" for name, version in named.items())


def coverage_rows() -> list[dict[str, str]]:
    """The rows of the coverage experiment."""
    file = RESULTS / "coverage" / "coverage.csv"
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def coverage_stamp(rows: list[dict[str, str]]) -> str:
    """Where the coverage rows come from."""
    settings = read(RESULTS / "coverage" / "settings.json")
    quick = settings["settings"]["datasets"] < 50
    facts = {
        "version": version_of(settings.get("versions", {})),
        "seeds": f"{rows[0]['datasets']} data sets a cell, from seed "
        f"{settings.get('settings', {}).get('seed', 0)}",
        "experts": "exact ones for the true rule, N of their episodes that keep it",
        "command": f"tacit experiment run coverage{' --quick' * quick} --out coverage",
    }
    return stamp(RESULTS / "coverage" / "coverage.csv", facts)


def way_of(row: dict[str, str]) -> tuple[str, ...]:
    """How a row was learned: method, objective, votes and reading, as far as it says."""
    return tuple(row[name] for name in WAY if row.get(name))


def is_default(row: dict[str, str]) -> bool:
    """Whether a row is of what `infer` does on tables unless told otherwise."""
    counts = row.get("method", row.get("objective")) == DEFAULT[0]["method"]
    return counts and all(row.get(name) in (None, "", value) for name, value in DEFAULT[1].items())


def coverage_default() -> str:
    """Violation, reward and coverage of `counts`, cell by cell."""
    rows = [row for row in coverage_rows() if is_default(row)]
    if not rows:
        return NOTHING
    levels = sorted({float(row["confidence"]) for row in rows})
    cells: dict[tuple[str, int], dict[float, dict[str, str]]] = {}
    for row in rows:
        key = row["task"], int(row["experts"])
        cells.setdefault(key, {})[float(row["confidence"])] = row
    lines = []
    for (task, experts), by_level in cells.items():
        found = [by_level[level] for level in levels]
        lines.append(
            [
                task,
                str(experts),
                *(
                    f"{float(row['violation']):.3f} [{float(row['violation_low']):.3f}, "
                    f"{float(row['violation_high']):.3f}]"
                    for row in found
                ),
                " ".join(f"{float(row['reward']):.1f}" for row in found),
                " ".join(f"{float(row['joint_coverage']):.2f}" for row in found),
                " ".join(f"{float(row['distance_to_oracle']):.2f}" for row in found),
            ]
        )
    columns = ["task", "N", *(f"λ = {level:g}" for level in levels)]
    columns += ["reward", "joint coverage", "distance to the exact answer"]
    return f"{coverage_stamp(rows)}\n\n{table(columns, lines)}"


def coverage_ways() -> str:
    """In how many cells each way of learning breaks what is promised."""
    rows = coverage_rows()
    if not rows:
        return NOTHING
    by_way: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        by_way.setdefault(way_of(row), []).append(row)
    lines = []
    for way, own in by_way.items():
        sure = [row for row in own if float(row["confidence"]) >= 0.5]
        checks = (
            sum(float(row["violation"]) > 1 - float(row["confidence"]) for row in own),
            sum(float(row["joint_coverage"]) < float(row["confidence"]) for row in sure),
            sum(float(row["pointwise_coverage"]) < float(row["confidence"]) for row in own),
        )
        distances = [
            sum(float(row["distance_to_oracle"]) for row in own if int(row["experts"]) == size)
            / max(1, sum(int(row["experts"]) == size for row in own))
            for size in sorted({int(row["experts"]) for row in own})
        ]
        lines.append(
            [
                " ".join(way),
                f"{checks[0]} of {len(own)}",
                f"{checks[1]} of {len(sure)}",
                f"{checks[2]} of {len(own)}",
                " ".join(f"{distance:.2f}" for distance in distances),
            ]
        )
    sizes = ", ".join(str(size) for size in sorted({int(row["experts"]) for row in rows}))
    columns = ["way", "promise broken", "joint coverage short", "pointwise short"]
    return table([*columns, f"mean distance, N = {sizes}"], lines)


def methods_tables() -> str:
    """One table for every comparison of methods."""
    parts = [methods_table(file) for file in result_files("methods")]
    return "\n\n".join(parts) or NOTHING


def methods_table(file: Path) -> str:
    """Violation and reward of every method on one task."""
    found = read(file)
    comparison = found["comparison"]
    seeds = sorted({cell["seed"] for cell in found["cells"]})
    facts = {
        "version": version_of(found.get("versions", {})),
        "seeds": " ".join(map(str, seeds)),
        "experts": f"{comparison['number']} demonstrations of `{comparison['experts']}`",
        "command": found["command"],
    }
    tested = [line for line in found["summary"] if line.get("p_feasible_reward") is not None]
    rows = []
    for line in found["summary"]:
        row = [
            line["method"],
            share_with_interval(line["training_violation"]),
            share_with_interval(line["violation"]),
            with_interval(line["feasible_reward"]),
            f"{line['minutes']:.1f}",
        ]
        if tested:
            row += [probability(line.get(f"p_{name}")) for name in ("violation", "feasible_reward")]
        rows.append(row)
    columns = [
        "method",
        "violation, training",
        "violation, execution",
        "feasible reward",
        "minutes",
    ]
    columns += ["p violation", "p reward"] if tested else []
    options = ", ".join(f"{name} {value}" for name, value in comparison["options"].items())
    title = comparison["task"] + (f" ({options})" if options else "")
    steps = max(cell["steps"] for cell in found["cells"])
    words = f"{steps:,} steps, confidence {comparison['confidence']:g}. "
    words += "Execution: fresh episodes without exploration. Intervals: 95 %."
    if tested:
        untested = [line["method"] for line in found["summary"] if line not in tested]
        words += f" p: t-test over seeds against {untested[0] if untested else 'the default'}."
    return f"## {title}\n\n{stamp(file, facts)}\n\n{words}\n\n{table(columns, rows)}"


def probability(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return MISSING
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def confidence_tables() -> str:
    """One table for every simulated task on which levels were compared."""
    parts = [confidence_table(file) for file in result_files("confidence")]
    return "\n\n".join(parts) or NOTHING


def confidence_table(file: Path) -> str:
    """Violation at every number of demonstrations and every level."""
    found = read(file)
    comparison = found["comparison"]
    seeds = max(row["seeds"] for row in found["rows"])
    facts = {
        "version": version_of(found.get("versions", {})),
        "seeds": f"{seeds} a cell",
        "experts": f"N demonstrations of `{comparison['experts']}`",
        "command": found.get("command", ""),
    }
    rows = []
    for row in found["rows"]:
        promised = 1 - row["confidence"]
        kept = row["violation"]["high"] <= promised + 1e-12
        rows.append(
            [
                str(row["number"]),
                f"{row['confidence']:g}",
                share_with_interval(row["violation"]),
                percent(promised) + ("" if kept else " (broken)"),
                percent(row["worst"]),
                with_interval(row["reward"]),
                percent(row["training"]),
            ]
        )
    columns = ["N", "λ", "violation", "promised", "worst seed", "feasible reward", "training"]
    steps = f"{comparison['steps']:,} steps. Intervals: 95 %."
    heading = f"## {comparison['task']}\n\n{stamp(file, facts)}"
    return f"{heading}\n\n{steps}\n\n{table(columns, rows)}"


PARTS: dict[str, Callable[[], str]] = {
    "coverage-default": coverage_default,
    "coverage-ways": coverage_ways,
    "methods": methods_tables,
    "confidence": confidence_tables,
}


def written(text: str) -> str:
    """The text of a page with everything between markers made anew."""

    def made(match: re.Match[str]) -> str:
        return f"{match[1]}\n{PARTS[match[2]]()}\n\n{match[3]}"

    return MARKED.sub(made, text)


def pages() -> list[Path]:
    """The pages of evidence."""
    return sorted(HERE.glob("*.md"))


def main() -> None:
    """Write the pages that have changed."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"written: {page.relative_to(HERE.parent.parent)}")


if __name__ == "__main__":
    main()
