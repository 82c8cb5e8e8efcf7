"""ode2opt solve."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ode2opt.base.errors import InputError, many
from ode2opt.base.terminal import facts_table, fail, mention, out, say, spinner
from ode2opt.base.terminal import reading as reading_bar
from ode2opt.cli.app import app
from ode2opt.cli.fit_rows import FitRows, RowsOptions
from ode2opt.cli.fitted import (
    KEPT,
    SOLUTION,
    KeptPoint,
    check_model_ending,
    kept_file,
    measured,
    quality_facts,
    unconverged_file,
    with_quality,
    write_solution,
)
from ode2opt.cli.from_options import file_argument, file_opt, opt, with_options
from ode2opt.cli.options import (
    PROBLEM_NAMES,
    JsonResult,
    ModelOptions,
    Penalising,
    QuietOption,
    WeightedReading,
    load_method,
    method_names,
    problem_names,
    say_notes,
)
from ode2opt.cli.outputs import Output, json_with, method_file, read_before

if TYPE_CHECKING:
    from ode2opt import Memory, Result

RESULT = json_with("status", "success", "grad_norm", "oracle_calls")


@dataclass(frozen=True)
class Solving:
    """The method of a solve, and when it ends."""

    method: Annotated[
        str,
        opt(
            "A learned method's file, or a built-in name.",
            metavar="FILE|NAME",
            autocompletion=method_names,
        ),
    ] = "auto"
    memory: Annotated[
        Path | None,
        file_opt("Use what earlier solves left in this file, and leave there what this one finds."),
    ] = None
    tol: Annotated[
        float, opt("Gradient norm to reach; with a penalty or limits, the residual.")
    ] = 1e-6
    max_iter: Annotated[int, opt("At most this many iterations.")] = 100_000
    max_seconds: Annotated[float | None, opt("At most this much time.")] = None

    def chosen(self, penalised: bool) -> Any:
        """Return the method; with a penalty it must be one for penalties."""
        from ode2opt.solvers import METHODS
        from ode2opt.solvers.methods import method_for

        name, chosen = self.method, load_method(self.method)
        if penalised:
            method_for(chosen, penalised=True)
        elif name in METHODS and not METHODS[name].smooth:
            raise InputError(f"The method {name} is for penalties: see --l1, --lower and --upper.")
        return chosen

    def known(self) -> Memory | None:
        """Return what earlier solves left; None without ``--memory``."""
        from ode2opt import Memory

        if self.memory is None:
            return None
        return Memory.load(self.memory) if self.memory.exists() else Memory()


@app.command(
    epilog="Example: [bold]ode2opt solve train.csv --problem logistic --l2 0.001 --holdout 0.2 "
    "--out model.safetensors[/bold], then [bold]ode2opt predict model.safetensors new.csv[/bold]. "
    "Few columns: [bold]ode2opt solve train.csv --problem logistic --intercept --l1 0.01[/bold]; "
    "shares between 0 and 1: [bold]--box 0 1[/bold]. "
    "Larger than memory, or than one machine: [bold]ode2opt solve 'data/part-*.parquet' --problem "
    "logistic --label y --cluster tcp://10.0.0.1:8786 --out model.safetensors --resume[/bold]"
)
@with_options()
def solve(
    *,
    file: Annotated[
        Path,
        file_argument("LIBSVM, CSV, NPZ or Parquet file, a folder of them, or a pattern in quotes"),
    ],
    problem: Annotated[str, opt(PROBLEM_NAMES, autocompletion=problem_names)],
    how: Solving,
    model: ModelOptions,
    penalty: Penalising,
    reading: WeightedReading,
    where: RowsOptions,
    out_file: Annotated[
        Path | None,
        file_opt(
            "Write the model, for predict and coefficients; a name that ends in .npz gets plain "
            "arrays.",
            "--out",
            metavar="MODEL.safetensors",
        ),
    ] = None,
    resume: Annotated[
        bool,
        opt(
            "Go on from the point of a solve that was broken off, if there is one: it is kept with "
            "--out, in a file that ends in .partial.",
            "--resume",
        ),
    ] = False,
    result: JsonResult,
    quiet: QuietOption = False,
) -> None:
    """Fit one problem to all rows of a file, or of many files."""
    from ode2opt.problems.family import kind_of

    kind, chosen = kind_of(problem), how.chosen(bool(penalty.about()))
    held_back, options = where.held_back, model.options(problem)
    aside = _check_outputs(result, [file, where.test], how, out_file, resume)
    known = how.known()
    rows = FitRows(file, reading.options(), where)
    about = options | {"problem": problem, "rows": str(file), "scaled": where.scale_columns}
    about |= penalty.about() | ({} if held_back is None else {"holdout": held_back})
    with ExitStack() as stack:
        with reading_bar(f"{problem} {file.name}: rows are read", quiet) as rows.watcher:
            fitted, beside = rows.model(kind, options, stack)
        shown = f"{problem} {file.name}, {fitted.N:,} x {fitted.n:,}"
        words = "residual" if penalty.about() else "gradient norm"
        display = stack.enter_context(spinner(shown, beside, quiet, words))
        done = _Solved(rows, fitted, KeptPoint(out_file, about | {"N": fitted.N}), how)
        added = penalty.penalty(rows.sizes)
        done.run(display, resume, options, method=chosen, penalty=added, memory=known)
        done.write(out_file, aside)
        unscaled = chosen != how.method and done.result.success and done.unscaled()
    if result.for_people:
        out.print(facts_table(done.facts(), f"{how.method} on {file.name}"))
        _say_about(rows, unscaled)
    result.write(done.document())
    if how.memory is not None and known is not None and done.result.success:
        known.update_file(how.memory)
    done.check(out_file, aside)


def _check_outputs(
    result: JsonResult,
    inputs: list[Path | None],
    how: Solving,
    out_file: Path | None,
    resume: bool,
) -> Path | None:
    """Refuse outputs that cannot be; return the file for a solution that misses its tolerance."""
    if str(out_file) == "-":
        raise InputError("--out - must name a file: --json - prints the result.")
    aside = unconverged_file(out_file)
    outputs = [
        Output("--out", out_file, SOLUTION),
        Output("the unconverged solution", aside, SOLUTION),
        Output("--memory", how.memory, read_before),
        Output("the kept point", kept_file(out_file), read_before if resume else KEPT),
    ]
    result.check(RESULT, [*inputs, method_file(how.method)], *outputs)
    check_model_ending(out_file)
    return aside


class _Solved:
    """A solve of rows, and all that is told of it."""

    result: Result

    def __init__(self, rows: FitRows, problem: Any, kept: KeptPoint, how: Solving) -> None:
        self.rows, self.problem, self.kept, self.how = rows, problem, kept, how

    def run(self, display: Any, resume: bool, options: dict[str, Any], **given: Any) -> None:
        """Solve the problem, and measure how well it fits."""
        from ode2opt import Model, solve

        problem, rows, kept = self.problem, self.rows, self.kept
        start = kept.start(problem.n, resume)
        limits = {name: getattr(self.how, name) for name in ("tol", "max_iter", "max_seconds")}
        self.found = solve(problem, start, callback=kept.watching(display), **limits, **given)
        self.model = Model.of(
            problem, self.found, classes=rows.classes, encoding=rows.encoding, scaling=rows.sizes,
            tol=self.how.tol, options={"p": options["p"]} if "p" in options else {},
        )  # fmt: skip
        self.quality = measured(self.model, problem, self.found, rows.others)
        self.result = _for_columns_as_they_are(self.found, problem, rows.sizes)

    def write(self, out_file: Path | None, aside: Path | None) -> None:
        """Write the solution; one that misses its tolerance replaces none that reached it."""
        if out_file is not None:
            target = out_file if self.result.success or aside is None else aside
            write_solution(target, with_quality(self.model, self.quality), self.result)
        self.kept.finish(self.found)

    def facts(self) -> dict[str, Any]:
        """Return the lines of the table."""
        others = self.rows.others
        return (
            _facts(self.result)
            | self.rows.facts(self.problem.N)
            | quality_facts(self.quality, others)
        )

    def document(self) -> dict[str, Any]:
        """Return the fields of the JSON document."""
        quality = {name: each.summary() for name, each in self.quality.items()}
        return self.result.summary() | {"quality": quality}

    def unscaled(self) -> bool:
        """Whether a column's largest entry is neither 1 nor 0, and columns are as they are."""
        squares = self.problem.largest_squares()
        return not self.rows.asked.scale_columns and bool(((squares != 0) & (squares != 1)).any())

    def check(self, out_file: Path | None, aside: Path | None) -> None:
        """Fail if the tolerance was missed, and say how to go on."""
        if self.result.success:
            return
        if aside is not None:
            mention(f"{out_file} reached its tolerance, and stays; this solution is in {aside}.")
        name, size = self.result.measure
        sentence = (
            f"{self.result.message} {name.capitalize()} {size:.3g}, tolerance {self.how.tol:g}."
        )
        fail(sentence, 1, self.kept.resume_command(self.result))


