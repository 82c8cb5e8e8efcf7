"""The method file: all that a solve needs of what was learned, in one safetensors file.

Reading it needs NumPy only, validates every field, and executes nothing from the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt import paper
from ode2opt.base.arrays import Array, as_positive, as_vector, usable
from ode2opt.base.display import Displayed, Listing, brief, vector_words, within
from ode2opt.base.errors import InputError, printable, unknown_name
from ode2opt.base.record import METHOD
from ode2opt.base.schedule import Schedule
from ode2opt.problems.base import Problem, Start
from ode2opt.problems.curvature import curvature_along, largest_curvature
from ode2opt.proofs.check_proof import Refused
from ode2opt.proofs.table import Table
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.method_header import Formula as Formula
from ode2opt.solvers.method_header import described, fields_of
from ode2opt.solvers.metric import Metric, Operator
from ode2opt.solvers.monitored import MonitoredProof, MonitoredSettings
from ode2opt.solvers.plots import plot_method
from ode2opt.solvers.start_point import check_start, first_point, rule_of

SCALES = ("instance", "family", "product", "paper")


@dataclass(frozen=True, eq=False)
class Method(Displayed):
    """A learned method.

    Attributes:
        schedule: the table (a, c, d) for curvature 1; its length is the horizon. None is an
            instant method: its guard's fallback, L-BFGS in the metric, from the start; or a method
            for problems with a penalty, see ``proximal``.
        family: the problems it was learned for, in words.
        tol: the gradient norm it was learned to reach.
        scale: (docs/mathematics.md, section 8) "instance" divides by the curvature at the start of
            each solve, "family" by ``family_scale``, one number for all, "product" by the curvature
            along the first gradient in the metric, from one Hessian-vector product, "paper" by the
            paper's step constant L of each problem (section 9).
        family_scale: the number of the scale "family".
        metric: the metric it runs in; None is the Euclidean one.
        start: where a solve starts that is given no x0: at a learned point, at the paper's start
            for "paper", at 0 for None (the default). It is the start that the method was learned
            from.
        guard: what watches it by default.
        formula: the coefficients behind the schedule.
        provenance: data hash, seed, options, package versions.
        certificate: what was promised when it was made.
        statistics: what was measured when it was made.
        proof: multipliers that prove a bound of its table for every smooth convex function, as
            ``ode2opt prove --out`` writes them; None where nothing was proved.
        monitored: how a solve runs the proved table with longer steps that check the proof; None
            runs it with the steps that it has.
        proximal: the table (m, p, q, w) for curvature 1 of a method for problems with a penalty
            (docs/mathematics.md, section 19); None for smooth ones.
        training: the history of the training that ``learn`` has just made; None of a file, whose
            run's folder has it.
    """

    schedule: Schedule | None
    family: str
    tol: float
    scale: str = "instance"
    family_scale: float | None = None
    metric: Metric | None = None
    start: np.ndarray | str | None = None
    guard: Guard = field(default_factory=Guard)
    formula: Formula | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    proof: Mapping[str, Any] | None = None
    monitored: MonitoredSettings | None = None
    proximal: Table | None = None
    training: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise unknown_name("scale", self.scale, SCALES)
        as_positive(self.tol, "tol")
        if self.instant and (self.scale != "family" or self.guard.fallback == "nesterov"):
            raise InputError("it has no table, so its scale must be family and its fallback lbfgs.")
        if self.scale == "family":
            as_positive(self.family_scale, "family_scale")
        check_start(self.start, None if self.metric is None else self.metric.n)
        if self.metric is not None and self.guard.fallback == "metric-lbfgs":
            self.metric.milder(self.guard.power)  # now, and not in a solve
        if self.monitored is not None:
            self._check_monitored()
        if (self.proximal is not None) != (self.guard.fallback == "fista"):
            raise InputError(
                "the fallback fista goes with a table that has a prox, and only there."
            )
        if self.proximal is not None:
            self._check_proximal(self.proximal)

    def _check_proximal(self, table: Table) -> None:
        """Refuse what does not go with a prox, and a proof that proves nothing."""
        if self.schedule is not None or self.metric is not None or self.scale != "family":
            raise InputError("its table has a prox: that takes no schedule, no metric, one scale.")
        table.with_prox()
        if self.proof is not None:
            ages = self.proof.get("ages")
            if not isinstance(ages, list) or not all(isinstance(t, float | int) for t in ages):
                raise InputError("its proof has no ages.")
            table.proved_factors(ages)

    def _check_monitored(self) -> None:
        """Refuse a table that has no proof which a run can check."""
        proof = {} if self.proof is None else self.proof
        if self.instant or self.scale != "family":
            raise InputError("it is monitored, so it must have a table and the scale family.")
        if (proof.get("star"), proof.get("tail")) != ("convex", "nag"):
            raise InputError(
                "it is monitored without a proof by plain convexity that has the tail nag."
            )
        try:
            MonitoredProof(proof)
        except (Refused, OverflowError) as error:
            raise InputError(f"it is monitored with a damaged proof: {error}") from None

    def __repr__(self) -> str:
        return printable(f"Method({self.family}, tol {self.tol:g}: {self.words})")

    def _listing(self) -> Listing:
        rows = [
            ("learned for", self.family),
            ("what it does", self.words),
            ("tolerance", f"{self.tol:g}"),
            ("scale", self.scale),
        ]
        if self.formula is not None:
            rows.append(("coefficients", f"{self.formula.kind}, step h = {self.formula.h:g}"))
        if self.metric is not None:
            rows.append(("metric", repr(self.metric)))
        start = self.start
        point = vector_words(start) if isinstance(start, np.ndarray) else self.start_rule
        rows.append(("start", point))
        told = (
            ("certificate", within(self.certificate, "levels")),
            ("oracle calls on fresh problems", within(self.statistics, "fresh", "calls")),
            ("made by", within(self.provenance, "command")),
            ("versions", within(self.provenance, "versions")),
        )
        return Listing("Method", [*rows, *((label, brief(v)) for label, v in told if v)])

    def plot(self, ax: Any = None) -> Sequence[Any]:
        """Draw beta and gamma over time, where the method has coefficients, and its schedule.

        Args:
            ax: the matplotlib axes to draw in: two, or one for the schedule alone; new ones by
                default.

        Returns:
            The axes, the schedule's last. A method without a schedule is refused.

        Examples:
            >>> Method.load("method.safetensors").plot()
        """
        return plot_method(self, ax)

    def coefficients(self) -> Any:
        """Return the coefficients that its schedule was made from; needs the extra ``learn``."""
        formula = self.formula
        if formula is None:
            what = "a table" if self.schedule is not None else self.words
            raise InputError(f"The method for {self.family} has no coefficients: it is {what}.")
        return paper.restored(formula.kind, formula.settings, formula.parameters)

    def plot_training(self) -> Any:
        """Return a Matplotlib figure of the training that made this method.

        Raises:
            InputError: it was not made by ``learn`` in this process.
        """
        if self.training is None:
            raise InputError(
                "This method comes with no training: that is in metrics.jsonl of its run's folder."
            )
        return self.training.plot()

    @property
    def instant(self) -> bool:
        """Whether it has no table: it is L-BFGS in its metric from the start."""
        return self.schedule is None and self.proximal is None

    @property
    def start_rule(self) -> str:
        """Where its solves start: "zero", "paper" or "learned"."""
        return rule_of(self.start)

    @property
    def horizon(self) -> int:
        """How many iterations it was made for; then the guard takes over."""
        table = self.schedule if self.proximal is None else self.proximal
        return 0 if table is None else len(table)

    @property
    def words(self) -> str:
        """What a solve with it does, in words."""
        fallback = self.guard.words(self.metric is not None)
        if self.instant:
            return fallback
        if self.proximal is not None:
            kind = "learned" if self.proof is None else "proved"
            return f"a {kind} table of {self.horizon} iterations with a prox"
        where = "" if self.metric is None else f" in a {self.metric.kind} metric"
        if self.monitored is not None:
            return (
                f"a certified table of {self.horizon} iterations{where} with steps up to "
                f"{1 / self.monitored.rho:g} times longer, which checks its proof"
            )
        return f"EIGAC with a learned table of {self.horizon} iterations{where}"

    def table(self) -> Schedule:
        """Return the schedule, for what can run a table only; refuses a method without one."""
        if self.schedule is None:
            of = "" if self.proximal is None else " without a prox"
            raise InputError(
                f"The method for {self.family} has no table{of}: it is {self.words}, "
                f"which ode2opt.solve runs."
            )
        return self.schedule

    def start_of(self, problem: Problem) -> Array:
        """Return where a solve of a problem starts that is given no x0, by the method's rule.

        Args:
            problem: the problem.

        Examples:
            >>> x0 = method.start_of(problem)
        """
        return first_point(self.start, problem)

    def scale_of(self, problem: Problem, x0: Array | Start | None = None) -> float:
        """Return the curvature that the table is divided by when a problem is solved from a point.

        Args:
            problem: the problem.
            x0: where the solve starts; by default as :meth:`start_of` says.

        Examples:
            >>> scale = method.scale_of(problem, x0)
        """
        if isinstance(x0, Start):
            x0 = x0.x0
        if x0 is None:
            x0 = self.start_of(problem)
        like = problem.xp.empty(0, dtype=problem.dtype)
        return self.scale_and_calls(problem, as_vector(x0, like, "x0", problem.n))[0]

    def scale_and_calls(self, problem: Problem, x0: Array) -> tuple[float, int]:
        """Return the scale at a point of the problem's arrays, and the oracle calls it took.

        Args:
            problem: the problem.
            x0: where the solve starts.
        """
        if self.scale == "family":
            assert self.family_scale is not None
            return self.family_scale, 0
        if self.scale == "product":
            metric = None if self.metric is None else self.metric.on(problem)
            return self.curvature(problem, x0, problem.gradient(x0), metric), 1
        if self.scale == "paper":
            found = problem.start().scale
            return found.L, found.oracle_calls
        curvature, calls = largest_curvature(problem, x0)
        if not math.isfinite(curvature):
            raise InputError(f"The curvature at the start point is {curvature}: no step fits that.")
        return usable(curvature), calls

    @staticmethod
    def curvature(problem: Problem, x: Array, g: Array, metric: Operator | None) -> float:
        """Return the scale "product" at a point with gradient ``g``; one oracle call.

        Args:
            problem: the problem.
            x: the point.
            g: the gradient there.
            metric: the method's preconditioner on the problem's arrays; None for none.
        """
        return usable(curvature_along(problem, x, g, g if metric is None else metric(g)))

    def replace(self, **fields: Any) -> Method:
        """Return a copy with some fields changed.

        Args:
            fields: attributes of a method by name.
        """
        return replace(self, **fields)

    def save(self, path: str | Path) -> None:
        """Write the file; a crash or a full disk leaves what was there.

        Args:
            path: the file, which ends in .safetensors.
        """
        METHOD.write(path, *self.described())

    def described(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays of the method's file by name, and the description beside them."""
        return described(self)

    @classmethod
    def load(cls, path: str | Path) -> Method:
        """Read a file written by :meth:`save`.

        Args:
            path: the file.
        """
        return METHOD.read(path, lambda arrays, about: cls(**fields_of(arrays, about)))
