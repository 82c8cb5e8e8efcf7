"""NumPy archives."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.data.files.cells import are_truths, as_labels
from ode2opt.data.files.columns import ReadOptions, check_matrix
from ode2opt.data.files.unpacking import MOST_TIMES, check_columns, check_content, largest_content
from ode2opt.data.table import DataTable

MATRIX, LABELS = ("A", "X"), ("b", "y")
SPARSE_PARTS = ("data", "indices", "indptr", "shape", "format")
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}  # version 3 is for names of fields, which are no plain arrays
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes


def read_npz(path: Path, wanted: ReadOptions) -> DataTable:
    """Read a NumPy archive with A and b (or X and y).

    A sparse A is stored by its parts, as ``scipy.sparse.save_npz`` names them (CSR or CSC). Other
    arrays are not read.
    """
    check_matrix(wanted, path)
    own = [name for name in (wanted.label, wanted.weights) if name is not None]
    names, arrays = read_arrays(path, (*MATRIX, *LABELS, *SPARSE_PARTS, *own))
    found = ", ".join(names[:8]) + ", ..." * (len(names) > 8) or "nothing"
    if not wanted.to_predict:
        _check_asked(path, wanted, arrays, found)
    label = next((name for name in (wanted.label, *LABELS) if name in arrays), None)
    b = None if label is None else arrays[label]
    A = next((arrays[name] for name in MATRIX if name in arrays), None)
    is_sparse = A is None and {"data", "shape"} <= arrays.keys()
    if (b is None and not wanted.to_predict) or (A is None and not is_sparse):
        labels = "" if wanted.to_predict else " and labels b (or y)"
        raise InputError(f"{path} must hold a matrix A (or X){labels}; it has {found}.")
    if is_sparse:
        A = _sparse(path, arrays)
    assert A is not None
    _check_shapes(path, A, b)
    if wanted.encoding is not None and A.shape[1] != wanted.encoding.width:
        raise InputError(
            f"{path}: A has {A.shape[1]} columns, but the model has {wanted.encoding.width}."
        )
    A = A.astype(np.float64) if A.dtype.itemsize > 8 else A
    return DataTable(
        A,
        None if b is None else as_labels(b),
        weights=_weights(path, arrays, wanted.weights, A.shape[0]),
        about={
            "label": wanted.label,
            "weights": wanted.weights,
            "truths": b is not None and b.dtype.kind in "bUO" and are_truths(b.tolist()),
        },
    )


def _check_asked(path: Path, asked: ReadOptions, arrays: dict[str, np.ndarray], found: str) -> None:
    for name in (asked.label, asked.weights):
        if name is not None and name not in arrays:
            raise InputError(f"{path} has no array '{name}': it has {found}.")
    if asked.drop or asked.only:
        raise InputError(
            f"{path}: the columns of an archive have no names: --drop and --columns are for CSV "
            f"and Parquet."
        )


def _check_shapes(path: Path, A: Array, b: np.ndarray | None) -> None:
    if A.ndim != 2 or (b is not None and (b.ndim != 1 or A.shape[0] != len(b))):
        other = "" if b is None else f" and b {b.shape}"
        raise InputError(f"{path}: A has shape {A.shape}{other}; rows and labels must fit.")
    if A.dtype.kind not in "fiub":
        raise InputError(f"{path}: A holds {A.dtype}, not real numbers.")
    check_columns(A.shape[1], path)


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
    """Return the names of all arrays, and some of the arrays; nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            wanted = {name: members[name] for name in asked if name in members}
            check_content(path, sum(one.file_size for one in wanted.values()))
            _check_declared(path, sum(_declared(archive, one) for one in wanted.values()))
            return list(members), {name: _array(archive, member) for name, member in wanted.items()}
    except InputError:
        raise
    except Exception:  # a damaged archive makes zipfile, zlib and NumPy raise what they like
        raise InputError(f"{path} is not a readable NPZ archive of plain arrays.") from None


def _declared(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the bytes that an array says it has; entries without width and empty axes count 1."""
    if member.compress_type not in COMPRESSIONS:
        raise ValueError(member.compress_type)
    with archive.open(member) as stream:
        shape, _, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
    return max(dtype.itemsize, 1) * math.prod(max(size, 1) for size in shape)


def _check_declared(path: Path, size: int) -> None:
    """Refuse arrays that a file of this size cannot mean, before they are made."""
    if size > largest_content(path):
        raise InputError(
            f"{path} says that its arrays take {size:,} bytes, more than {MOST_TIMES} times its "
            f"size: it is damaged."
        )


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    found = np.lib.format.read_array(BytesIO(archive.read(member)), allow_pickle=False)
    if found.dtype.hasobject or found.dtype.fields is not None or not _is_text(found):
        raise ValueError(found.dtype)
    return found


def _is_text(found: np.ndarray) -> bool:
    """Whether the characters of an array are Unicode: others cannot become a string."""
    if found.dtype.kind != "U" or not found.nbytes:
        return True
    codes = np.frombuffer(found.tobytes(), np.dtype(np.uint32).newbyteorder(found.dtype.byteorder))
    return bool(codes.max() <= sys.maxunicode)


def _sparse(path: Path, arrays: dict[str, np.ndarray]) -> Array:
    from scipy.sparse import csc_array, csr_array

    form = _form(arrays.get("format"))
    makers = {"csr": csr_array, "csc": csc_array}
    if form not in makers or not {"indices", "indptr"} <= arrays.keys():
        raise InputError(f"{path} holds a sparse matrix in {form} form: save it as CSR or CSC.")
    try:
        shape = tuple(int(size) for size in arrays["shape"])
        _check_declared(path, 8 * shape[0])  # rows are made of columns, each with where it begins
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
