"""A problem from a plain function: the user's gradient, or JAX's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, as_count, as_number, namespace, refuse_unreal
from ode2opt.base.errors import InputError, MissingDependencyError, installing
from ode2opt.base.precision import jax_precision
from ode2opt.problems.base import Problem

OfArrays = Callable[..., Any]


class FunctionProblem(Problem):
    """A function given by callables on float64 NumPy vectors.

    :meth:`Problem.from_function` makes one. Without ``grad`` the function must be written with
    ``jax.numpy``: its gradient and its Hessian-vector product come from automatic differentiation.
    With ``grad`` it may be anything.
    """

    def __init__(
        self,
        fun: Callable[[Array], float],
        grad: Callable[[Array], Array] | None = None,
        *,
        n: int,
        hvp: Callable[[Array, Array], Array] | None = None,
    ) -> None:
        for name, given in (("fun", fun), ("grad", grad), ("hvp", hvp)):
            if not callable(given) and (name == "fun" or given is not None):
                raise InputError(f"{name} must be a function, not {type(given).__name__}.")
        n = as_count(n, "n")
        self.n, self.dtype, self.xp = n, np.dtype(np.float64), namespace(np.empty(0))
        self.traceable = fun if grad is None else None
        self._name = str(getattr(fun, "__name__", type(fun).__name__))
        if grad is None:
            fun, grad, jax_hvp = differentiate(fun, self.n)
            hvp = hvp or jax_hvp
        self._fun, self._grad, self._hvp = fun, grad, hvp
        self.has_hvp = hvp is not None

    def _about(self) -> list[tuple[str, str]]:
        derivatives = "gradient" if self._hvp is None else "gradient and Hessian-vector product"
        by = "given" if self.traceable is None else "by JAX"
        return [*super()._about(), ("function", self._name), (derivatives, by)]

    def value(self, x: Array) -> Array:
        value = self._fun(x)
        if np.size(value) != 1:
            raise InputError(f"The function returns shape {np.shape(value)}; one number is due.")
        return as_number(np.asarray(value).reshape(()), "the function's value")

    def gradient(self, x: Array) -> Array:
        return self._vector(self._grad(x), "gradient")

    def hvp(self, x: Array, v: Array) -> Array:
        if self._hvp is None:
            return super().hvp(x, v)
        return self._vector(self._hvp(x, v), "Hessian-vector product")

    def _vector(self, g: Any, what: str) -> Array:
        refuse_unreal(g, f"The {what}")
        g = np.array(g, dtype=np.float64)  # a copy: the function may hand out its own buffer
        if g.shape != (self.n,):
            raise InputError(f"The {what} has shape {g.shape}; it must be ({self.n},) like x.")
        return g


def differentiate(fun: Callable[[Array], Any], n: int) -> tuple[OfArrays, OfArrays, OfArrays]:
    """Return a function, its gradient and its Hessian-vector product, compiled by JAX in
    float64.
    """
    try:
        import jax
    except ImportError:
        raise MissingDependencyError(
            "A function without a gradient is differentiated by JAX: "
            f"{installing('learn')}, or pass the gradient."
        ) from None

    def in_double(compiled: OfArrays) -> OfArrays:
        def call(*args: Array) -> np.ndarray:
            with jax_precision():
                return np.asarray(compiled(*(np.asarray(a, dtype=np.float64) for a in args)))

        return call

    gradient = jax.grad(fun)
    value = in_double(jax.jit(fun))
    try:
        shape = value(np.ones(n)).shape
    except Exception as error:
        raise InputError(
            f"JAX cannot trace the function ({type(error).__name__}): write it with jax.numpy, "
            f"or pass its gradient."
        ) from error
    if shape != ():
        raise InputError(f"The function returns shape {shape}; it must return one number.")
    product = jax.jit(lambda x, v: jax.jvp(gradient, (x,), (v,))[1])
    return value, in_double(jax.jit(gradient)), in_double(product)
