"""The method file: all that a solve needs of what was learned, in one safetensors file.

Reading it needs NumPy only, validates every field, and executes nothing from the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import Array, as_positive
from ode2opt.problems.base import Problem
from ode2opt.problems.curvature import curvature_along, largest_curvature
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.metric import Metric, Operator
from ode2opt.storage import write_atomically

VERSION, READABLE = 2, (1, 2)
SCALES = ("instance", "family", "product")
_KEY, _SCHEDULE, _PARAMETERS, _METRIC = "ode2opt", "schedule.", "parameters.", "metric."
_METRIC_ARRAYS = ("scale", "V", "stretch")


@dataclass(frozen=True, eq=False)
class Formula:
    """The coefficients that a schedule was made from, as plain numbers.

    Attributes:
        kind: the kind's name, as in ``ode2opt.dynamics.coefficients.KINDS``.
        settings: what makes an empty one of its kind.
        parameters: its arrays by name.
        h, t0: step and first time of the discretisation.
    """

    kind: str
    settings: Mapping[str, Any]
    parameters: Mapping[str, np.ndarray]
    h: float
    t0: float


@dataclass(frozen=True, eq=False)
class Method:
    """A learned method.

    Attributes:
        schedule: the table (a, c, d) for curvature 1; its length is the horizon.
        family: the problems it was learned for, in words.
        tol: the gradient norm it was learned to reach.
        scale: "instance" divides by the curvature at the start of each solve (SPEC.md section 8),
            "family" by ``family_scale``, one number for all, "product" by the curvature along the
            first gradient in the metric, from one Hessian-vector product.
        metric: the metric it runs in; None is the Euclidean one.
        start: a learned start point, taken where a solve is given none.
        guard: what watches it by default.
        formula: the coefficients behind the schedule.
        provenance: data hash, seed, options, package versions.
        certificate: what was promised when it was made.
        statistics: what was measured when it was made.
    """

    schedule: Schedule
    family: str
    tol: float
    scale: str = "instance"
    family_scale: float | None = None
    metric: Metric | None = None
    start: np.ndarray | None = None
    guard: Guard = field(default_factory=Guard)
    formula: Formula | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise unknown_name("scale", self.scale, SCALES)
        as_positive(self.tol, "tol")
        if self.scale == "family":
            as_positive(self.family_scale, "family_scale")
        if self.start is not None and (
            self.start.ndim != 1
            or self.start.dtype != np.float64
            or not np.all(np.isfinite(self.start))
        ):
            raise InputError("its start is no vector of finite float64 numbers.")
        if self.metric is not None and self.guard.fallback == "metric-lbfgs":
            self.metric.milder(self.guard.power)  # now, and not in a solve

    @property
    def horizon(self) -> int:
        """How many iterations it was made for; then the guard takes over."""
        return len(self.schedule)

    def scale_of(self, problem: Problem, x0: Array) -> tuple[float, int]:
        """Return the curvature to divide by for one problem, and the oracle calls it took."""
        if self.scale == "family":
            assert self.family_scale is not None
            return self.family_scale, 0
        if self.scale == "product":
            metric = None if self.metric is None else self.metric.on(problem)
            return self.curvature(problem, x0, problem.gradient(x0), metric), 1
        curvature, calls = largest_curvature(problem, x0)
        if not math.isfinite(curvature) or curvature < 0:
            raise InputError(f"The curvature at the start point is {curvature}: no step fits that.")
        return curvature or 1.0, calls

    @staticmethod
    def curvature(problem: Problem, x: Array, g: Array, metric: Operator | None) -> float:
        """Return the scale "product" at a point with gradient ``g``; one oracle call."""
        found = curvature_along(problem, x, g, g if metric is None else metric(g))
        return found if math.isfinite(found) and found > 0 else 1.0

    def replace(self, **fields: Any) -> Method:
        """Return a copy with some fields changed."""
        return replace(self, **fields)

    def save(self, path: str | Path) -> None:
        """Write the file; a crash or a full disk leaves what was there."""
        from safetensors.numpy import save

        arrays = {_SCHEDULE + key: getattr(self.schedule, key) for key in "acd"}
        about: dict[str, Any] = {
            "version": VERSION,
            "family": self.family,
            "tol": self.tol,
            "horizon": self.horizon,
            "scale": self.scale,
            "family_scale": self.family_scale,
            "guard": asdict(self.guard),
            "metric": None,
            "formula": None,
            "provenance": dict(self.provenance),
            "certificate": dict(self.certificate),
            "statistics": dict(self.statistics),
        }
        if self.formula is not None:
            formula = self.formula
            about["formula"] = {
                "kind": formula.kind,
                "settings": dict(formula.settings),
                "h": formula.h,
                "t0": formula.t0,
            }
            arrays |= {_PARAMETERS + k: np.asarray(v) for k, v in formula.parameters.items()}
        if self.metric is not None:
            about["metric"] = self.metric.kind
            parts = {key: getattr(self.metric, key) for key in _METRIC_ARRAYS}
            arrays |= {_METRIC + k: part for k, part in parts.items() if part is not None}
        if self.start is not None:
            arrays["start"] = self.start
        blob = save(
            {
                k: np.ascontiguousarray(v, dtype=np.float64).reshape(np.shape(v))
                for k, v in arrays.items()
            },
            metadata={_KEY: json.dumps(about, allow_nan=False)},
        )
        write_atomically(Path(path), lambda stream: stream.write(blob))

    @classmethod
    def load(cls, path: str | Path) -> Method:
        """Read a file written by :meth:`save`."""
        arrays, about = _read(Path(path))
        try:
            return cls._from(arrays, about)
        except InputError as error:
            raise InputError(f"{path} is no valid method: {error}") from None

    @classmethod
    def _from(cls, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Method:
        rows = {key: _taken(arrays, _SCHEDULE + key) for key in "acd"}
        schedule = Schedule(**rows)
        if _taken(about, "horizon", int) != len(schedule):
            raise InputError(f"its horizon is {about['horizon']}, its table has {len(schedule)}.")
        return cls(
            schedule=schedule,
            family=_taken(about, "family", str),
            tol=_taken(about, "tol", float),
            scale=_taken(about, "scale", str),
            family_scale=about.get("family_scale"),
            metric=_metric(about.get("metric"), arrays),
            start=arrays.get("start"),
            guard=_guard(_taken(about, "guard", dict)),
            formula=_formula(about.get("formula"), arrays),
            **{
                key: _taken(about, key, dict) for key in ("provenance", "certificate", "statistics")
            },
        )


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise InputError(f"There is no method file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is not a file.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{path} is damaged or no method file: {error}.") from None
    if text is None:
        raise InputError(f"{path} is a safetensors file, but not one of a method.")
    try:
        about = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise InputError(f"{path} is damaged: its description is not a JSON object.")
    if about.get("version") not in READABLE:
        raise InputError(
            f"{path} has format version {about.get('version')!r}; this ode2opt reads "
            f"{' and '.join(map(str, READABLE))}."
        )
    return arrays, about


def _taken(fields: Mapping[str, Any], key: str, kind: type | None = None) -> Any:
    """Return a field that must be there and of its kind."""
    if key not in fields:
        raise InputError(f"it has no {key}.")
    value = fields[key]
    if kind is float and type(value) is int:
        value = float(value)
    if kind is not None and type(value) is not kind:
        raise InputError(f"its {key} is {value!r}, not of the kind {kind.__name__}.")
    return value


def _guard(about: dict[str, Any]) -> Guard:
    for name in about.keys() - Guard.__dataclass_fields__.keys():
        raise InputError(f"its guard has no setting {name}.")
    if not isinstance(about.get("envelope", ()), list | tuple):
        raise InputError("its guard's envelope is no list of numbers.")
    return Guard(**about)


def _metric(kind: Any, arrays: dict[str, np.ndarray]) -> Metric | None:
    if kind is None:
        return None
    if not isinstance(kind, str):
        raise InputError(f"its metric is {kind!r}, not a name.")
    parts = {key: arrays.get(_METRIC + key) for key in _METRIC_ARRAYS}
    return Metric(kind, **parts)  # type: ignore[arg-type]


def _formula(about: Any, arrays: dict[str, np.ndarray]) -> Formula | None:
    if about is None:
        return None
    if not isinstance(about, dict):
        raise InputError("its formula is not a JSON object.")
    parameters = {
        key.removeprefix(_PARAMETERS): values
        for key, values in arrays.items()
        if key.startswith(_PARAMETERS)
    }
    for key, values in parameters.items():
        if values.dtype != np.float64 or not np.all(np.isfinite(values)):
            raise InputError(f"its parameter {key} is not made of finite float64 numbers.")
    return Formula(
        kind=_taken(about, "kind", str),
        settings=_taken(about, "settings", dict),
        parameters=parameters,
        h=as_positive(_taken(about, "h", float), "h"),
        t0=as_positive(_taken(about, "t0", float), "t0"),
    )
