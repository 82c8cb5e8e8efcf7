"""ode2opt train: the options of the targets, and those of its data and results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.base.errors import WorkersLostError, needing
from ode2opt.base.progress import live_training
from ode2opt.base.terminal import command_again, facts_table, fail, out, say, write_json
from ode2opt.cli.app import app
from ode2opt.cli.from_options import CommandParameter, choice_of, options_of, with_options
from ode2opt.cli.options import (
    DatasetArgument,
    InterceptOption,
    JsonOption,
    PowerOption,
    ProblemArgument,
    QuietOption,
    RidgeOption,
    SizeOption,
    SplitOption,
    WorkClusterOption,
    WorkProcessesOption,
    executor_of,
    load_family,
    model_options,
    named,
    say_notes,
)
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    check_folder,
    check_outputs,
    dataset_files,
    json_with,
)
from ode2opt.cli.penalising import L1Option, Penalising, RatioOption
from ode2opt.cli.reading import READING, reading_of
from ode2opt.learning.options import (
    LEARNED_PANEL,
    MAIN_PANEL,
    PROBLEMS_PANEL,
    UPDATES_PANEL,
    VALIDATION_PANEL,
    Options,
)
from ode2opt.learning.registry import DEFAULT, PANELS, PROTOCOLS, TARGETS, departures

RUNS = Path("runs")
RESULT_PANEL = "The result"
LEARNED_JSON = json_with("run", "horizon", "validation", "test")
RUN_FILES = ("config.json", "metrics.jsonl", "choice.json", "method.safetensors")
WORK_PANEL = "Who works on it"
SAME_VERSIONS = ("jax", "jaxlib", "numpy", "equinox")  # their versions decide what is learned

TargetChoice = choice_of("Target", TARGETS)
TargetOption: Any = Annotated[TargetChoice, typer.Option(help="Whose stopping time is minimised.")]
ProtocolChoice = choice_of("Protocol", PROTOCOLS)
ProtocolOption: Any = Annotated[
    ProtocolChoice,
    typer.Option(help="paper: all settings of a flow as the paper prints them; others given win."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="RUN_DIR",
        help="By default runs/PROBLEM-DATASET.",
        show_default=False,
        parser=named,
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the run in RUN_DIR, bit for bit on its machine."),
]
MemoryOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Begin with a memory, as solve leaves it: a sequence in its metric.",
        show_default=False,
    ),
]
TARGET_OPTIONS = options_of(TARGETS)
COMMON_OPTIONS = [
    CommandParameter("target", TargetOption, TargetChoice(DEFAULT), MAIN_PANEL),
    CommandParameter("out_dir", OutOption, None, MAIN_PANEL),
    CommandParameter("resume", ResumeOption, False, MAIN_PANEL),
    CommandParameter("split", SplitOption, None, PROBLEMS_PANEL),
    CommandParameter("size", SizeOption, None, PROBLEMS_PANEL),
    CommandParameter("p", PowerOption, 4, PROBLEMS_PANEL),
    CommandParameter("l2", RidgeOption, 0.0, PROBLEMS_PANEL),
    CommandParameter("intercept", InterceptOption, False, PROBLEMS_PANEL),
    CommandParameter("l1", L1Option, None, PROBLEMS_PANEL),
    CommandParameter("l1_ratio", RatioOption, None, PROBLEMS_PANEL),
    *(CommandParameter(name, *each, PROBLEMS_PANEL) for name, each in READING.items()),
    CommandParameter("protocol", ProtocolOption, ProtocolChoice(Options.protocol), LEARNED_PANEL),
    CommandParameter("memory", MemoryOption, None, LEARNED_PANEL),
    CommandParameter("cluster", WorkClusterOption, None, WORK_PANEL),
    CommandParameter("workers", WorkProcessesOption, None, WORK_PANEL),
    CommandParameter("json_file", JsonOption, None, RESULT_PANEL),
    CommandParameter("overwrite", OverwriteOption, False, RESULT_PANEL),
    CommandParameter("quiet", QuietOption, False, RESULT_PANEL),
]


@app.command(
    epilog="Example: [bold]ode2opt train logistic a5a --out runs/a5a[/bold], then "
    "[bold]ode2opt bench logistic a5a --method runs/a5a/method.safetensors[/bold]. The fast one: "
    "[bold]ode2opt train logistic a5a --target sequence --split shuffled[/bold]; with a proof: "
    "[bold]--target sequence --certified 2[/bold]; with a penalty: [bold]--target sequence --l1 "
    "0.01[/bold]. On a cluster: "
    "[bold]ode2opt train logistic a5a --cluster tcp://10.0.0.1:8786[/bold]"
)
@with_options(
    [*COMMON_OPTIONS, *TARGET_OPTIONS],
    [
        MAIN_PANEL,
        PROBLEMS_PANEL,
        LEARNED_PANEL,
        *PANELS,
        UPDATES_PANEL,
        VALIDATION_PANEL,
        WORK_PANEL,
        RESULT_PANEL,
    ],
    {"ctx": typer.Context, "problem": ProblemArgument, "dataset": DatasetArgument},
)
def train(
    *,
    ctx: typer.Context,
    problem: str,
    dataset: str,
    out_dir: Path | None,
    resume: bool,
    memory: Path | None,
    cluster: str | None,
    workers: int | None,
    json_file: str | None,
    overwrite: bool,
    quiet: bool,
    **rest: Any,
) -> None:
    """Learn a method for the problems of a dataset by StoPM.

    The target flow is the paper's. The target sequence learns what a solve pays for, iterations,
    together with a metric: far fewer gradients on new problems of the same kind; where that is not
    clearly better than L-BFGS in the metric (--steps 0), the latter is kept. With --l1 it learns a
    table with a prox instead, which FISTA with restart goes on after. RUN_DIR gets
    method.safetensors, config.json, metrics.jsonl, checkpoints/ and TensorBoard events. After
    Ctrl-C or a crash, --resume goes on with the options of the run. With --cluster the problems of
    a step, restarts and solves are shared among workers, and what is learned is the same bit for
    bit.
    """
    from ode2opt import Memory
    from ode2opt.executor import THIS_PROCESS

    with needing("learn"):
        from ode2opt.learning import comparison
        from ode2opt.learning.begin import options_for, start_run

    folder = out_dir or RUNS / f"{problem}-{Path(dataset).stem}"
    names = ("target", "protocol", *(one.name for one in TARGET_OPTIONS))
    given = {name: _plain(rest[name]) for name in names if _was_given(ctx, name)}
    options = options_for(given, memory is not None, folder if resume else None)
    inputs = [*dataset_files(dataset), memory, *(folder / name for name in RUN_FILES)]
    check_outputs([Output("--json", json_file, LEARNED_JSON)], inputs, overwrite)
    check_folder(folder)
    known = None if memory is None else Memory.load(memory)
    model = model_options(problem, rest["p"], rest["l2"], rest["intercept"])
    where = problem, dataset, rest["split"], rest["size"]
    penalising = Penalising(rest["l1"], rest["l1_ratio"])
    family = penalising.family(load_family(*where, model, reading_of(rest)))
    with (
        executor_of(cluster, workers, SAME_VERSIONS) as executor,
        live_training(f"{problem} {dataset}", options.steps, quiet) as (callback, note),
    ):
        try:
            training = start_run(
                family, options, folder, resume, note, known, executor or THIS_PROCESS
            )
        except (KeyboardInterrupt, WorkersLostError) as error:
            kept = "the run is as it was" if resume else "nothing is kept"
            fail(f"{_broken_off(error)} in the set-up: {kept}.", 1, command_again())
        try:
            method = training.run(callback)
        except (KeyboardInterrupt, WorkersLostError) as error:
            done = f"after {training.position.done} of {training.steps} steps"
            fail(f"{_broken_off(error)} {done}.", 1, command_again("--resume"))
    if json_file != "-":
        out.print(facts_table(_facts(method, folder), f"learned for {family.name}"))
        say_notes(family.words, family.notes)
        for sentence in method.certificate["verdict"]:
            say(sentence)
        say(comparison.comparison_sentence(method.statistics["fresh"]))
    found = comparison.without_curves(method.statistics)
    write_json({"run": str(folder), "horizon": method.horizon} | found, json_file)


def _broken_off(error: BaseException) -> str:
    return "Interrupted" if isinstance(error, KeyboardInterrupt) else f"{error} It was broken off"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


def _was_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _facts(method: Any, folder: Path) -> dict[str, Any]:
    held_out, fresh = method.statistics["validation"], method.statistics["test"]
    facts = {
        "file": str(folder / "method.safetensors"),
        "method": method.words,
        "held-out training problems": f"{held_out['complexity']:.1f} iterations to the tolerance",
        "fresh test problems": f"{fresh['complexity']:.1f} iterations, worst {fresh['worst']}",
    }
    if protocol := _protocol_words(method.provenance["options"]):
        facts["protocol"] = protocol
    if mesh := method.statistics.get("mesh"):
        facts["steps of the flow"] = _mesh_words(**mesh)
    if method.instant:
        return facts
    if fresh["P"] is not None:  # a certified table has a proof in their place
        facts["P, Q on them"] = f"{fresh['P']:.2g}, {fresh['Q']:.2g}"
    return facts | {
        "handed over by the guard": f"{fresh['handovers']} of {fresh['total']}",
        "to": method.guard.words(method.metric is not None),
    }


def _mesh_words(substeps: int, mesh_error: float | None) -> str:
    """Say how fine the mesh of the flow is, and how exact T is with it."""
    found = "no flow of the first batch reached the tolerance"
    if mesh_error is not None:
        found = f"half as long, they change T - t0 by {100 * mesh_error:.2g}%"
    return f"{substeps} in each of the sequence; {found}"


def _protocol_words(options: dict[str, Any]) -> str:
    """Say where a run by the paper's protocol departs from it; nothing of other runs."""
    if "protocol" not in options:
        return ""
    changed = ", ".join(f"{name} {value}" for name, value in departures(options).items())
    return f"the paper's{f', but {changed}' if changed else ''}"
