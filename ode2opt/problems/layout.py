"""A second copy of a sparse matrix, by columns, where products with it are quicker."""

from __future__ import annotations

import numpy as np

from ode2opt.base.arrays import Array

# Rows of few entries, and never as many as in the row before, are loops whose end no processor can
# foresee: it loses some 4 ns a row. Columns are long loops. Measured on made matrices of 5,000 to
# 200,000 rows with 4 to 40 entries each (AMD EPYC): products take 0.3 to 0.75 of the time up to 16
# entries a row, and the copy is paid for after one to four evaluations.
MOST_A_ROW = 16
LEAST_A_COLUMN = 64
FEWEST_ENTRIES = 100_000  # of a smaller matrix the copy takes as long as it saves
VARYING = 0.5  # of the rows, with another number of entries than the one before


def by_columns(A: Array) -> Array | None:
    """Return a CSR matrix by columns (CSC) where that multiplies quicker; else None.

    It is quicker for tall matrices whose rows have few entries, now more and now less.
    """
    (N, n), entries = A.shape, A.nnz
    if not (max(FEWEST_ENTRIES, LEAST_A_COLUMN * n) <= entries <= MOST_A_ROW * N):
        return None
    counts = np.diff(A.indptr)
    varying = np.count_nonzero(counts[1:] != counts[:-1]) > VARYING * N
    return A.tocsc() if varying else None
