"""The rows that ode2opt solve fits to: one file, or many in parts, and rows held back from it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ode2opt.base.errors import InputError, shown
from ode2opt.base.terminal import mention
from ode2opt.cli.fitted import HeldOutRows
from ode2opt.cli.from_options import file_opt, opt
from ode2opt.cli.options import cluster_opt, workers_opt
from ode2opt.data.files import ReadOptions

if TYPE_CHECKING:
    import numpy as np

    from ode2opt.data.encoding import TableEncoding
    from ode2opt.data.files import DataTable


@dataclass(frozen=True)
class RowsOptions:
    """Where the rows of a fit are held, and how well others are to be predicted."""

    scale_columns: Annotated[
        bool,
        opt(
            "Divide each column by its largest entry, as train does with files, and give x for the "
            "columns as they are."
        ),
    ] = False
    cluster: Annotated[str | None, cluster_opt("hold the rows")] = None
    workers: Annotated[int | None, workers_opt(", or threads without a cluster")] = None
    memory_limit: Annotated[
        str | None, opt("What rows in parts may take; the rest stays on disk.", metavar="2GB")
    ] = None
    test: Annotated[
        Path | None, file_opt("Tell how well the rows of this file are predicted, too.")
    ] = None
    holdout: Annotated[
        float | None,
        opt(
            "Hold back this share of the rows (of each class), such as 0.2: they are not fitted "
            "to, and it is told how well they are predicted.",
            metavar="SHARE",
        ),
    ] = None
    seed: Annotated[int, opt("Drives which rows --holdout takes.", min=0)] = 0

    @property
    def held_back(self) -> tuple[float, int] | None:
        """The share of rows to hold back, and the seed that chooses them."""
        from ode2opt.data.preparing import check_share

        return None if self.holdout is None else (check_share(self.holdout), self.seed)


@dataclass
class FitRows:
    """The rows of a fit: where they are, how they are read, and what was found in them.

    Attributes:
        where: a file, a folder or a pattern.
        reading: how files are read.
        asked: where rows are held.
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
    asked: RowsOptions
    watcher: Any = None
    sizes: np.ndarray | None = None
    classes: Any = None
    words: tuple[str, ...] = ()
    categories: Any = None
    encoding: TableEncoding | None = None
    others: list[HeldOutRows] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.memory = as_bytes(self.asked.memory_limit)

    def model(self, kind: Any, options: dict[str, Any], stack: ExitStack) -> tuple[Any, Any]:
        """Read the rows and make the problem, and what tells how far a solve in parts is."""
        from ode2opt.data.files import are_parts

        beside = None
        if self.asked.cluster is None and not are_parts(self.where):
            model = self._whole(kind, options)
        elif self.asked.holdout is not None:
            raise InputError(
                "--holdout is for one file: rows in parts stay where they are. Name other rows "
                "with --test FILE."
            )
        else:
            model = self._in_parts(kind, options, stack)

            def beside() -> str:
                return ", ".join(filter(None, (f"pass {model.passes}", model.held.description())))

        if self.asked.test is not None:
            self._read_test(self.asked.test)
        return model, beside

    def _read_test(self, file: Path) -> None:
        from ode2opt.data.files import read_encoded

        assert self.encoding is not None
        rows = read_encoded(file, self.encoding, unknown="zero")
        self.others.append(HeldOutRows("test", f"rows of {file.name}", rows))
        self._check_others()

    def _check_others(self) -> None:
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

        if self.asked.workers is not None or self.memory is not None:
            raise InputError(
                "--workers and --memory-limit are for a folder, a pattern or --cluster."
            )
        table = self._table(kind)
        rows = rows_of(table, str(self.where), kind.binary, kind.counted)
        self.words, options = rows.words, options | {"weights": rows.weights}
        self.categories, self.encoding, self.notes = table.words, table.encoding, table.notes
        if kind.prediction.classes:
            self._set_classes(np.unique(table.labels))
        self._check_others()
        if not self.asked.scale_columns:
            return kind(rows.A, rows.b, **options)
        self.sizes = largest_entries(rows.A)
        return kind(scaled(rows.A, self.sizes), rows.b, **options)

    def _table(self, kind: Any) -> DataTable:
        """Return the rows to fit to; others are held back from them."""
        from ode2opt.data.files import read_split, read_table
        from ode2opt.data.preparing import held_out

        held_back = self.asked.held_back
        if held_back is None:
            return read_table(self.where, self.reading)
        share, seed = held_back
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
        cluster, workers = self.asked.cluster, self.asked.workers
        if cluster is None:
            executor: Any = LocalExecutor(1, workers, self.memory, self.watcher)
        else:
            from ode2opt.integrations.dask import open_executor

            executor = stack.enter_context(
                open_executor(cluster, workers, self.memory, tell=mention)
            )
        labels = kind.binary or kind.counted
        model = Parts(
            kind, files, executor=executor, labels=labels, scale=self.asked.scale_columns, **options
        )
        self.sizes, self.words = model.sizes, label_words(np.array(model.label_values))
        self.categories, self.encoding, self.notes = model.words, model.encoding, model.notes
        if labels:
            self._set_classes(np.array(model.label_values))
        return model

    def _set_classes(self, labels: np.ndarray) -> None:
        """Keep the labels in their order; true and false are read as 1 and 0."""
        truths = self.encoding is not None and self.encoding.truths
        self.classes = labels.astype(bool) if truths else labels


def as_bytes(amount: str | None) -> int | None:
    """Return the bytes of an amount of memory."""
    if amount is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kMGT]?)(i?)B", amount)
    size = 0
    if found is not None:
        number, unit, binary = found.groups()
        size = int(float(number) * (1024 if binary else 1000) ** " kMGT".index(unit or " "))
    if size <= 0:
        raise InputError(f"'{amount}' is no amount of memory: write it like 2GB.")
    return size
