"""ode2opt solve."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ode2opt.cli.app import app
from ode2opt.cli.completion import method_names, problem_names
from ode2opt.cli.options import (
    PROBLEM_NAMES,
    ClusterOption,
    ColumnsOption,
    DecimalOption,
    DropOption,
    InterceptOption,
    JsonOption,
    LabelOption,
    MemoryLimitOption,
    MissingChoice,
    MissingOption,
    PowerOption,
    QuietOption,
    RidgeOption,
    WeightsOption,
    WorkersOption,
    as_bytes,
    load_method,
    model_options,
    named,
    reading_of,
    say_words,
)
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    check_outputs,
    json_with,
    method_file,
    npz_with,
    read_before,
)
from ode2opt.errors import InputError
from ode2opt.progress import reading, spinner
from ode2opt.storage import write_atomically
from ode2opt.terminal import facts_table, fail, mention, out, say, write_json

if TYPE_CHECKING:
    from ode2opt import Result

RESULT = json_with("status", "success", "grad_norm", "oracle_calls")
SOLUTION = npz_with("x", "fun", "grad_norm", "status")


@app.command(
    epilog="Example: [bold]ode2opt solve train.csv --problem logistic --l2 0.001 --out x.npz "
    "--memory nightly.safetensors[/bold]. Larger than memory, or than one machine: [bold]ode2opt "
    "solve 'data/part-*.parquet' --problem logistic --label y --cluster tcp://10.0.0.1:8786 --out "
    "x.npz --resume[/bold]"
)
def solve(
    file: Annotated[
        Path,
        typer.Argument(
            help="LIBSVM, CSV, NPZ or Parquet file, a folder of them, or a pattern in quotes",
            parser=named,
        ),
    ],
    problem: Annotated[str, typer.Option(help=PROBLEM_NAMES, autocompletion=problem_names)],
    method: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME",
            help="A learned method's file, or a built-in name.",
            autocompletion=method_names,
        ),
    ] = "auto",
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Use what earlier solves left in this file, and leave there what this one finds.",
            show_default=False,
            parser=named,
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="At most this many iterations.")] = 100_000,
    max_seconds: Annotated[
        float | None, typer.Option(help="At most this much time.", show_default=False)
    ] = None,
    l2: RidgeOption = 0.0,
    intercept: InterceptOption = False,
    p: PowerOption = 4,
    label: LabelOption = None,
    weights: WeightsOption = None,
    missing: MissingOption = MissingChoice.error,
    drop: DropOption = None,
    columns: ColumnsOption = None,
    decimal: DecimalOption = None,
    scale_columns: Annotated[
        bool,
        typer.Option(
            help="Divide each column by its largest entry, as train does with files, and give x "
            "for the columns as they are."
        ),
    ] = False,
    cluster: ClusterOption = None,
    workers: WorkersOption = None,
    memory_limit: MemoryLimitOption = None,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", metavar="SOLUTION.npz", help="Write x and its facts.", parser=named),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the point of a solve that was broken off, if there is one: it is "
            "kept in SOLUTION.npz.partial.",
        ),
    ] = False,
    json_file: JsonOption = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit one problem to all rows of a file, or of many files."""
    import numpy as np

    from ode2opt import Memory
    from ode2opt import solve as minimise
    from ode2opt.cli.kept_point import KEPT, KeptPoint, kept_file
    from ode2opt.problems import categories
    from ode2opt.problems.family import kind_of

    kind, chosen = kind_of(problem), load_method(method)
    options = model_options(problem, p, l2, intercept)
    if str(out_file) == "-":
        raise InputError("--out - must name a file: --json - prints the result.")
    outputs = [
        Output("--json", json_file, RESULT),
        Output("--out", out_file, SOLUTION),
        Output("--memory", memory, read_before),
        Output("the kept point", kept_file(out_file), read_before if resume else KEPT),
    ]
    check_outputs(outputs, [file, method_file(method)], overwrite)
    known = None if memory is None else Memory.load(memory) if memory.exists() else Memory()
    with ExitStack() as stack:
        limit = as_bytes(memory_limit)
        table = reading_of(missing, drop, columns, decimal)
        rows = _Rows(file, label, weights, table, scale_columns, cluster, workers, limit)
        with reading(f"{problem} {file.name}: rows are read", quiet) as rows.watcher:
            model, beside = rows.model(kind, options, stack)
        shown = f"{problem} {file.name}, {model.N:,} x {model.n:,}"
        about = options | {"problem": problem, "rows": str(file), "scaled": scale_columns}
        kept = KeptPoint(out_file, about | {"N": model.N})
        callback = kept.watching(stack.enter_context(spinner(shown, beside, quiet)))
        result = minimise(
            model,
            kept.start(model.n, resume),
            method=chosen,
            memory=known,
            tol=tol,
            max_iter=max_iter,
            max_seconds=max_seconds,
            callback=callback,
        )
        found = result
        if rows.sizes is not None:
            each = np.repeat(np.append(rows.sizes, [1.0] * intercept), model.width)
            result = replace(result, x=result.x / each)
        if out_file is not None:
            write_atomically(out_file, partial(result.save, columns=rows.names))
        kept.ended(found)
        learned = chosen != method and result.success
        unscaled = learned and not scale_columns and _unscaled(model)
    if json_file != "-":
        out.print(facts_table(_told(result), f"{method} on {file.name}"))
        say_words(rows.words, rows.notes)
        if rows.categories:
            say(categories.told(rows.categories))
        if model.width > 1:
            say(f"x holds {model.width} numbers a column, one for each class.")
        if unscaled:
            say(
                "A method that train made of a file knows columns of largest entry 1, and these "
                "have others: see --scale-columns."
            )
    write_json(result.summary(), json_file)
    if memory is not None and known is not None and result.success:
        known.update_file(memory)
    if not result.success:
        go_on = kept.go_on(result)
        fail(f"{result.message} Gradient norm {result.grad_norm:.3g}, tolerance {tol:g}.", 1, go_on)


