"""The paper's tables with ours and the paper's numbers side by side, as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ode2opt.base.storage import write_atomically
from ode2opt.study.reproduction.findings import MISSING, NOTHING, QUANTITIES, Comparison, Findings
from ode2opt.study.reproduction.plan import CLASSICS, ITERATIONS, RIVALS, ROWS, Row, printed
from ode2opt.study.tables import Sheet

BENCHMARKS = {
    "table2": ("logistic", "measure"),
    "table3": ("lpp", "measure"),
    "table4": ("logistic", "complexity"),
    "table5": ("lpp", "complexity"),
}
NAMES = {"logistic": "logistic regression", "lpp": "lpp minimisation"}


@dataclass(frozen=True)
class PaperTable:
    """A table to read, and its numbers as records."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    records: list[dict[str, Any]]
    study: str

    @property
    def sheet(self) -> Sheet:
        """The table to read; its caption begins with its number."""
        title = f"Table {self.name.removeprefix('table')}. {self.caption}"
        return Sheet(self.columns, self.rows, caption=title)

    def save(self, folder: Path) -> list[Path]:
        """Write name.csv, name.md and name.tex."""
        sheet = self.sheet
        texts = {"csv": self._csv(), "md": sheet.markdown(), "tex": sheet.latex(self.caption)}
        return [_written(folder / f"{self.name}.{end}", text) for end, text in texts.items()]

    def _csv(self) -> str:
        text = io.StringIO()
        names = list(dict.fromkeys(name for record in self.records for name in record))
        writer = csv.DictWriter(text, [*names, "study"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(record | {"study": self.study} for record in self.records)
        return text.getvalue()


def _written(path: Path, text: str) -> Path:
    write_atomically(path, lambda stream: stream.write(text.encode()))
    return path


def make_tables(findings: Findings) -> dict[str, PaperTable]:
    """Return the tables that are asked for, by name."""
    made = {}
    for name in findings.outputs:
        if name == "table1":
            made[name] = _datasets(findings)
        elif name in BENCHMARKS:
            made[name] = _benchmark(findings, name)
    return made


def _table(
    findings: Findings,
    name: str,
    caption: str,
    columns: list[str],
    rows: list[list[str]],
    records: list[dict[str, Any]],
) -> PaperTable:
    effort = findings.effort
    return PaperTable(name, effort.marked(caption), columns, rows, records, effort.mark or "full")


# Table 1 ----------------------------------------------------------------------------------------


def _datasets(findings: Findings) -> PaperTable:
    rows, records = [], []
    for dataset in findings.datasets:
        made = findings.get("data", "logistic", dataset)
        paper = printed()["datasets"].get(dataset)
        facts = made["facts"] if made else {}
        sizes = [facts.get(key) for key in ("columns", "train_rows", "test_rows")]
        shares = [facts.get(key) for key in ("train_share_of_ones", "train_density")]
        without = facts.get("problems_without_minimiser")
        rows.append(
            [dataset]
            + [_with_paper(one, paper and paper[i]) for i, one in enumerate(sizes)]
            + [MISSING if one is None else f"{one:,}" for one in [facts.get("rows_a_problem")]]
            + [MISSING if one is None else f"{one:.3f}" for one in shares]
            + [_separable(facts, printed()["separable"].get(dataset))]
            + [MISSING if without is None else f"{without} of {facts['problems']}"]
        )
        records.append(
            {"dataset": dataset} | facts
            | {f"paper_{k}": paper and paper[i] for i, k in enumerate(("n", "train", "test"))}
            | {"paper_separable": printed()["separable"].get(dataset)}
        )  # fmt: skip
    columns = [
        "dataset", "columns", "training rows", "test rows", "rows a problem", "share of ones",
        "density", "separable", "no minimiser",
    ]  # fmt: skip
    caption = (
        "The datasets as loaded, split as in the paper; share of ones and density are "
        "those of the training rows. Where the paper's number differs, it stands in brackets. "
        "covtype20k, the first 20,000 rows of covtype, is not in the paper. Separable: a plane has "
        "all training rows of each class strictly on its side. No minimiser: how many logistic "
        "test problems have none, because along some direction no row's loss grows."
    )
    return _table(findings, "table1", caption, columns, rows, records)


def _separable(facts: dict[str, Any], paper: bool | None) -> str:
    """Return whether a plane separates the training rows, the paper's word where it differs."""
    if "train_separable" not in facts:
        return MISSING
    words = {True: "yes", False: "no", None: "not known"}
    ours = facts["train_separable"]
    return words[ours] + (f" ({words[paper]})" if paper is not None and paper != ours else "")


def _with_paper(ours: int | None, paper: int | None) -> str:
    text = MISSING if ours is None else f"{ours:,}"
    return text if paper is None or paper == ours else f"{text} ({paper:,})"


# Tables 2 to 5 ----------------------------------------------------------------------------------


def _benchmark(findings: Findings, name: str) -> PaperTable:
    problem, quantity = BENCHMARKS[name]
    cells = {
        row: [
            Comparison.of(findings, problem, quantity, row, dataset)
            for dataset in findings.datasets
        ]
        for row in ROWS
    }
    rows = [line for row, found in cells.items() for line in _compared(row, found)]
    rows += _win_rates(findings, problem, quantity)
    if quantity == "complexity":
        rows += [line for row, found in cells.items() for line in _prices(row, found)]
    caption = (
        f"{NAMES[problem].capitalize()}: {QUANTITIES[quantity]}, mean (standard deviation) "
        f"over {findings.effort.instances} test problems. {_LEGENDS[quantity]}"
    )
    records = [
        {"problem": problem, "dataset": dataset, "method": row.name} | cell.record()
        for row, found in cells.items()
        for dataset, cell in zip(findings.datasets, found, strict=True)
    ]
    return _table(findings, name, caption, ["method", "", *findings.datasets], rows, records)


_LEGENDS = {
    "measure": (
        "Win rate: the share of problems on which the learned EIGAC is below all of GD, NAG, IGAHD "
        "and EIGAC(default) with C = 1, or below all rows. EIGAC is the learned method under the "
        "paper's relay, EIGAC, guarded the same method under the guard."
    ),
    "complexity": (
        f"Where some problems did not reach the tolerance in {ITERATIONS} iterations, these count "
        f"as {ITERATIONS} and the mean is a lower bound, marked > with the share that did; a "
        "difference with such a mean on either side is marked capped. Win rate as in Table 2. "
        "Calls and ms: until the tolerance, set-up included."
    ),
}


def _compared(row: Row, cells: list[Comparison]) -> Iterator[list[str]]:
    """Yield ours and, where the paper has the row, the paper's and the difference."""
    yield [row.name, "ours", *(cell.ours() for cell in cells)]
    if row.paper:
        yield [row.name, "paper", *(cell.theirs() for cell in cells)]
        yield [row.name, "difference", *(cell.difference() for cell in cells)]


def _win_rates(findings: Findings, problem: str, quantity: str) -> Iterator[list[str]]:
    def ours(rivals: Sequence[str]) -> Iterator[str]:
        for dataset in findings.datasets:
            rate = findings.win_rate(problem, dataset, quantity, rivals)
            yield MISSING if rate is None else f"{100 * rate:.0f}%"

    known, theirs = printed()["datasets"], f"{100 * printed()['win_rate']:.0f}%"
    yield ["Win rate", "ours", *ours(RIVALS)]
    yield ["Win rate", "paper", *(theirs if d in known else NOTHING for d in findings.datasets)]
    yield ["Win rate, all rows", "ours", *ours([row.key for row in CLASSICS])]


def _prices(row: Row, cells: list[Comparison]) -> Iterator[list[str]]:
    yield [row.name, "calls", *(cell.price("oracle_calls_mean") for cell in cells)]
    yield [row.name, "ms", *(cell.price("seconds_mean", 1e3) for cell in cells)]
