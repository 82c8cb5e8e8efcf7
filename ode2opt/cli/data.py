"""ode2opt data list | fetch | info."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ode2opt.base.errors import unknown_name
from ode2opt.base.terminal import downloads, facts_table, out, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import with_options
from ode2opt.cli.options import (
    JsonResult,
    Reading,
    SplitOption,
    dataset_names,
)
from ode2opt.cli.outputs import dataset_files, json_with
from ode2opt.study.tables import Sheet

data_app = typer.Typer(no_args_is_help=True, help="List, fetch and describe the datasets.")
app.add_typer(data_app, name="data")

LISTED = json_with("name", "columns", "origin", "place")
DESCRIBED = json_with("name", "split", "columns", "rows_a_problem", "storage")


@data_app.command("list", epilog="Example: [bold]ode2opt data list[/bold]")
@with_options()
def data_list(*, result: JsonResult) -> None:
    """List the named datasets and where each would come from."""
    from ode2opt.problems import DATASETS

    result.check(LISTED)
    rows = [
        {
            "name": name,
            "columns": spec.n,
            "train": spec.n_train,
            "test": spec.n_test,
            "size": spec.size,
            "origin": spec.origin,
            "place": spec.place(),
        }
        for name, spec in DATASETS.items()
    ]
    if result.for_people:
        columns = ["name", "columns", "train", "test", "rows", "origin", "place"]
        cells = [[f"{v:,}" if isinstance(v, int) else str(v) for v in r.values()] for r in rows]
        out.print(Sheet(columns, cells, texts=("origin", "place")).terminal())
    result.write(rows)


@data_app.command("fetch", epilog="Example: [bold]ode2opt data fetch a5a[/bold]")
def data_fetch(
    name: Annotated[str, typer.Argument(help="a dataset's name", autocompletion=dataset_names)],
) -> None:
    """Download a dataset into the cache, check its hash, and read it once."""
    from ode2opt.problems import DATASETS

    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    data = _load(name)
    say(f"{name} is ready: {DATASETS[name].place()}, {data.n} columns.")


@data_app.command("info", epilog="Example: [bold]ode2opt data info mushrooms[/bold]")
@with_options()
def data_info(
    *,
    name: Annotated[
        str, typer.Argument(help="a dataset's name, or a file", autocompletion=dataset_names)
    ],
    split: SplitOption = None,
    reading: Reading,
    result: JsonResult,
) -> None:
    """Describe a dataset as it is loaded: sizes, density, share of ones in train and test."""
    from ode2opt.data.datasets import describe

    result.check(DESCRIBED, dataset_files(name))
    data = _load(name, split, reading)
    facts = describe(data)
    if result.for_people:
        out.print(facts_table(facts, name))
        for note in data.notes:
            say(note)
    result.write(facts)


def _load(name: str, split: Any = None, reading: Reading | None = None) -> Any:
    from ode2opt.problems import load_dataset

    with downloads() as progress:
        return load_dataset(
            name,
            split=split and str(split),
            binary=None,
            progress=progress,
            reading=(reading or Reading()).options(),
        )
