"""ode2opt train."""

from __future__ import annotations

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.cli.app import app
from ode2opt.cli.options import (
    DatasetArgument,
    JsonOption,
    LabelOption,
    PowerOption,
    ProblemArgument,
    RidgeOption,
    SizeOption,
    SplitOption,
    load_family,
    model_options,
)
from ode2opt.errors import needing
from ode2opt.terminal import check_writable, err, facts_table, fail, live_training, out, write_json

RUNS = Path("runs")


class Target(StrEnum):
    """Whose stopping time is minimised."""

    flow = "flow"


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
    "[bold]ode2opt bench logistic a5a --method runs/a5a/method.safetensors[/bold]"
)
def train(
    ctx: typer.Context,
    problem: ProblemArgument,
    dataset: DatasetArgument,
    target: Annotated[Target, typer.Option(help="Whose stopping time is minimised.")] = Target.flow,
    coefficients: Annotated[Kind, typer.Option(help="The kind of coefficients.")] = Kind.feasible,
    activation: Annotated[
        Activation, typer.Option(help="Of neural coefficients.")
    ] = Activation.softplus,
    split: SplitOption = None,
    size: SizeOption = None,
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 3e-4,
    steps: Annotated[int, typer.Option(help="Updates of the parameters.")] = 150,
    batch: Annotated[int, typer.Option(help="Problems a step.")] = 2,
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="RUN_DIR", help="By default runs/PROBLEM-DATASET.", show_default=False
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
            help="Step size; 0.03 by default, 0.001 for neural coefficients and sgd.",
            show_default=False,
        ),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Of sgd.")] = 0.9,
    decay: Annotated[Decay, typer.Option(help="How the step size falls.")] = Decay.cosine,
    clip: Annotated[float, typer.Option(help="Largest norm of a problem's gradient.")] = 3.0,
    penalty: Annotated[float, typer.Option(help="The coefficient rho of P + Q.")] = 10.0,
    penalty_growth: Annotated[
        float, typer.Option(help="Its growth while validation finds a violation; 1 keeps it.")
    ] = 1.1,
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
        ScaleChoice, typer.Option(help="Divide by each instance's curvature, or the family's.")
    ] = ScaleChoice.instance,
    estimator: Annotated[
        CurvatureChoice, typer.Option(help="How the curvature along the way is found.")
    ] = CurvatureChoice.power,
    safety: Annotated[float, typer.Option(help="Factor on that curvature in training.")] = 1.2,
    horizon: Annotated[int, typer.Option(help="Iterations until a problem is given up.")] = 600,
    validate_every: Annotated[int, typer.Option(help="Steps between validations.")] = 10,
    validation: Annotated[int, typer.Option(help="Held-out training problems.")] = 8,
    patience: Annotated[
        int, typer.Option(help="Validations without progress until training stops.")
    ] = 8,
    p: PowerOption = 4,
    l2: RidgeOption = 0.0,
    label: LabelOption = None,
    json_file: JsonOption = None,
) -> None:
    """Learn a method for the problems of a dataset by StoPM.

    RUN_DIR gets method.safetensors, config.json, metrics.jsonl, checkpoints/ and TensorBoard
    events. After Ctrl-C or a crash, --resume goes on with the options of the run.
    """
    with needing("learn"):
        from ode2opt.learning import Options, Training
        from ode2opt.learning.run_directory import read_config

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
    options = Options(**given)
    family = load_family(problem, dataset, split, size, label, model_options(problem, p, l2))
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        with live_training(f"{problem} {dataset}", options.steps) as callback:
            training = Training(family, options, folder, resume)
            try:
                method = training.run(callback)
            except KeyboardInterrupt:
                done = training.progress.step
                fail(
                    f"Interrupted after {done} of {options.steps} steps; add --resume to go on.", 1
                )
    if json_file != "-":
        out.print(facts_table(_facts(method, folder), f"learned for {family.name}"))
        for sentence in method.certificate["verdict"]:
            out.print(sentence, highlight=False)
    write_json({"run": str(folder), "horizon": method.horizon} | dict(method.statistics), json_file)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


def _was_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _show_warning(message: Any, category: Any, *rest: Any) -> None:
    err.print(f"[bold yellow]Warning:[/bold yellow] {message}", highlight=False, soft_wrap=True)


def _facts(method: Any, folder: Path) -> dict[str, Any]:
    held_out, fresh = method.statistics["validation"], method.statistics["test"]
    return {
        "file": str(folder / "method.safetensors"),
        "horizon": method.horizon,
        "held-out training problems": f"{held_out['complexity']:.1f} iterations to the tolerance",
        "fresh test problems": f"{fresh['complexity']:.1f} iterations, worst {fresh['worst']}",
        "P, Q on them": f"{fresh['P']:.2g}, {fresh['Q']:.2g}",
        "handed over by the guard": f"{fresh['handovers']} of {fresh['total']}",
    }
