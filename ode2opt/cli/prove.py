"""ode2opt prove."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ode2opt.base.terminal import fail, say, write_json
from ode2opt.cli.app import app
from ode2opt.cli.completion import method_names
from ode2opt.cli.options import JsonOption, load_method, named
from ode2opt.cli.outputs import Output, OverwriteOption, check_outputs, json_with, method_file

RESULT = json_with("method", "K", "tail", "tau", "ratio_to_nesterov", "seconds")
PROOF = json_with("objective", "tail", "star", "theta", "rows", "w", "v", "r")


@app.command(epilog="Example: [bold]ode2opt prove ogm --out proof.json[/bold]")
def prove(
    method: Annotated[
        str,
        typer.Argument(
            help="a learned method's file or name, or a built-in with a table",
            autocompletion=method_names,
        ),
    ],
    out_file: Annotated[
        Path | None,
        typer.Option("--out", metavar="PROOF.json", help="Write the proof.", parser=named),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Steps of the table to look at, at most 160; by default 40, or those of a file.",
        ),
    ] = None,
    json_file: JsonOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Prove in exact arithmetic what a method does to every smooth convex function.

    Exits 1 where no bound below that of the start is proved. Anybody can check the file of --out
    with check_proof.py, one file of the package that needs nothing but Python.
    """
    from dataclasses import replace

    from ode2opt.study.prove import prove as prove_method

    check_outputs(
        [Output("--out", out_file, PROOF), Output("--json", json_file, RESULT)],
        [method_file(method)],
        overwrite,
    )
    proof = replace(prove_method(load_method(method), steps=steps), method=method)
    if out_file is not None and proof.found is not None:
        write_json(dict(proof.found.document), str(out_file))
    if json_file != "-":
        for sentence in proof.words():
            say(sentence)
        if out_file is not None and proof.found is not None:
            from ode2opt.proofs import check_proof

            say(f"Check it without this package: python {check_proof.__file__} {out_file}")
    write_json(proof.summary(), json_file)
    if proof.found is None:
        fail(f"{method} is not proved.", 1)
    if not proof.proved:
        fail(f"The bound of {method} is proved, but no better than the start.", 1)
