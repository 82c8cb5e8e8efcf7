"""Double precision in JAX for a while, whatever its version."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def jax_precision(double: bool = True) -> AbstractContextManager[None]:
    """Return a context in which JAX computes in double precision, or does not.

    Examples:
        >>> import jax.numpy as jnp
        >>> with jax_precision():
        ...     print(jnp.zeros(3).dtype)
        float64
    """
    import jax

    if hasattr(jax, "enable_x64"):  # since JAX 0.8
        return jax.enable_x64(double)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64

    return enable_x64(double)  # type: ignore[no-any-return]


def double(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function run with JAX in double precision, whatever the global setting is.

    Examples:
        >>> import jax.numpy as jnp
        >>> double(lambda: jnp.zeros(3).dtype)()
        dtype('float64')
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax_precision():
            return function(*args, **kwargs)

    return wrapped
