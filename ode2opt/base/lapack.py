"""Routines of BLAS and LAPACK, without the rest of scipy.linalg.

``import scipy.linalg`` loads every part of NumPy and takes as long as a hundred small solves. Its
wrappers of BLAS and LAPACK are two extension modules that need none of that. They are loaded by
themselves, under their own names, so that a later ``import scipy.linalg`` finds and uses them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np


def _routines(extension: str, public: str) -> Any:
    """Return a module with SciPy's wrappers of BLAS or LAPACK.

    Where the extension module is not found, or does not load without SciPy's own preparations, it
    is the public module, with all of scipy.linalg.
    """
    if extension in sys.modules:
        return sys.modules[extension]
    scipy = find_spec("scipy")
    folders = [] if scipy is None else list(scipy.submodule_search_locations or [])
    spec = PathFinder.find_spec(extension, [f"{folder}/linalg" for folder in folders])
    if spec is not None and spec.loader is not None:
        try:
            module = sys.modules[extension] = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        except ImportError:
            sys.modules.pop(extension, None)
    return import_module(public)


_blas = _routines("scipy.linalg._fblas", "scipy.linalg.blas")
_lapack = _routines("scipy.linalg._flapack", "scipy.linalg.lapack")

dpotrf, dpotri, dpotrs = _lapack.dpotrf, _lapack.dpotri, _lapack.dpotrs
dtrtrs = _lapack.dtrtrs


def axpy(dtype: np.dtype) -> Any:
    """Return the routine y + a x of a precision."""
    return _blas.daxpy if dtype == np.float64 else _blas.saxpy


def syrk(dtype: np.dtype) -> Any:
    """Return the routine C + A A^T of a precision, which writes one half of C."""
    return _blas.dsyrk if dtype == np.float64 else _blas.ssyrk


def _prepare() -> None:
    """Call once what Newton's method calls: BLAS sets itself up at its first calls.

    That takes a few ten-thousandths of a second, as much as a third of a small solve.
    """
    B = np.eye(32)
    factor, _ = dpotrf(B.T @ B)
    dpotrs(factor, B @ B[0])


_prepare()
