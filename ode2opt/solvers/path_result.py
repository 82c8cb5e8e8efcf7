"""What a path of solutions leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ode2opt.base.display import Displayed, Listing, text_table
from ode2opt.base.errors import many
from ode2opt.solvers.result import Result, Status

WIDE = 1_000  # variables from which on coefficients are kept sparse


@dataclass(frozen=True)
class PathProgress:
    """What a callback of a path sees after each scale; returning True stops the path.

    Attributes:
        done: how many scales are done.
        total: how many there are.
        scale: the one just done.
        result: its result, for the full problem.
        seconds: wall time so far.
    """

    done: int
    total: int
    scale: float
    result: Result
    seconds: float


@dataclass(frozen=True, eq=False)
class PenaltyPath(Displayed):
    """The answer of :func:`ode2opt.path`: solutions for falling weights of a penalty.

    Attributes:
        scales: what the penalty was multiplied by, falling; of ``L1(1.0)`` they are the weights.
        coefficients: the solutions, a row a scale; SciPy's CSR from 1,000 variables on.
        values: f + scale h at them.
        residuals: |x - prox(x - grad f(x))| of the full problem, at each.
        gaps: bounds of what each is above its minimum; NaN where none is known.
        supports: the numbers of the variables that are not 0, or not at a limit.
        statuses: why each solve stopped.
        iterations: of each solve, those on fewer columns included.
        calls: oracle calls of each; on some of the columns a call counts as that share.
        seconds: wall time of all.
        status: ``Status.CONVERGED`` where all scales are done and no residual is above ``tol``,
            else why not. After Ctrl-C, a callback's stop or the time limit the scales are those
            that were done.
        tol: the residual that was asked for.
    """

    scales: np.ndarray
    coefficients: Any
    values: np.ndarray
    residuals: np.ndarray
    gaps: np.ndarray
    supports: list[np.ndarray]
    statuses: list[Status]
    iterations: np.ndarray
    calls: np.ndarray
    seconds: float
    status: Status
    tol: float

    @classmethod
    def of(
        cls,
        n: int,
        scales: np.ndarray,
        results: list[Result],
        *,
        stopped: Status | None,
        seconds: float,
        tol: float,
    ) -> PenaltyPath:
        """Return the path of results.

        Args:
            n: the number of variables.
            scales: as many as there are results, or more.
            results: one a scale, in order.
            stopped: why the path ended early; None where it did not.
            seconds: wall time of all.
            tol: the residual that was asked for.
        """
        failed = next((one.status for one in results if not one.success), None)
        return cls(
            scales=scales[: len(results)],
            coefficients=_rows(n, results),
            values=np.array([one.fun for one in results]),
            residuals=np.array([one.residual for one in results], dtype=np.float64),
            gaps=np.array([one.gap for one in results], dtype=np.float64),
            supports=[np.asarray(one.support) for one in results],
            statuses=[one.status for one in results],
            iterations=np.array([one.iterations for one in results], dtype=np.int64),
            calls=np.array([one.oracle_calls for one in results], dtype=np.float64),
            seconds=seconds,
            status=stopped or failed or Status.CONVERGED,
            tol=tol,
        )

    @property
    def success(self) -> bool:
        """Whether all scales are done and every residual is at most the tolerance."""
        return self.status is Status.CONVERGED

    def __len__(self) -> int:
        return len(self.scales)

    def x(self, k: int) -> np.ndarray:
        """Return the solution for one scale.

        Args:
            k: its number, from 0; negative ones count from the end.
        """
        row = self.coefficients[[k]]
        return np.asarray(row.toarray() if hasattr(row, "toarray") else row)[0]

    def __repr__(self) -> str:
        return f"PenaltyPath({self.status.name.lower()}, {many(len(self), 'scale')}{self._span()})"

    def __str__(self) -> str:
        return text_table(self._listing())

    def _span(self) -> str:
        return f" from {self.scales[0]:.3g} to {self.scales[-1]:.3g}" if len(self) else ""

    def _listing(self) -> Listing:
        done = len(self) > 0
        title = "Every residual reached the tolerance." if self.success else self.status.value
        rows = [("scales", f"{len(self):,}{self._span()}")]
        if done:
            sizes = f"{len(self.supports[0]):,} to {len(self.supports[-1]):,} variables"
            worst = f"{self.residuals.max():.3g} (asked for: {self.tol:.3g})"
            rows += [("support", sizes), ("largest residual", worst)]
        rows += [("oracle calls", f"{self.calls.sum():,.1f}"), ("seconds", f"{self.seconds:.3g}")]
        return Listing(title, rows)


def _rows(n: int, results: list[Result]) -> Any:
    """Return solutions as rows, sparse where they are long."""
    points = [np.asarray(one.x) for one in results]
    if n < WIDE:
        return np.array(points) if points else np.zeros((0, n))
    from scipy.sparse import csr_array

    columns = [np.flatnonzero(x) for x in points]
    first = np.cumsum([0, *(len(one) for one in columns)])
    data = [x[one] for x, one in zip(points, columns, strict=True)]
    filled = (np.concatenate([*data, np.zeros(0)]), np.concatenate([*columns, np.zeros(0, int)]))
    return csr_array((*filled, first), shape=(len(points), n))
