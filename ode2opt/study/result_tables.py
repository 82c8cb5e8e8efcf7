"""Tables and sentences of benchmarks and certificates."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ode2opt.base.schema import read
from ode2opt.proofs.confidence import Expectation, percent_down
from ode2opt.study.tables import Sheet

if TYPE_CHECKING:
    from ode2opt.proofs.certificate import Certificate

LEGEND = (
    "measure: log10 of the gradient norm at the last iteration, < where some are below the "
    "rounding of the first norm, which stands for them; complexity: first iteration at the "
    "tolerance; calls, ms: until the tolerance, set-up included. Means (standard deviations) over "
    "the instances; > where some did not reach the tolerance."
)


def benchmark_table(
    statistics: Mapping[str, Mapping[str, Any]], total: int, title: str = ""
) -> Sheet:
    """Return a benchmark as a table, one row for each method; the fewest calls are bold."""
    names = ["method", "measure", "complexity", "worst", "calls", "within", "ms", "reached"]
    rows = [benchmark_cells(name, row, total) for name, row in statistics.items()]
    events = list(map(_events, statistics.values()))
    if any(events):
        names.append("events")
        rows = [[*row, words] for row, words in zip(rows, events, strict=True)]
    found = list(statistics.values())
    fewest = min(range(len(found)), key=lambda i: found[i]["oracle_calls_mean"], default=None)
    bold = fewest if fewest is not None and found[fewest]["reached"] else None
    return Sheet(names, rows, title, legend(statistics), ("events",), bold)


def benchmark_cells(method: str, row: Mapping[str, Any], total: int) -> list[str]:
    """Return one method's statistics as text; ">" where some instances missed the tolerance."""
    mark = "" if row["reached"] == total else ">"
    least = "<" if row.get("measure_at_rounding") else ""
    return [
        method,
        f"{least}{row['measure_mean']:.2f} ({row['measure_std']:.3f})",
        f"{mark}{row['complexity_mean']:.1f} ({row['complexity_std']:.1f})",
        f"{mark}{row['complexity_max']}",
        f"{mark}{row['oracle_calls_mean']:.0f}",
        _within(row),
        f"{mark}{1e3 * row['seconds_mean']:.1f}",
        f"{row['reached']}/{total}",
    ]


def legend(statistics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what the columns of the table mean."""
    told = [found for row in statistics.values() if (found := expected(row)) is not None]
    if not told:
        return LEGEND
    first = told[0]
    return (
        f"{LEGEND} within: at least {percent_down(first.share)}% of such problems, drawn the same "
        f"way, need at most so many calls, with confidence {percent_down(first.confidence)}%; - "
        f"where that is not known."
    )


def expected(row: Mapping[str, Any]) -> Expectation | None:
    """Return what further problems need by one method's statistics; None if that is not known."""
    found = row.get("statistical")
    return None if found is None else read(Expectation, found)


def _within(row: Mapping[str, Any]) -> str:
    found = expected(row)
    return "-" if found is None or found.calls is None else f"{math.ceil(found.calls):,}"


def expected_words(
    statistics: Mapping[str, Mapping[str, Any]], learned: Collection[str]
) -> list[str]:
    """Return a sentence for each learned method, and the one of fewest calls."""
    known = {name: found for name, row in statistics.items() if (found := expected(row))}
    fewest = min(known, key=lambda name: statistics[name]["oracle_calls_mean"], default=None)
    return [
        f"{name}: of this family {found.words()}."
        for name, found in known.items()
        if name == fewest or name in learned
    ]


def _events(row: Mapping[str, Any]) -> str:
    names = {"diverged": "diverged", "handovers": "handed over"}
    return ", ".join(f"{row[key]} {word}" for key, word in names.items() if row[key])


def payback_sentences(statistics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return, for each learned method, after how many solves its training is earned back."""
    return [
        f"{name}: its training is earned back against {baseline} after {solves:,} solves."
        if solves
        else f"{name}: slower than {baseline} here; its training is never earned back."
        for name, row in statistics.items()
        for baseline, solves in row.get("earned_back", {}).items()
    ]


CONDITIONS = {
    "convergence": "flow: Theorem 1",
    "stability": "sequence: the paper's condition",
    "linear": "sequence: exact linear stability",
}


def certificate_table(certificate: Certificate, title: str) -> Sheet:
    """Return the conditions of a certificate as a table."""
    caption = f"Curvature: {certificate.estimator}."
    if certificate.growth is not None:
        c1, c2, c3, limit = certificate.growth
        caption += f" Growth: C1 = {c1:.3g}, C2 = {c2:.3g} (limit {limit:.3g}), C3 = {c3:.3g}."
    rows = []
    for name, meaning in CONDITIONS.items():
        condition = certificate.conditions.get(name)
        if condition is None:
            rows.append([meaning, "-", "-", "-", "-"])
            continue
        instance = "all" if condition.instance is None else str(condition.instance)
        held = f"{condition.held}/{condition.total}"
        rows.append([meaning, f"{condition.margin:.4g}", f"{condition.t:.4g}", instance, held])
    columns = ["condition", "smallest margin", "at t", "on instance", "holds on"]
    return Sheet(columns, rows, title, caption)
