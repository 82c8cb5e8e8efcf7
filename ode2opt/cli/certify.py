"""ode2opt certify | prove: what is promised of a method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.base.errors import InputError, needing
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import bar, fail, out, say, write_json
from ode2opt.cli.app import app
from ode2opt.cli.from_options import choice_opt, file_opt, opt, with_options
from ode2opt.cli.options import (
    DatasetArgument,
    FamilyOptions,
    JsonResult,
    L1Penalty,
    ProblemArgument,
    Reading,
    SeedOption,
    load_method,
    method_names,
)
from ode2opt.cli.outputs import Output, dataset_files, json_with, method_file, unknown

EstimatorOption: Any = choice_opt(("power", "l0l1"), "How the curvature along the way is found.")
CERTIFICATE = json_with("method", "problem", "dataset", "levels")
RESULT = json_with("method", "K", "tail", "tau", "ratio_to_nesterov", "seconds")
PROOF = json_with("objective", "tail", "star", "theta", "rows", "w", "v", "r")


@dataclass(frozen=True)
class Along:
    """The instances that a certificate follows, and how."""

    instances: Annotated[int, opt("Test problems to follow.")] = 10
    max_iter: Annotated[int, opt("Iterations to follow.")] = 500
    seed: SeedOption = 0
    estimator: EstimatorOption = "power"
    worst_case: Annotated[
        int | None,
        opt(
            "Print a bound on N <= 201 iterations over all L-smooth convex functions.", metavar="N"
        ),
    ] = None

    def options(self) -> dict[str, Any]:
        """Return the keywords of ``certify_family``."""
        found = vars(self) | {"K": self.max_iter, "estimator": str(self.estimator)}
        del found["max_iter"]
        return found


@app.command(epilog="Example: [bold]ode2opt certify eigac-c4 lpp a5a --worst-case 5[/bold]")
@with_options()
def certify(
    *,
    method: Annotated[
        str,
        typer.Argument(
            help="a learned method's file, or a built-in with a schedule",
            autocompletion=method_names,
        ),
    ],
    problem: ProblemArgument,
    dataset: DatasetArgument,
    along: Along,
    figure: Annotated[Path | None, file_opt("Draw contraction factor, C and |1-B|.")] = None,
    family: FamilyOptions,
    penalty: L1Penalty,
    reading: Reading,
    result: JsonResult,
) -> None:
    """Say what is proved of a method, and what holds along instances; exits 1 if it is refused.

    A proved method is never refused. Any other has to be linearly stable along the instances; its
    flow, if it has one, to meet Theorem 1 with a bound below the start; and its first 80 iterations
    not to be driven away by any function as smooth as the instances. --worst-case decides nothing.
    """
    with needing("learn"):
        from ode2opt.study import style
        from ode2opt.study.certify import certify_family
        from ode2opt.study.result_tables import certificate_table

    inputs = [*dataset_files(dataset), method_file(method)]
    result.check(CERTIFICATE, inputs, Output("--figure", figure, unknown))
    form = None if figure is None else style.check_figure_file(figure)
    problems = family.family(problem, dataset, reading, penalty)
    subject, title = load_method(method), f"{method} on {problem} {dataset}"
    with bar(title, along.instances) as advance:
        certificate = certify_family(subject, problems, advance=advance, **along.options())
    if figure is not None:
        if not certificate.traces:
            raise InputError(f"{method} has no table to draw; leave out --figure.")
        drawn = style.certificate_figure(certificate)
        write_atomically(figure, lambda stream: drawn.savefig(stream, format=form))
    if result.for_people:
        if certificate.conditions:
            out.print(certificate_table(certificate, title).terminal())
        for sentence in certificate.words():
            say(sentence)
    result.write(
        {"problem": problem, "dataset": dataset}
        | certificate.summary()
        | {"method": method, "estimator": certificate.estimator, "verdict": certificate.words()}
    )
    if certificate.refused:
        fail(f"The certificate of {method} is refused: {certificate.refusal}", 1)


@app.command(epilog="Example: [bold]ode2opt prove ogm --out proof.json[/bold]")
@with_options()
def prove(
    *,
    method: Annotated[
        str,
        typer.Argument(
            help="a learned method's file or name, or a built-in with a table",
            autocompletion=method_names,
        ),
    ],
    out_file: Annotated[
        Path | None, file_opt("Write the proof.", "--out", metavar="PROOF.json")
    ] = None,
    steps: Annotated[
        int | None,
        opt(
            "Steps of the table to look at, at most 160; by default 40, or those of a file.",
            metavar="N",
        ),
    ] = None,
    result: JsonResult,
) -> None:
    """Prove in exact arithmetic what a method does to every smooth convex function.

    Exits 1 where no bound below that of the start is proved. Anybody can check the file of --out
    with check_proof.py, one file of the package that needs nothing but Python.
    """
    from ode2opt.study.prove import prove as prove_method

    result.check(RESULT, [method_file(method)], Output("--out", out_file, PROOF))
    proof = replace(prove_method(load_method(method), steps=steps), method=method)
    if out_file is not None and proof.found is not None:
        write_json(dict(proof.found.document), str(out_file))
    if result.for_people:
        for sentence in proof.words():
            say(sentence)
        if out_file is not None and proof.found is not None:
            from ode2opt.proofs import check_proof

            say(f"Check it without this package: python {check_proof.__file__} {out_file}")
    result.write(proof.summary())
    if proof.found is None:
        fail(f"{method} is not proved.", 1)
    if not proof.proved:
        fail(f"The bound of {method} is proved, but no better than the start.", 1)
