"""What the file of a method holds: arrays, and one description of their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.arrays import as_count, as_positive
from ode2opt.base.record import METHOD, Arrays
from ode2opt.base.schedule import Schedule
from ode2opt.base.schema import read
from ode2opt.proofs.table import Table
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.monitored import MonitoredSettings
from ode2opt.solvers.start_point import read_start

if TYPE_CHECKING:
    from ode2opt.solvers.method_file import Method

_START = "start"
_SCHEDULE, _PARAMETERS, _METRIC = "schedule.", "parameters.", "metric."
_PROXIMAL = "proximal."
_METRIC_ARRAYS = ("scale", "V", "stretch")
_LATER = ("proof", "monitored", "proximal")  # a file without them is one of before there were any
_PLAIN = ("family", "tol", "scale", "family_scale", "guard", "monitored")


@dataclass(frozen=True, eq=False)
class Formula:
    """The coefficients that a schedule was made from, as plain numbers.

    Attributes:
        kind: the kind's name, as in ``ode2opt.coefficients.COEFFICIENTS``.
        settings: what makes an empty one of its kind.
        parameters: its arrays by name.
        h, t0: step and first time of the discretisation.
    """

    kind: str
    settings: Mapping[str, Any]
    parameters: Mapping[str, np.ndarray]
    h: float
    t0: float


def described(method: Method) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of the method's file by name, and the description beside them."""
    arrays: dict[str, np.ndarray] = {}
    if method.schedule is not None:
        arrays = {_SCHEDULE + key: getattr(method.schedule, key) for key in "acd"}
    if method.proximal is not None:
        arrays = {_PROXIMAL + key: getattr(method.proximal, key) for key in Table.names()}
    formula = method.formula
    if formula is not None:
        arrays |= {_PARAMETERS + k: np.asarray(v) for k, v in formula.parameters.items()}
    if isinstance(method.start, np.ndarray):
        arrays[_START] = method.start
    header = _MethodHeader(
        version=METHOD.version,
        horizon=0 if method.schedule is None else method.horizon,
        proximal=None if method.proximal is None else method.horizon,
        start=method.start_rule,
        metric=save_metric(method.metric, arrays),
        formula=_formula_header(formula),
        provenance=dict(method.provenance),
        certificate=dict(method.certificate),
        statistics=dict(method.statistics),
        proof=None if method.proof is None else dict(method.proof),
        **{key: getattr(method, key) for key in _PLAIN},
    )
    about = asdict(header)
    for name in _LATER:
        if about[name] is None:
            del about[name]
    return arrays, about


def fields_of(arrays: Arrays, about: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a method from the arrays and the description of its file."""
    header = read(_MethodHeader, about)
    schedule = None
    if header.horizon:
        table = {key: arrays.take(_SCHEDULE + key, (header.horizon,)) for key in "acd"}
        schedule = Schedule(**table)
    proximal = None
    if header.proximal is not None:
        rows = (arrays.take(_PROXIMAL + key, (header.proximal,)) for key in Table.names())
        proximal = Table(*rows)
    trained = "options" in header.provenance and proximal is None
    return dict(
        schedule=schedule,
        metric=load_metric(header.metric, arrays),
        start=read_start(header.start, arrays.pop(_START, None), trained),
        formula=_formula(header.formula, arrays),
        provenance=header.provenance,
        certificate=header.certificate,
        statistics=header.statistics,
        proof=header.proof,
        proximal=proximal,
        **{key: getattr(header, key) for key in _PLAIN},
    )


@dataclass(frozen=True)
class _FormulaHeader:
    kind: str
    settings: dict[str, Any]
    h: float
    t0: float

    def __post_init__(self) -> None:
        as_positive(self.h, "h")
        as_positive(self.t0, "t0")


@dataclass(frozen=True)
class _MethodHeader:
    """The description in a method file; its arrays are beside it."""

    version: int | None
    family: str
    tol: float
    horizon: int
    scale: str
    guard: Guard
    provenance: dict[str, Any]
    certificate: dict[str, Any]
    statistics: dict[str, Any]
    start: str | None = None
    family_scale: float | None = None
    formula: _FormulaHeader | None = None
    metric: str | None = None
    proof: dict[str, Any] | None = None
    monitored: MonitoredSettings | None = None
    proximal: int | None = None

    def __post_init__(self) -> None:
        as_count(self.horizon, "horizon", least=0)
        if self.proximal is not None:
            as_count(self.proximal, "proximal")


def save_metric(metric: Metric | None, arrays: dict[str, np.ndarray]) -> str | None:
    """Put a metric's parts among the arrays of a file; returns its kind."""
    if metric is None:
        return None
    parts = {key: getattr(metric, key) for key in _METRIC_ARRAYS}
    arrays |= {_METRIC + k: part for k, part in parts.items() if part is not None}
    return metric.kind


def load_metric(kind: str | None, arrays: Arrays) -> Metric | None:
    """Return the metric that :func:`save_metric` put there."""
    if kind is None:
        return None
    parts = {key: arrays.pop(_METRIC + key, None) for key in _METRIC_ARRAYS}
    return Metric(kind, **parts)  # type: ignore[arg-type]


def _formula_header(formula: Formula | None) -> _FormulaHeader | None:
    if formula is None:
        return None
    return _FormulaHeader(formula.kind, dict(formula.settings), formula.h, formula.t0)


def _formula(header: _FormulaHeader | None, arrays: Arrays) -> Formula | None:
    if header is None:
        return None
    parameters = {
        name.removeprefix(_PARAMETERS): arrays.take(name)
        for name in list(arrays)
        if name.startswith(_PARAMETERS)
    }
    return Formula(header.kind, header.settings, parameters, header.h, header.t0)
