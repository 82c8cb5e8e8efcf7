"""``ode2opt.learn``: from a family of problems to a method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.config import read_config
from ode2opt.learning.flow.given import NOTHING, Given, taken_out
from ode2opt.learning.flow.target import flow_plan
from ode2opt.learning.options import Options
from ode2opt.learning.protocol import Planner
from ode2opt.learning.registry import make_options
from ode2opt.learning.run import Log, Training, TrainingCallback
from ode2opt.learning.sequence.certified.run import CERTIFIED
from ode2opt.learning.sequence.composite.run import PROXIMAL
from ode2opt.learning.sequence.instant_run import INSTANT
from ode2opt.learning.sequence.options import STARTS, SequenceOptions
from ode2opt.learning.sequence.remembered import snapshot
from ode2opt.learning.sequence.restarts import sequence_plan
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory, Method


def learn(
    family: Family,
    *,
    memory: Memory | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    callback: TrainingCallback | None = None,
    executor: Executor = THIS_PROCESS,
    **options: Any,
) -> Method:
    """Learn a method for a family of problems.

    Args:
        family: problems to learn from; see :class:`ode2opt.Family`.
        memory: what is known already, of problems of the same kind and size: its metric becomes the
            method's, its mean solution the start where it has proved better, and no problem is
            solved beforehand. The target is then "sequence".
        out: a folder for method, metrics, checkpoints and TensorBoard events; None keeps nothing.
        resume: go on with the run in ``out`` with the options that it has; bit for bit on the
            machine that began it.
        callback: called with a :class:`TrainingStep` after every step; a true answer ends training.
        executor: who does the work: by default this process, or the workers of a cluster with
            ``ode2opt.integrations.dask.DaskExecutor``. Both learn the same method, bit for bit, on
            processors of one kind.
        options: ``target``, "flow" or "sequence", and the fields of its options:
            :class:`ode2opt.learning.FlowOptions` or :class:`ode2opt.learning.SequenceOptions`. The
            ``coefficients`` of a flow may also be a class of :mod:`ode2opt.coefficients` as
            ``Spline``, an instance as ``Spline(knots=5)``, or any equinox module with ``alpha``,
            ``beta(t)`` and ``gamma(t)``: training then begins there. Its ``penalty`` may also be
            f(t, state, coefficients, curvature) -> number, whose integral is added to P + Q;
            ``penalties=[StabilityP(), ConvergenceQ(), f]`` says which there are. With
            ``protocol="paper"`` a flow's defaults are :class:`ode2opt.learning.PaperOptions`, the
            settings that the paper prints; options given beside it win.

    Returns:
        The best feasible method by validation on held-out training problems; the last one by the
        paper's protocol. Its ``training`` has the history.

    Examples:
        >>> family = Family.from_dataset("logistic", "digits")
        >>> method = learn(family, steps=50, out="runs/digits")
        >>> result = solve(family.sample(0, part="test"), method=method, tol=3e-4)
    """
    if not isinstance(family, Family):
        raise InputError(
            f"learn needs a Family of problems, not {type(family).__name__}: see "
            f"Family.from_dataset and Family.from_arrays."
        )
    plain, given = taken_out(options)
    made = options_for(plain, memory is not None, out if resume else None)
    run = start_run(family, made, out, resume, memory=memory, executor=executor, given=given)
    return run.run(callback)


def options_for(
    given: Mapping[str, Any], with_memory: bool = False, resume_from: str | Path | None = None
) -> Options:
    """Return the checked options of a run, from keywords and, on resuming, from the run's
    folder.
    """
    given = ({"target": SequenceOptions.target} if with_memory else {}) | dict(given)
    if with_memory and given.get("start") == STARTS[0]:
        raise InputError(
            f"start {STARTS[0]} is not for a memory, whose mean solution is the start where that "
            f"has proved better: leave start out, or give {STARTS[1]}."
        )
    if resume_from is None:
        return make_options(given)
    stored = read_config(resume_from)["options"]
    asked = given.get("target", stored["target"])
    if asked != stored["target"]:
        raise InputError(
            f"{resume_from} belongs to another configuration: target is {stored['target']!r} there "
            f"and {asked!r} here."
        )
    return make_options(stored | given)


def start_run(
    family: Family,
    options: Options,
    out: str | Path | None,
    resume: bool,
    log: Log = lambda text: None,
    memory: Memory | None = None,
    executor: Executor = THIS_PROCESS,
    given: Given = NOTHING,
) -> Training:
    """Return a run that is set up and ready: call its ``run``.

    With ``options.certified`` it learns a table inside its proof, with ``options.steps`` = 0 it
    makes an instant method, with a penalty a table with a prox; ``given`` is for a flow.
    """
    if memory is not None:
        if not isinstance(options, SequenceOptions):
            raise InputError("A memory is for --target sequence.")
        memory = snapshot(memory, options)
    planner = _planner(family, options, given)
    return Training(family, options, out, resume, log, memory, executor, planner=planner)


def _planner(family: Family, options: Options, given: Given) -> Planner:
    """Return what begins a run of the problems with the options."""
    if not isinstance(options, SequenceOptions):
        if family.penalty is not None:
            raise InputError(
                "Problems with a penalty are for target='sequence': a flow has no prox."
            )
        own = None if given == NOTHING else given.identity()
        return Planner(partial(flow_plan, given), own=own)
    if family.penalty is None:
        if options.certified is not None:
            return CERTIFIED
        return Planner(sequence_plan) if options.steps else INSTANT
    if not options.steps:
        raise InputError("With a penalty there is no instant method: give at least one step.")
    if options.certified is not None:
        raise InputError(
            "certified is for smooth problems: with a penalty coefficients='proved' learns a table "
            "inside what is proved of FISTA."
        )
    return PROXIMAL
