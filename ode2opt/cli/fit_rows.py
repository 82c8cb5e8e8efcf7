"""The rows that ode2opt solve fits to: one file, or many in parts, and rows held back from it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ode2opt.base.errors import InputError, shown
from ode2opt.base.terminal import mention
from ode2opt.cli.fitted import HeldOutRows

if TYPE_CHECKING:
    import numpy as np

    from ode2opt.data.encoding import TableEncoding
    from ode2opt.data.files import DataTable, ReadOptions


@dataclass
class FitRows:
    """The rows of a fit: where they are, how they are read, and what was found in them.

    Attributes:
        where: a file, a folder or a pattern.
        reading: how files are read.
        scale: whether columns are divided by their largest entries; False by default.
        cluster: Dask workers that hold the rows: "local" or an address; None by default.
        workers: processes of a local cluster, or threads; None (the default) is one a processor.
        memory: bytes that rows in parts may take; None by default.
        held_back: the share of rows to hold back, and the seed that chooses them; None by default.
        watcher: called when parts are read; None by default.
        sizes: found: what columns were divided by.
        classes: found: the labels in order, where the problem has classes.
        words: found: labels that are not numbers.
        categories: found: the words that have become columns.
        encoding: found: how columns of the file became those of the matrix.
        others: found: rows that are not fitted to.
        notes: found: sentences about what was done.
    """

    where: Path
    reading: ReadOptions
    scale: bool = False
    cluster: str | None = None
    workers: int | None = None
    memory: int | None = None
    held_back: tuple[float, int] | None = None
    watcher: Any = None
    sizes: np.ndarray | None = None
    classes: Any = None
    words: tuple[str, ...] = ()
    categories: Any = None
    encoding: TableEncoding | None = None
    others: list[HeldOutRows] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def model(self, kind: Any, options: dict[str, Any], stack: ExitStack) -> tuple[Any, Any]:
        """Read the rows and make the problem."""
        from ode2opt.data.files import are_parts

        if self.cluster is None and not are_parts(self.where):
            return self._whole(kind, options), None
        if self.held_back is not None:
            raise InputError(
                "--holdout is for one file: rows in parts stay where they are. Name other rows "
                "with --test FILE."
            )
        model = self._in_parts(kind, options, stack)
        return model, lambda: ", ".join(
            filter(None, (f"pass {model.passes}", model.held.description()))
        )

    def read_test(self, file: Path) -> None:
        """Read rows that are not fitted to, and check that their labels are known."""
        from ode2opt.data.files import read_encoded

        assert self.encoding is not None
        self.others.append(
            HeldOutRows(
                "test", f"rows of {file.name}", read_encoded(file, self.encoding, unknown="zero")
            )
        )
        self.check_others()

    def check_others(self) -> None:
        """Refuse held-out rows without labels, or with labels that the fit has not seen."""
        for other in self.others:
            other.check(self.classes)

    def facts(self, rows: int) -> dict[str, str]:
        """Return how much is fitted to, for the table of facts."""
        assert self.encoding is not None
        return {"rows x columns": f"{rows:,} x {self.encoding.width:,}"}

    def label_found(self) -> tuple[str, ...]:
        """Return a sentence about which column is the label, if the user has not named it."""
        found = self.encoding
        if self.reading.label is not None or not found or not found.columns:
            return ()
        if found.named:
            return (f"The label is column {shown(found.label)}.",)
        return (f"The label is column {found.label} (counted from 0).",)

    def _whole(self, kind: Any, options: dict[str, Any]) -> Any:
        import numpy as np

        from ode2opt.data.preparing import largest_entries, rows_of, scaled

        if self.workers is not None or self.memory is not None:
            raise InputError(
                "--workers and --memory-limit are for a folder, a pattern or --cluster."
            )
        table = self._table(kind)
        rows = rows_of(table, str(self.where), kind.binary, kind.counted)
        self.words, options = rows.words, options | {"weights": rows.weights}
        self.categories, self.encoding, self.notes = table.words, table.encoding, table.notes
        if kind.prediction.classes:
            self._set_classes(np.unique(table.labels))
        self.check_others()
        if not self.scale:
            return kind(rows.A, rows.b, **options)
        self.sizes = largest_entries(rows.A)
        return kind(scaled(rows.A, self.sizes), rows.b, **options)

    def _table(self, kind: Any) -> DataTable:
        """Return the rows to fit to; others are held back from them."""
        from ode2opt.data.files import read_split, read_table
        from ode2opt.data.preparing import held_out

        if self.held_back is None:
            return read_table(self.where, self.reading)
        share, seed = self.held_back
        choose = partial(held_out, share=share, seed=seed, classes=kind.prediction.classes)
        table, others = read_split(self.where, choose, self.reading)
        self.others.append(HeldOutRows("holdout", "rows held back", others))
        return table

    def _in_parts(self, kind: Any, options: dict[str, Any], stack: ExitStack) -> Any:
        import numpy as np

        from ode2opt.data.preparing import label_words
        from ode2opt.executor import LocalExecutor
        from ode2opt.problems.parts import Parts, files_in_parts

        files = files_in_parts(self.where, self.reading)
        if self.cluster is None:
            executor: Any = LocalExecutor(1, self.workers, self.memory, self.watcher)
        else:
            from ode2opt.integrations.dask import open_executor

            executor = stack.enter_context(
                open_executor(self.cluster, self.workers, self.memory, tell=mention)
            )
        labels = kind.binary or kind.counted
        model = Parts(kind, files, executor=executor, labels=labels, scale=self.scale, **options)
        self.sizes, self.words = model.sizes, label_words(np.array(model.label_values))
        self.categories, self.encoding, self.notes = model.words, model.encoding, model.notes
        if labels:
            self._set_classes(np.array(model.label_values))
        return model

    def _set_classes(self, labels: np.ndarray) -> None:
        """Keep the labels in their order; true and false are read as 1 and 0."""
        truths = self.encoding is not None and self.encoding.truths
        self.classes = labels.astype(bool) if truths else labels
