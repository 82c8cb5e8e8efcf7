"""NumPy archives."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array
from ode2opt.problems.files.table import Table, as_numbers

UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    AttributeError,
    TypeError,
    zipfile.BadZipFile,
)


def read_npz(path: Path, label: str | None) -> Table:
    """Read a NumPy archive with A and b (or X and y).

    A sparse A is stored by its parts, as ``scipy.sparse.save_npz`` names them (CSR or CSC).
    ``label`` names another array of labels.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except UNREADABLE:
        raise InputError(f"{path} is not a readable NPZ archive of plain arrays.") from None
    if label is not None and label not in arrays:
        raise InputError(f"{path} has no array '{label}': it has {', '.join(arrays)}.")
    b = next((arrays[name] for name in (label, "b", "y") if name in arrays), None)
    A = next((arrays[name] for name in ("A", "X") if name in arrays), None)
    if A is None and {"data", "shape"} <= arrays.keys():
        A = _sparse(path, arrays)
    if A is None or b is None:
        found = ", ".join(arrays) or "nothing"
        raise InputError(f"{path} must hold a matrix A (or X) and labels b (or y); it has {found}.")
    if A.ndim != 2 or b.ndim != 1 or A.shape[0] != len(b):
        raise InputError(
            f"{path}: A has shape {A.shape} and b {b.shape}; rows and labels must fit."
        )
    if A.dtype.kind not in "fiub":
        raise InputError(f"{path}: A holds {A.dtype}, not real numbers.")
    return Table(A.astype(np.float64) if A.dtype.itemsize > 8 else A, as_numbers(b, path))


def _sparse(path: Path, arrays: dict[str, np.ndarray]) -> Array:
    from scipy.sparse import csc_array, csr_array

    form = arrays["format"].item() if "format" in arrays else "csr"
    form = form.decode() if isinstance(form, bytes) else str(form)
    makers = {"csr": csr_array, "csc": csc_array}
    if form not in makers or not {"indices", "indptr"} <= arrays.keys():
        raise InputError(f"{path} holds a sparse matrix in {form} form: save it as CSR or CSC.")
    try:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        A = makers[form](parts, shape=tuple(arrays["shape"]))
        A.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: its sparse matrix is damaged: {error}.") from None
    return A.tocsr()
