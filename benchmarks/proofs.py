"""Worst cases by chains of small matrix inequalities and exact proofs: seconds, and how right.

    python benchmarks/proofs.py [--record]

Seconds are those of one processor. The tables that are certified lie between Nesterov's and OGM's,
with every number moved by about 3% (seed 0). The second table compares with PEPit, with the theorem
and with changed proofs. It needs the extra ``test``.

--record keeps the tables of docs/certificates.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from recording import RECORD, Table, record

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from pep import pep_worst_case
from tampering import tampered

from ode2opt.base.errors import Ode2OptError
from ode2opt.proofs import check_proof
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.exact import classical_proof, exact_proof, monitored_proof
from ode2opt.proofs.theorem import classical_rows, member_of

STEPS = (20, 40, 80, 100, 160)
AGAINST_PEPIT = range(2, 16)
MEMBERS, CHANGED = 1_000, 2_000


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor's seconds, the least of three, and what was made."""
    found, made = [], None
    for _ in range(3):
        start = time.process_time()
        made = work()
        found.append(time.process_time() - start)
    return min(found), made


def moved_rows(steps: int, seed: int = 0) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return the mean of Nesterov's rows and OGM's, with every number moved a little."""
    rng = np.random.default_rng(seed)
    both = [np.array(classical_rows(name, steps), dtype=np.float64) for name in ("nag", "ogm")]
    rows = sum(both) / 2
    rows *= 1 + 0.03 * rng.standard_normal(rows.shape)
    return [(Fraction(m), Fraction(p), Fraction(q)) for m, p, q in rows.tolist()]


def seconds_table() -> Table:
    """Print how long certificates and proofs take."""
    table = Table("steps", "certificate and derivative, s", "exact proof, s", "its check, s",
                  "exact over floating point")  # fmt: skip
    for steps in STEPS:
        rows = moved_rows(steps)
        floats = np.array(rows, dtype=np.float64)
        certificate, found = seconds_of(lambda floats=floats: worst_case(floats, tail="ogm"))
        proof, proved = seconds_of(lambda rows=rows: exact_proof(rows, tail="ogm"))
        check, _ = seconds_of(lambda proved=proved: check_proof.bound(proved.proof))
        over = f"1 + {float(proved.tau) / found.tau - 1:.1e}"
        table.add(steps, f"{certificate:.3f}", f"{proof:.3f}", f"{check:.3f}", over)
    return table


def against_pepit(name: str) -> float:
    """Return the largest relative difference of the chain and PEPit for a method."""
    apart = []
    for N in AGAINST_PEPIT:
        rows = [[0.0, 1.0, 0.0]] * N if name == "gd" else classical_rows(name, N)
        exact = pep_worst_case(np.array(rows, dtype=np.float64).tolist())
        apart.append(abs(worst_case(np.array(rows, dtype=np.float64)).tau / exact - 1))
    return max(apart)


def members() -> tuple[int, float]:
    """Return how many random members exceed the theorem's bound, and the largest share of it."""
    rng, shares = np.random.default_rng(MEMBERS), []
    for _ in range(MEMBERS):
        R = int(rng.integers(2, 13))
        member = member_of(rng.normal(0, 2, R + 1), rng.normal(0, 3, R))
        last = np.append(member.rows()[:-1], [[0.0, 1.0, 0.0]], axis=0)  # f(y - g/L)
        shares.append(worst_case(last).tau / member.bounds()[-2])
    return sum(share > 1 + 1e-6 for share in shares), max(shares)


def changed_proofs() -> tuple[int, int, int]:
    """Return how many changed proofs are refused, accepted, and false."""
    rng = np.random.default_rng(CHANGED)
    originals = [
        classical_proof("ogm", 9), monitored_proof(7), exact_proof(moved_rows(8), tail="ogm"),
        exact_proof(moved_rows(8, 1), tail="nag"), exact_proof(moved_rows(8, 2)),
    ]  # fmt: skip
    refused = accepted = false = 0
    for k in range(CHANGED):
        text = tampered(originals[k % len(originals)].document, rng)
        try:
            proof = check_proof.read(text)
            tau = check_proof.bound(proof)
        except check_proof.Refused:
            refused += 1
            continue
        accepted += 1
        theta = None if proof.tail is None else proof.theta
        try:
            best = worst_case(
                np.array(proof.rows, dtype=np.float64),
                tail=proof.tail,
                star=proof.star,
                theta=theta,
            ).tau
        except Ode2OptError:  # no number to compare with: the bound says nothing either
            false += tau < 1000
            continue
        false += float(tau) < best * (1 - 1e-6) - 1e-9
    return refused, accepted, false


def agreement_table() -> Table:
    """Print how chain, PEPit, theorem and checker agree."""
    table = Table("what", "compared with", "result")
    span = f"PEPit, {AGAINST_PEPIT[0]} to {AGAINST_PEPIT[-1]} steps"
    for name in ("nag", "ogm", "gd"):
        table.add(name, span, f"largest relative difference {against_pepit(name):.1e}")
    violated, share = members()
    told = f"{violated} exceed its bound; the largest is {share:.6f} of it"
    table.add(f"{MEMBERS:,} random members", "the corrected Theorem 2", told)
    refused, accepted, false = changed_proofs()
    told = f"{refused:,} refused, {accepted:,} accepted, {false} with a false bound"
    table.add(f"{CHANGED:,} changed proofs", "the chain's value", told)
    return table


def main() -> None:
    """Print both tables."""
    tables = {"seconds": seconds_table(), "agreement": agreement_table()}
    if RECORD in sys.argv:
        record("proofs", tables)


if __name__ == "__main__":
    main()