@dataclass
class _Rows:
    """Where the rows are and who holds them.

    ``sizes`` are what columns were divided by, ``words`` labels that were no numbers, ``names``
    those of columns, ``categories`` the words that have become columns, ``notes`` sentences about
    what was done to the file, ``table`` how it is read. ``watcher`` is told how
    many parts are read.
    """

    where: Path
    label: str | None
    weights: str | None
    table: dict[str, Any]
    scale: bool
    cluster: str | None
    workers: int | None
    memory: int | None
    sizes: Any = None
    words: tuple[str, ...] = ()
    names: Any = None
    categories: Any = None
    notes: tuple[str, ...] = ()
    watcher: Any = None

    def model(self, kind: Any, options: dict[str, Any], stack: ExitStack) -> tuple[Any, Any]:
        """Return the problem, and what tells about its parts; the stack ends what was started."""
        import numpy as np

        from ode2opt.problems.parts.files import are_parts
        from ode2opt.problems.preparing import label_words

        if self.cluster is None and not are_parts(self.where):
            return self._whole(kind, options), None
        model = self._in_parts(kind, options, stack)
        self.sizes, self.words = model.sizes, label_words(np.array(model.label_values))
        self.names, self.categories, self.notes = model.names, model.words, model.notes
        engine = model.engine
        return model, lambda: ", ".join(filter(None, (f"pass {engine.passes}", engine.words())))

    def _whole(self, kind: Any, options: dict[str, Any]) -> Any:
        from ode2opt.problems.datasets import rows_of
        from ode2opt.problems.files import read_table
        from ode2opt.problems.preparing import largest_entries, scaled

        if self.workers is not None or self.memory is not None:
            raise InputError(
                "--workers and --memory-limit are for a folder, a pattern or --cluster."
            )
        table = read_table(self.where, label=self.label, weights=self.weights, **self.table)
        rows = rows_of(table, str(self.where), kind.binary, kind.counted)
        self.words, options = rows.words, options | {"weights": rows.weights}
        self.names, self.categories, self.notes = table.columns, table.words, table.notes
        if not self.scale:
            return kind(rows.A, rows.b, **options)
        self.sizes = largest_entries(rows.A)
        return kind(scaled(rows.A, self.sizes), rows.b, **options)

    def _in_parts(self, kind: Any, options: dict[str, Any], stack: ExitStack) -> Any:
        from ode2opt.problems.parts import Parts, Threads, files_in_parts

        files = files_in_parts(self.where, self.label, self.weights, **self.table)
        if self.cluster is None:
            engine: Any = Threads(self.memory, self.workers)
            engine.watcher = self.watcher
        else:
            from ode2opt.integrations.dask import opened

            engine = stack.enter_context(
                opened(self.cluster, self.workers, self.memory, tell=mention)
            )
        labels = kind.binary or kind.counted
        return Parts(kind, files, engine=engine, labels=labels, scale=self.scale, **options)


def _unscaled(model: Any) -> bool:
    """Whether a column's largest entry is neither 1 nor 0."""
    squares = model.largest_squares()
    return bool(((squares != 0) & (squares != 1)).any())


def _told(result: Result) -> dict[str, Any]:
    handovers = "; ".join(str(handover) for handover in result.handovers) or "none"
    return result.summary() | {
        "status": result.message, "method": result.method, "handovers": handovers,
    }  # fmt: skip
