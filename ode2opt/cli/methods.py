"""ode2opt methods list | show | export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.base.errors import InputError
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import facts_table, out, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import choice_opt, file_opt, with_options
from ode2opt.cli.options import JsonResult, learned_method_names, load_method
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    check_outputs,
    json_with,
    method_file,
    text_with,
)
from ode2opt.study.tables import Sheet

methods_app = typer.Typer(no_args_is_help=True, help="List, describe and export learned methods.")
app.add_typer(methods_app, name="methods")

LISTED = json_with("name", "family", "tol", "lbfgs_calls")
DESCRIBED = json_with("family", "tol", "guard", "provenance", "arrays")
EXPORTED = {
    "h": text_with("Written by ode2opt"),
    "c": text_with("solved whatever the method makes of them"),
    "json": DESCRIBED,
    "csv": text_with("k,a,c,d\n"),
}

STARTS = {"zero": "0", "paper": "the paper's, from each problem", "learned": "learned"}

MethodArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="a name of 'ode2opt methods list', or a file",
        autocompletion=learned_method_names,
    ),
]


FormatOption: Any = choice_opt(
    ("c", "json", "csv"), "c: a header and an example program.", "--format"
)


@methods_app.command("list", epilog="Example: [bold]ode2opt methods list[/bold]")
@with_options()
def methods_list(*, result: JsonResult) -> None:
    """List the learned methods that come with the package."""
    from ode2opt.solvers.methods import by_name, learned_names

    result.check(LISTED)
    rows = [{"name": name} | _summary(by_name(name)) for name in learned_names()]
    if result.for_people:
        columns = [name.replace("_", " ") for name in (rows[0] if rows else ("name",))]
        cells = [[_short(value) for value in row.values()] for row in rows]
        out.print(Sheet(columns, cells, texts=columns[1:]).terminal())
        say("Calls: mean oracle calls on fresh test problems when the method was made.")
    result.write(rows)


@methods_app.command("show", epilog="Example: [bold]ode2opt methods show logistic-a5a[/bold]")
@with_options()
def methods_show(*, name: MethodArgument, result: JsonResult) -> None:
    """Describe a learned method: what it does, where it comes from, what was measured."""
    result.check(DESCRIBED, [method_file(name)])
    method = _learned(name)
    arrays, about = method.described()
    if result.for_people:
        facts = _summary(method) | {
            "scale": method.scale if method.family_scale is None else f"{method.family_scale:.6g}",
            "metric": "none" if method.metric is None else repr(method.metric),
            "start": STARTS[method.start_rule],
            "guard": f"{method.guard.words(method.metric is not None)} takes over",
            "arrays": ", ".join(f"{key} {values.shape}" for key, values in arrays.items()),
        }
        out.print(facts_table(facts | _flat(about), name))
    shapes = {key: list(values.shape) for key, values in arrays.items()}
    result.write(about | {"arrays": shapes})


@methods_app.command(
    "export",
    epilog="Example: [bold]ode2opt methods export method.safetensors --format c[/bold] writes a "
    "header and an example program",
)
def methods_export(
    name: MethodArgument,
    form: FormatOption,
    file: Annotated[
        Path | None, file_opt("By default in this folder, under the method's name.", "--out")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a learned method's table for another language."""
    from ode2opt.integrations import export

    stem = Path(name).stem if file is None else file.stem
    method, target = _learned(name), file or Path(f"{stem}.{form}")
    if form == "c":
        header, example = export.to_c(method, stem).items()
        target = file or Path(header[0])
        written = {target: header[1], target.with_name(example[0]): example[1]}
        texts = {path: text.replace(header[0], target.name) for path, text in written.items()}
        kinds = ["h", "c"]
    else:
        to_text = {"json": export.to_json, "csv": export.to_csv}[form]
        texts, kinds = {target: to_text(method)}, [form]
    outputs = [
        Output("--out", path, EXPORTED[kind]) for path, kind in zip(texts, kinds, strict=True)
    ]
    check_outputs(outputs, [method_file(name)], overwrite)
    for path, text in texts.items():
        _write(path, text)


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda stream: stream.write(text.encode()))
    say(f"Written: {path}")


def _learned(name: str) -> Any:
    method = load_method(name)
    if isinstance(method, str):
        raise InputError(f"{name} is built in and has no file: see 'ode2opt methods list'.")
    return method


def _summary(method: Any) -> dict[str, Any]:
    """Return a method in one line, with its calls and those of L-BFGS."""
    fresh = method.statistics.get("fresh")
    calls = fresh.get("calls", {}) if isinstance(fresh, dict) else {}
    return {
        "family": method.family,
        "tol": method.tol,
        "method": method.words,
        "variables": method.metric.n if method.metric is not None else None,
        "calls": calls.get("method"),
        "lbfgs_calls": calls.get("lbfgs"),
    }


def _short(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _flat(about: dict[str, Any]) -> dict[str, str]:
    """Return provenance, certificate and statistics with a line for each field but curves."""
    from ode2opt.learning.comparison import without_curves

    about = about | {"statistics": without_curves(about["statistics"])}
    return {
        f"{part}: {key}": str(value)
        for part in ("provenance", "certificate", "statistics")
        for key, value in about[part].items()
    }