def _for_columns_as_they_are(result: Result, model: Any, sizes: Any) -> Result:
    """Return the solution for columns that were not divided by their sizes."""
    import numpy as np

    if sizes is None:
        return result
    each = np.repeat(np.append(sizes, [1.0] * model.intercept), model.width)
    return replace(result, x=result.x / each)


def _say_about(rows: FitRows, unscaled: bool) -> None:
    """Say what was done to the rows, and what a user should know."""
    from ode2opt.data import categories

    say_notes(rows.words, (*rows.label_found(), *rows.notes))
    for other in rows.others:
        for note in other.rows.notes:
            say(f"Of the {other.where}: {note}")
    if rows.categories:
        say(categories.words_note(rows.categories))
    if unscaled:
        say(
            "A method that train made of a file knows columns of largest entry 1, and these have "
            "others: see --scale-columns."
        )


def _facts(result: Result) -> dict[str, Any]:
    handovers = "; ".join(str(handover) for handover in result.handovers) or "none"
    told = result.summary() | {
        "status": result.message, "method": result.method, "handovers": handovers,
        "bound": "nothing is known of f(x) - f*" if result.bound is None else str(result.bound),
    }  # fmt: skip
    del told["bound_from"]
    if result.support is not None:
        del told["bound"]  # the gap tells it
        told["gap"] = "not known" if result.gap is None else f"at most {result.gap:.3g}"
        told["support"] = f"{len(result.support):,} of {many(len(result.x), 'variable')}"
    return told
