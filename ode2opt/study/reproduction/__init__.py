"""The paper's whole study: tables, figures and a report, made in one go and kept by content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import DataUnavailableError, Ode2OptError
from ode2opt.base.storage import FolderLock, sweep
from ode2opt.executor import Executor, LocalExecutor
from ode2opt.study.reproduction import plan
from ode2opt.study.reproduction.cache import Store, claim, identity_of, read_json, write_json
from ode2opt.study.reproduction.cells import family_of
from ode2opt.study.reproduction.figures import make_figures
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.report import results, write_report
from ode2opt.study.reproduction.running import MINUTES, cost_of, run_items
from ode2opt.study.reproduction.tables import make_tables
from ode2opt.study.style import save_figure

__all__ = ["Reproduction"]


class Reproduction:
    """A study in a folder: what there is to do, the work, and what is written."""

    def __init__(self, folder: str | Path, only: str | None = None, quick: bool = False) -> None:
        self.folder = Path(folder)
        self.outputs = plan.chosen_outputs(only)
        self.effort = plan.QUICK if quick else plan.FULL
        identity = identity_of(self.effort)
        claim(self.folder, identity)
        self.missing: list[dict[str, str]] = []
        self.datasets = plan.datasets_of_study()
        self._shown = self._with_earlier()
        self.store = Store(self.folder / "cache", identity, self._fingerprints())
        work = plan.work_behind(self.outputs, self.datasets)
        at_hand = [item for item in work if (item.problem, item.dataset) in self.store.fingerprints]
        self._todo = [item for item in at_hand if self.store.load(item) is None]

    def _with_earlier(self) -> tuple[str, ...]:
        """Return the outputs, those of earlier calls in this folder included."""
        earlier = (read_json(self.folder / "results.json") or {}).get("outputs", [])
        return tuple(name for name in plan.OUTPUTS if name in {*self.outputs, *earlier})

    def _fingerprints(self) -> dict[tuple[str, str], str]:
        """Load all data that is shown once; what cannot be loaded is missing."""
        found: dict[tuple[str, str], str] = {}
        missing: dict[str, str] = {}
        for item in plan.work_behind(self._shown, self.datasets):
            problem, dataset = cell = (item.problem, item.dataset)
            if cell in found or dataset in missing:
                continue
            try:
                found[cell] = str(family_of(problem, dataset).fingerprint())
            except DataUnavailableError as error:
                missing[dataset] = str(error)
        self.missing += [{"what": name, "why": why} for name, why in missing.items()]
        return found

    @property
    def cost(self) -> int:
        """How much work is left, in about a training step each."""
        return cost_of(self._todo, self.effort)

    @property
    def left(self) -> str:
        """What there is to do, and how long everything takes."""
        if not self._todo:
            return "all work is done already"
        which = "quick" if self.effort.mark else "whole"
        pieces = "1 piece" if len(self._todo) == 1 else f"{len(self._todo)} pieces"
        return (
            f"{pieces} of work to do; all of the {which} study takes about "
            f"{MINUTES[which]} minutes on two cores"
        )

    def run(
        self,
        jobs: int = 1,
        advance: Callable[[], None] = lambda: None,
        executor: Executor | None = None,
    ) -> None:
        """Do the work that is left; the folder is locked until it is done."""
        executor = executor or LocalExecutor(as_count(jobs, "jobs"))
        with FolderLock(self.folder):
            sweep(self.store.folder)
            failures = run_items(self.store, self.effort, self._todo, executor, advance)
        self.missing += [{"what": str(one.item), "why": one.why} for one in failures]

    def write(self) -> list[Path]:
        """Write results.json, tables, figures and report.html; returns their paths.

        What an earlier call made in the same folder is kept in results.json and the report.
        """
        findings = Findings(self.store, self.effort, self.datasets, self._shown)
        tables = make_tables(findings)
        folders = {name: self.folder / name for name in ("tables", "figures")}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        files = [path for table in tables.values() for path in table.save(folders["tables"])]
        for name, figure in make_figures(findings).items():
            files += save_figure(figure, folders["figures"], name)
        report = self.folder / "report.html"
        write_report(findings, tables, self.missing).save(report)
        files.append(report)
        names = [path.relative_to(self.folder) for path in files]
        document: dict[str, Any] = results(findings, tables, names, self.missing)
        write_json(self.folder / "results.json", document, strict=True)
        return [*files, self.folder / "results.json"]

    def check(self) -> None:
        """Raise an error that lists what is missing, if anything is."""
        if self.missing:
            listed = "; ".join(f"{one['what']} ({one['why'].rstrip('.')})" for one in self.missing)
            raise Ode2OptError(f"Not everything could be made. Missing: {listed}.")
