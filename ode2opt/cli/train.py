"""ode2opt train: the options of the targets, and those of its data and results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.base.errors import WorkersLostError, needing
from ode2opt.base.terminal import command_again, facts_table, fail, live_training, out, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import choice_of, file_opt, opt, options_of, with_options
from ode2opt.cli.options import (
    RESULT_PANEL,
    DatasetArgument,
    FamilyOptions,
    JsonResult,
    L1Penalty,
    ProblemArgument,
    QuietOption,
    WeightedReading,
    WorkOptions,
    say_notes,
)
from ode2opt.cli.outputs import check_folder, dataset_files, json_with
from ode2opt.learning.options import (
    LEARNED_PANEL,
    MAIN_PANEL,
    PROBLEMS_PANEL,
    UPDATES_PANEL,
    VALIDATION_PANEL,
    WORK_PANEL,
    Options,
)
from ode2opt.learning.registry import DEFAULT, PANELS, PROTOCOLS, TARGETS, departures

RUNS = Path("runs")
LEARNED_JSON = json_with("run", "horizon", "validation", "test")
RUN_FILES = ("config.json", "metrics.jsonl", "choice.json", "method.safetensors")
SAME_VERSIONS = ("jax", "jaxlib", "numpy", "equinox")  # their versions decide what is learned

TargetChoice = choice_of("Target", TARGETS)
TargetOption: Any = Annotated[TargetChoice, opt("Whose stopping time is minimised.")]
ProtocolChoice = choice_of("Protocol", PROTOCOLS)
ProtocolOption: Any = Annotated[
    ProtocolChoice,
    opt("paper: all settings of a flow as the paper prints them; others given win."),
]
FIRST_TARGET, FIRST_PROTOCOL = TargetChoice(DEFAULT), ProtocolChoice(Options.protocol)
TARGET_OPTIONS = options_of(TARGETS)
SHOWN_IN = {
    MAIN_PANEL: ("target", "out_dir", "resume"),
    PROBLEMS_PANEL: ("family", "with_l1", "reading"),
    LEARNED_PANEL: ("protocol", "memory"),
    **dict.fromkeys([*PANELS, UPDATES_PANEL, VALIDATION_PANEL], ()),
    WORK_PANEL: ("work",),
    RESULT_PANEL: ("result", "quiet"),
}
"""The groups of the help, and what each shows in addition to the options of targets."""


@app.command(
    epilog="Example: [bold]ode2opt train logistic a5a --out runs/a5a[/bold], then "
    "[bold]ode2opt bench logistic a5a --method runs/a5a/method.safetensors[/bold]. The fast one: "
    "[bold]ode2opt train logistic a5a --target sequence --split shuffled[/bold]; with a proof: "
    "[bold]--target sequence --certified 2[/bold]; with a penalty: [bold]--target sequence --l1 "
    "0.01[/bold]. On a cluster: "
    "[bold]ode2opt train logistic a5a --cluster tcp://10.0.0.1:8786[/bold]"
)
@with_options(TARGET_OPTIONS, SHOWN_IN)
def train(
    *,
    ctx: typer.Context,
    problem: ProblemArgument,
    dataset: DatasetArgument,
    target: TargetOption = FIRST_TARGET,
    out_dir: Annotated[
        Path | None, file_opt("By default runs/PROBLEM-DATASET.", "--out", metavar="RUN_DIR")
    ] = None,
    resume: Annotated[
        bool, opt("Go on with the run in RUN_DIR, bit for bit on its machine.", "--resume")
    ] = False,
    family: FamilyOptions,
    with_l1: L1Penalty,
    reading: WeightedReading,
    protocol: ProtocolOption = FIRST_PROTOCOL,
    memory: Annotated[
        Path | None, file_opt("Begin with a memory, as solve leaves it: a sequence in its metric.")
    ] = None,
    work: WorkOptions,
    result: JsonResult,
    quiet: QuietOption = False,
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
    asked = rest | {"target": target.value, "protocol": protocol.value}
    given = {name: value for name, value in asked.items() if _was_given(ctx, name)}
    options = options_for(given, memory is not None, folder if resume else None)
    run_files = [folder / name for name in RUN_FILES]
    result.check(LEARNED_JSON, [*dataset_files(dataset), memory, *run_files])
    check_folder(folder)
    known = None if memory is None else Memory.load(memory)
    problems = family.family(problem, dataset, reading, with_l1)
    with (
        work.executor(SAME_VERSIONS) as executor,
        live_training(f"{problem} {dataset}", options.steps, quiet) as (callback, note),
    ):
        start = partial(start_run, problems, options, folder, resume, note, known)
        method = _trained(lambda: start(executor or THIS_PROCESS), callback, resume)
    if result.for_people:
        _show(method, problems, folder)
    found = comparison.without_curves(method.statistics)
    result.write({"run": str(folder), "horizon": method.horizon} | found)


def _show(method: Any, problems: Any, folder: Path) -> None:
    """Print what was learned, and what is to be known about it."""
    from ode2opt.learning.comparison import comparison_sentence

    out.print(facts_table(_facts(method, folder), f"learned for {problems.name}"))
    say_notes(problems.words, problems.notes)
    compared = comparison_sentence(method.statistics["fresh"])
    for sentence in (*method.certificate["verdict"], compared):
        say(sentence)


def _trained(start: Callable[[], Any], callback: Any, resume: bool) -> Any:
    """Return what is learned; where the set-up or the training is broken off, say what goes on."""
    try:
        training = start()
    except (KeyboardInterrupt, WorkersLostError) as error:
        kept = "the run is as it was" if resume else "nothing is kept"
        fail(f"{_broken_off(error)} in the set-up: {kept}.", 1, command_again())
    try:
        return training.run(callback)
    except (KeyboardInterrupt, WorkersLostError) as error:
        done = f"after {training.position.done} of {training.steps} steps"
        fail(f"{_broken_off(error)} {done}.", 1, command_again("--resume"))


def _broken_off(error: BaseException) -> str:
    return "Interrupted" if isinstance(error, KeyboardInterrupt) else f"{error} It was broken off"


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
