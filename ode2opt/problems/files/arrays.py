"""NumPy archives."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array
from ode2opt.problems.files.data_table import Asked, DataTable, as_labels, check_columns
from ode2opt.problems.files.unpacking import check_content

MATRIX, LABELS = ("A", "X"), ("b", "y")
PARTS = ("data", "indices", "indptr", "shape", "format")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes


def read_npz(path: Path, wanted: Asked) -> DataTable:
    """Read a NumPy archive with A and b (or X and y).

    A sparse A is stored by its parts, as ``scipy.sparse.save_npz`` names them (CSR or CSC).
    ``wanted`` may name another array of labels, and one of weights. Other arrays are not read.
    """
    label, own = wanted.label, [name for name in (wanted.label, wanted.weights) if name is not None]
    names, arrays = read_arrays(path, (*MATRIX, *LABELS, *PARTS, *own))
    found = ", ".join(names[:8]) + ", ..." * (len(names) > 8) or "nothing"
    for name in own:
        if name not in arrays:
            raise InputError(f"{path} has no array '{name}': it has {found}.")
    b = next((arrays[name] for name in (label, *LABELS) if name in arrays), None)
    A = next((arrays[name] for name in MATRIX if name in arrays), None)
    is_sparse = A is None and {"data", "shape"} <= arrays.keys()
    if b is None or (A is None and not is_sparse):
        raise InputError(f"{path} must hold a matrix A (or X) and labels b (or y); it has {found}.")
    if is_sparse:
        A = _sparse(path, arrays, np.shape(b))
    assert A is not None
    if A.ndim != 2 or b.ndim != 1 or A.shape[0] != len(b):
        raise InputError(
            f"{path}: A has shape {A.shape} and b {b.shape}; rows and labels must fit."
        )
    if A.dtype.kind not in "fiub":
        raise InputError(f"{path}: A holds {A.dtype}, not real numbers.")
    check_columns(A.shape[1], path)
    A = A.astype(np.float64) if A.dtype.itemsize > 8 else A
    return DataTable(A, as_labels(b, path), weights=_weights(path, arrays, wanted.weights, len(b)))


def _weights(
    path: Path, arrays: dict[str, np.ndarray], name: str | None, rows: int
) -> np.ndarray | None:
    if name is None:
        return None
    found = arrays[name]
    if found.shape != (rows,) or found.dtype.kind not in "fiub":
        raise InputError(f"{path}: the weights '{name}' are not {rows} numbers.")
    return found.astype(np.float64)


def read_arrays(path: Path, asked: Iterable[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of all arrays, and those that are asked for; nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            wanted = {name: members[name] for name in asked if name in members}
            check_content(path, sum(one.file_size for one in wanted.values()))
            return list(members), {name: _array(archive, member) for name, member in wanted.items()}
    except InputError:
        raise
    except Exception:  # a damaged archive makes zipfile, zlib and NumPy raise what they like
        raise InputError(f"{path} is not a readable NPZ archive of plain arrays.") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.compress_type not in METHODS:
        raise ValueError(member.compress_type)
    found = np.lib.format.read_array(BytesIO(archive.read(member)), allow_pickle=False)
    if found.dtype.hasobject or found.dtype.fields is not None or not _is_text(found):
        raise ValueError(found.dtype)
    return found


def _is_text(found: np.ndarray) -> bool:
    """Whether what NumPy takes for text is Unicode: Python makes a string of nothing else."""
    if found.dtype.kind != "U" or not found.nbytes:
        return True
    codes = np.frombuffer(found.tobytes(), np.dtype(np.uint32).newbyteorder(found.dtype.byteorder))
    return bool(codes.max() <= sys.maxunicode)


def _sparse(path: Path, arrays: dict[str, np.ndarray], labels: tuple[int, ...]) -> Array:
    from scipy.sparse import csc_array, csr_array

    form = _form(arrays.get("format"))
    makers = {"csr": csr_array, "csc": csc_array}
    if form not in makers or not {"indices", "indptr"} <= arrays.keys():
        raise InputError(f"{path} holds a sparse matrix in {form} form: save it as CSR or CSC.")
    try:
        shape = tuple(int(size) for size in arrays["shape"])
        if shape[:1] != labels:
            raise InputError(
                f"{path}: A has shape {shape} and b {labels}; rows and labels must fit."
            )
        A = makers[form]((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        A.check_format(full_check=True)
        return A.tocsr()
    except InputError:
        raise
    except Exception as error:  # SciPy raises what it likes for parts that do not fit
        raise InputError(f"{path}: its sparse matrix is damaged: {error}.") from None


def _form(stored: np.ndarray | None) -> str:
    """Return the name of a sparse matrix's form; CSR where none is stored."""
    if stored is None:
        return "csr"
    if stored.size != 1 or stored.dtype.kind not in "SU":
        return "an unknown"
    word = stored.item()
    return word.decode(errors="replace") if isinstance(word, bytes) else word
