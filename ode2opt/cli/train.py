"""ode2opt train."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.cli.app import app
from ode2opt.cli.options import (
    DatasetArgument,
    InterceptOption,
    JsonOption,
    LabelOption,
    PowerOption,
    ProblemArgument,
    RidgeOption,
    SizeOption,
    SplitOption,
    load_family,
    model_options,
    named,
)
from ode2opt.errors import needing
from ode2opt.terminal import (
    check_writable,
    facts_table,
    fail,
    live_training,
    out,
    say,
    write_json,
)

RUNS = Path("runs")


class Target(StrEnum):
    """Whose stopping time is minimised."""

    flow = "flow"
    sequence = "sequence"


class MetricChoice(StrEnum):
    """Metrics of a sequence."""

    auto = "auto"
    none = "none"
    diagonal = "diagonal"
    spectral = "spectral"
    lowrank = "lowrank"


class ReferenceChoice(StrEnum):
    """Where a metric looks at curvature."""

    auto = "auto"
    start = "start"
    path = "path"


class StartChoice(StrEnum):
    """Where a sequence starts."""

    paper = "paper"
    learned = "learned"


class Kind(StrEnum):
    """Kinds of coefficients that can be learned."""

    feasible = "feasible"
    spline = "spline"
    polynomial = "polynomial"
    neural = "neural"


class Activation(StrEnum):
    """Activations of neural coefficients."""

    softplus = "softplus"
    elu = "elu"
    relu = "relu"


class Optimizer(StrEnum):
    """Optimisers."""

    adam = "adam"
    adamw = "adamw"
    sgd = "sgd"


class Decay(StrEnum):
    """How the step size falls."""

    constant = "constant"
    cosine = "cosine"
    exponential = "exponential"


class ScaleChoice(StrEnum):
    """What the coefficients are divided by."""

    instance = "instance"
    family = "family"


class CurvatureChoice(StrEnum):
    """Curvature estimators."""

    power = "power"
    global_ = "global"
    l0l1 = "l0l1"


@app.command(
    epilog="Example: [bold]ode2opt train logistic a5a --out runs/a5a[/bold], then "
    "[bold]ode2opt bench logistic a5a --method runs/a5a/method.safetensors[/bold]. The fast one: "
    "[bold]ode2opt train logistic a5a --target sequence --split shuffled[/bold]"
)
def train(
    ctx: typer.Context,
    problem: ProblemArgument,
    dataset: DatasetArgument,
    target: Annotated[Target, typer.Option(help="Whose stopping time is minimised.")] = Target.flow,
    metric: Annotated[
        MetricChoice | None,
        typer.Option(help="Of a sequence: auto chooses on training problems.", show_default="auto"),
    ] = None,
    reference: Annotated[
        ReferenceChoice, typer.Option(help="Where the metric looks at curvature.")
    ] = ReferenceChoice.auto,
    start: Annotated[
        StartChoice, typer.Option(help="Of a sequence: the paper's, or learned from solutions.")
    ] = StartChoice.paper,
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Begin with a memory, as solve leaves it: a sequence in its metric.",
            show_default=False,
        ),
    ] = None,
    knots: Annotated[int, typer.Option(help="Of the spline of a sequence.")] = 9,
    coefficients: Annotated[
        Kind | None,
        typer.Option(
            help="The kind of coefficients.", show_default="feasible; spline for a sequence"
        ),
    ] = None,
    activation: Annotated[
        Activation, typer.Option(help="Of neural coefficients.")
    ] = Activation.softplus,
    split: SplitOption = None,
    size: SizeOption = None,
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 3e-4,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Updates of the parameters; with 0 a sequence is an instant method, in seconds.",
            show_default="150; 100 for a sequence",
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Problems a step.", show_default="2; 8 for a sequence")
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="RUN_DIR",
            help="By default runs/PROBLEM-DATASET.",
            show_default=False,
            parser=named,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in RUN_DIR, bit for bit.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Drives which problems are drawn.")] = 0,
    blocks: Annotated[
        bool, typer.Option(help="Every second problem of rows that follow each other.")
    ] = True,
    optimizer: Annotated[Optimizer, typer.Option(help="sgd is the paper's.")] = Optimizer.adam,
    lr: Annotated[
        float | None,
        typer.Option(
            help="Step size; 0.03 by default, 0.001 for neural coefficients and sgd, 0.05 for a "
            "sequence.",
            show_default=False,
        ),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Of sgd.")] = 0.9,
    decay: Annotated[Decay, typer.Option(help="How the step size falls.")] = Decay.cosine,
    clip: Annotated[float, typer.Option(help="Largest norm of a problem's gradient.")] = 3.0,
    penalty: Annotated[
        float | None,
        typer.Option(help="The coefficient rho of P + Q.", show_default="10; 0.1 for a sequence"),
    ] = None,
    penalty_growth: Annotated[
        float, typer.Option(help="Its growth while validation finds a violation; 1 keeps it.")
    ] = 1.1,
    margin: Annotated[
        float, typer.Option(help="Of linear stability, in a sequence's penalty P.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option(help="The damping, at the start.")] = 6.0,
    learn_alpha: Annotated[
        bool, typer.Option("--learn-alpha", help="Learn the damping, too.")
    ] = False,
    h: Annotated[float, typer.Option("--h", help="Step of the discretisation.")] = 0.04,
    t0: Annotated[float, typer.Option(help="Its first time.")] = 1.0,
    C: Annotated[float, typer.Option("--C", help="Default coefficients to start from.")] = 2.0,
    kappa: Annotated[float, typer.Option(help="Of Theorem 1, in (0, 1].")] = 1.0,
    lam: Annotated[
        float | None, typer.Option(help="Of Theorem 1; alpha - 1 by default.", show_default=False)
    ] = None,
    scale: Annotated[
        ScaleChoice | None,
        typer.Option(
            help="Divide by each instance's curvature, or by the family's.",
            show_default="instance; family for a sequence",
        ),
    ] = None,
    estimator: Annotated[
        CurvatureChoice, typer.Option(help="How the curvature along the way is found.")
    ] = CurvatureChoice.power,
    safety: Annotated[float, typer.Option(help="Factor on that curvature in training.")] = 1.2,
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Iterations until a problem is given up.", show_default="600; 150 for a sequence"
        ),
    ] = None,
    validate_every: Annotated[int, typer.Option(help="Steps between validations.")] = 10,
    validation: Annotated[int, typer.Option(help="Held-out training problems.")] = 8,
    patience: Annotated[
        int, typer.Option(help="Validations without progress until training stops.")
    ] = 8,
    p: PowerOption = 4,
    l2: RidgeOption = 0.0,
    intercept: InterceptOption = False,
    label: LabelOption = None,
    json_file: JsonOption = None,
) -> None:
    """Learn a method for the problems of a dataset by StoPM.

    The target flow is the paper's. The target sequence learns what a solve pays for, iterations,
    together with a metric: far fewer gradients on new problems of the same kind; where that is not
    clearly better than L-BFGS in the metric (--steps 0), the latter is kept. RUN_DIR gets
    method.safetensors, config.json, metrics.jsonl, checkpoints/ and TensorBoard events. After
    Ctrl-C or a crash, --resume goes on with the options of the run.
    """
    from ode2opt import Memory

    with needing("learn"):
        from ode2opt.learning import Options, beside
        from ode2opt.learning.run_directory import read_config
        from ode2opt.learning.training import begun

    check_writable(json_file)
    folder = out_dir or RUNS / f"{problem}-{Path(dataset).stem}"
    given = {name: _plain(ctx.params[name]) for name in Options.__dataclass_fields__}
    if resume:
        stored = read_config(folder).get("options", {})
        explicit = {name for name in given if _was_given(ctx, name)}
        given = {
            name: given[name] if name in explicit else stored.get(name, given[name])
            for name in given
        }
    if memory is not None and not _was_given(ctx, "target"):
        given["target"] = Target.sequence.value
    options = Options(**given)
    known = None if memory is None else Memory.load(memory)
    model = model_options(problem, p, l2, intercept)
    family = load_family(problem, dataset, split, size, label, model)
    with live_training(f"{problem} {dataset}", options.steps) as (callback, note):
        try:
            training = begun(family, options, folder, resume, note, known)
        except KeyboardInterrupt:
            kept = "the run is as it was" if resume else "nothing is kept, start again"
            fail(f"Interrupted in the set-up: {kept}.", 1)
        try:
            method = training.run(callback)
        except KeyboardInterrupt:
            done = training.progress.step
            fail(f"Interrupted after {done} of {options.steps} steps; add --resume to go on.", 1)
    if json_file != "-":
        out.print(facts_table(_facts(method, folder), f"learned for {family.name}"))
        for sentence in method.certificate["verdict"]:
            say(sentence)
        say(beside.words(method.statistics["fresh"]))
    write_json({"run": str(folder), "horizon": method.horizon} | dict(method.statistics), json_file)


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
    if method.instant:
        return facts
    return facts | {
        "P, Q on them": f"{fresh['P']:.2g}, {fresh['Q']:.2g}",
        "handed over by the guard": f"{fresh['handovers']} of {fresh['total']}",
        "to": method.guard.words(method.metric is not None),
    }
