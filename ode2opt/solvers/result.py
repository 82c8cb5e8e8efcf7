"""What a solve returns: the best point, why it stopped, what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, detached
from ode2opt.base.display import Displayed, Listing, text_table, vector_words
from ode2opt.base.ended import Ended
from ode2opt.base.errors import many
from ode2opt.solvers.bound import Bound
from ode2opt.solvers.concavity import Concave
from ode2opt.solvers.plots import plot_result

LONGEST_NAME = 200  # characters of a column's name that are kept
MOST_HANDOVERS = 5  # that are shown


Status = Ended
"""Why a solve ended; the public name."""


def _finite(number: float) -> float | None:
    """Return what JSON can hold: it has no infinity."""
    return number if math.isfinite(number) else None


def _on_host(x: Array) -> np.ndarray:
    """Return any kind of array as NumPy's."""
    x = detached(x)
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


@dataclass(frozen=True)
class Handover:
    """One change of method during a solve, by the guard or the relay.

    Attributes:
        iteration: after which it happened.
        reason: why, in words.
        to: the name of the stage that goes on.
        grad_norm: at that iteration.
    """

    iteration: int
    reason: str
    to: str
    grad_norm: float

    def summary(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self) | {"grad_norm": _finite(self.grad_norm)}

    def __str__(self) -> str:
        return f"to {self.to} at iteration {self.iteration}: {self.reason}"


