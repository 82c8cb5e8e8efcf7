"""results.json: every number of the study, and what it was made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ode2opt.study.reproduction.findings import QUANTITIES, Findings
from ode2opt.study.reproduction.paper_tables import PaperTable
from ode2opt.study.reproduction.plan import ITERATIONS, PROBLEMS, SEED, TOL, TRAININGS, Item
from ode2opt.study.reproduction.rows import ROWS, printed_cell

TRAINING = ("horizon", "certificate", "statistics", "options")


def machine() -> dict[str, Any]:
    """Return what the seconds were measured on."""
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def results(
    findings: Findings,
    tables: dict[str, PaperTable],
    files: Iterable[Path],
    missing: Sequence[dict[str, str]],
) -> dict[str, Any]:
    """Return the document of results.json."""
    return {
        "quick": bool(findings.effort.mark),
        "outputs": list(findings.outputs),
        "missing": list(missing),
        "made_with": findings.store.identity
        | {"tol": TOL, "max_iter": ITERATIONS, "seed": SEED, "split": "paper"},
        "machine": machine(),
        "datasets": {
            dataset: made["facts"]
            for dataset in findings.datasets
            if (made := findings.get("data", "logistic", dataset))
        },
        "cells": {
            f"{problem} {dataset}": cell
            for problem in PROBLEMS
            for dataset in findings.datasets
            if (cell := _cell(findings, problem, dataset))
        },
        "tables": {
            name: {"caption": table.caption, "columns": table.columns, "rows": table.rows}
            for name, table in tables.items()
        },
        "files": sorted(map(str, files)),
    }


def _cell(findings: Findings, problem: str, dataset: str) -> dict[str, Any]:
    """Return all numbers of a cell, the paper's beside them; empty where there are none."""
    cell: dict[str, Any] = {}
    if methods := findings.statistics(problem, dataset):
        cell["methods"] = methods
        cell["win_rate"] = {q: findings.win_rate(problem, dataset, q) for q in QUANTITIES}
        cell["paper"] = _paper(problem, dataset)
    for kind in TRAININGS:
        if (made := findings.get(kind, problem, dataset)) is not None:
            run = findings.store.run(Item(kind, problem, dataset))
            cell[kind] = {name: made[name] for name in (*TRAINING, "broken_off") if name in made}
            cell[kind]["steps"] = len(made["steps"]["step"])
            cell[kind]["seconds"] = made["steps"]["seconds"][-1]
            cell[kind]["method"] = str(Path(run.parent.name) / run.name / "method.safetensors")
    if (made := findings.get("contraction", problem, dataset)) is not None:
        cell["contraction"] = {
            protocol: {name: line["extremes"] for name, line in lines.items()}
            for protocol, lines in made["protocols"].items()
        }
    return cell


def _paper(problem: str, dataset: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in ROWS:
        for quantity in QUANTITIES:
            if printed := printed_cell(quantity, problem, row, dataset):
                one = found.setdefault(row.key, {})
                one[f"{quantity}_mean"], one[f"{quantity}_std"] = printed
    return found
