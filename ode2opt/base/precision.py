"""Double precision in JAX for a while, whatever its version."""

from __future__ import annotations

from contextlib import AbstractContextManager


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