@dataclass
class History:
    """What was seen at each iteration, 0 being the start point.

    Attributes:
        grad_norm: gradient norms.
        oracle_calls: those of a solve that stops there: all by then, and one for the value where
            the gradient alone was asked for.
        seconds: wall time by then.
    """

    grad_norm: list[float] = field(default_factory=list)
    oracle_calls: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Milestone:
    """When the tolerance was first reached.

    Attributes:
        iteration: the iteration.
        oracle_calls: those of a solve that stops there: all by then, and one for the value where
            the gradient alone was asked for.
        seconds: wall time by then.
    """

    iteration: int
    oracle_calls: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Result(Displayed):
    """The answer of :func:`ode2opt.solve`.

    ``print(result)`` tells how it went; a notebook shows the same as a table.

    Attributes:
        x: the point with the smallest gradient norm seen; always finite.
        fun: f(x).
        grad_norm: the Euclidean norm of the gradient at ``x``.
        status: why the solve stopped.
        iterations: iterations made; for lbfgs and the guard's fallback each evaluation is one.
        oracle_calls: gradients, Hessian-vector products and values used, set-up included; work on
            m of N rows counts m/N, a Hessian as many gradients as have its operations
            (docs/counting.md).
        seconds: wall time, set-up included.
        method: what was done, in words.
        handovers: what the guard or the relay did.
        history: norms, calls and seconds by iteration, when asked for.
        reached: when the tolerance was first met, or None.
        concave: where the function was found not to be convex: two points and the product of their
            gradients' difference with their own.
        tol: the gradient norm that was asked for.
        bound: what is known of f(x) - f*, and from where; None where nothing is.
        residual: |x - prox(x - grad f(x))| of a solve with a penalty, at ``x``; ``history`` has it
            in place of gradient norms, ``fun`` is f + h, and ``x`` the point where it is smallest.
            None without a penalty.
        support: the numbers of the variables that are not 0, or not at a limit; None without a
            penalty.
        gap: f + h at ``x`` is at most so much above its minimum; None without a penalty, and
            where nothing is known: h of one's own without ``conjugate``, |x|_1 beside an intercept
            or added to a problem that may be negative.
    """

    x: Array
    fun: float
    grad_norm: float
    status: Status
    iterations: int
    oracle_calls: float
    seconds: float
    method: str = ""
    handovers: tuple[Handover, ...] = ()
    history: History | None = None
    reached: Milestone | None = None
    concave: Concave | None = None
    tol: float | None = None
    bound: Bound | None = None
    residual: float | None = None
    support: np.ndarray | None = None
    gap: float | None = None

    def __repr__(self) -> str:
        name, size = self.measure
        return (
            f"Result({self.status.name.lower()}, {name} {size:.3g}, "
            f"fun {self.fun:.6g}, {many(self.iterations, 'iteration')}, "
            f"{self.oracle_calls:.4g} oracle calls, x of {many(len(self.x), 'number')})"
        )

    def __str__(self) -> str:
        return text_table(self._listing())

    def _listing(self) -> Listing:
        asked = "" if self.tol is None else f" (asked for: {self.tol:.3g})"
        name, size = self.measure
        rows = [
            ("method", self.method),
            ("f(x)" if self.residual is None else "f(x) + h(x)", f"{self.fun:.8g}"),
            (name, f"{size:.3g}{asked}"),
            *([] if self.gap is None else [("gap", f"at most {self.gap:.3g}")]),
            *([] if self.support is None else [("support", many(len(self.support), "variable"))]),
            *([] if self.bound is None else [("bound", str(self.bound))]),
            ("iterations", f"{self.iterations:,}"),
            ("oracle calls", f"{self.oracle_calls:,.1f}"),
            ("seconds", f"{self.seconds:.3g}"),
            *(("handover", str(one)) for one in self.handovers[:MOST_HANDOVERS]),
        ]
        if len(self.handovers) > MOST_HANDOVERS:
            rows.append(("handover", f"and {len(self.handovers) - MOST_HANDOVERS} more"))
        return Listing(self.message, [*rows, ("x", vector_words(_on_host(self.x)))])

    def plot(self, ax: Any = None) -> Any:
        """Draw the gradient norm over oracle calls, the tolerance, and where methods changed.

        Args:
            ax: the matplotlib axes to draw in; new ones by default.

        Returns:
            The axes. Needs ``solve(..., history=True)``, and matplotlib.

        Examples:
            >>> solve(problem, history=True).plot()
        """
        return plot_result(self, ax)

    @property
    def measure(self) -> tuple[str, float]:
        """What was to become small, by name, and how small it is: gradient norm or residual."""
        if self.residual is None:
            return "gradient norm", self.grad_norm
        return "residual", self.residual

    @property
    def success(self) -> bool:
        """Whether the gradient norm (with a penalty, the residual) reached the tolerance."""
        return self.reached is not None

    @property
    def message(self) -> str:
        """The status as a sentence, with the evidence where it needs some."""
        if self.residual is not None and self.status is Status.CONVERGED:
            return "The residual reached the tolerance."
        if self.concave is None:
            return self.status.value
        return f"{self.status.value[:-1]} ({self.concave})."

    def summary(self) -> dict[str, Any]:
        """Return the fields of ``ode2opt solve --json``; the last three with a penalty only."""
        found = {
            "status": self.status.name.lower(),
            "success": self.success,
            "fun": _finite(self.fun),
            "grad_norm": _finite(self.grad_norm),
            "iterations": self.iterations,
            "oracle_calls": self.oracle_calls,
            "seconds": self.seconds,
            "handovers": [handover.summary() for handover in self.handovers],
            "bound": None if self.bound is None else self.bound.value,
            "bound_from": None if self.bound is None else self.bound.source,
        }
        if self.residual is None or self.support is None:
            return found
        size = len(self.support)
        return found | {"residual": _finite(self.residual), "gap": self.gap, "support": size}

    def save(
        self,
        file: Any,
        columns: Sequence[str] | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        """Write x, fun, grad_norm and status to an open NPZ file.

        Args:
            file: open for writing bytes.
            columns: the names of columns, of which 200 characters are kept.
            beside: further arrays, numbers or texts by name, such as the classes.
        """
        names: dict[str, Any] = {}
        if columns is not None:
            names["columns"] = np.array([name[:LONGEST_NAME] for name in columns], dtype=str)
        np.savez(
            file,
            x=np.asarray(self.x),
            fun=self.fun,
            grad_norm=self.grad_norm,
            status=self.status.name.lower(),
            **names,
            **(beside or {}),
        )
