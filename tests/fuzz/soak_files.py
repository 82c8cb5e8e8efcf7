"""Read spoiled files by the thousand, and count what comes of them.

Run `python tests/fuzz/soak_files.py [--count K] [--data K] [--first SEED]`: K spoiled methods,
memories, configurations and checkpoints, and K spoiled data files. Each is read in a child with
limited memory, and the memory that reading it took is measured. The exit code is 1 where a promise
is broken: an exception of another kind, a sentence over 300 characters or not printable, memory
beyond ten times the file plus 200 MB, a pickle that was run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it
from fuzz.mutations import STATE, File, Planted, faults, mutated, originals, use

TIMES, MORE = 10, 200 * 2**20
LIMIT = 6 * 2**30  # address space of a child
CHUNK = 2_500  # files a child


def memory(name: str) -> int:
    """Return a number of this process's memory, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise KeyError(name)


def forget_peak() -> None:
    """Set the largest memory so far back to the present one."""
    Path("/proc/self/clear_refs").write_text("5")


def read_one(file: File, folder: Path) -> dict[str, object]:
    """Return what came of one file."""
    forget_peak()
    before = memory("VmRSS")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sentence = use(file, folder)
    except Exception:
        return {"what": "exception", "about": traceback.format_exc(limit=-3)}
    taken = memory("VmHWM") - before
    if taken > TIMES * len(file.data) + MORE:
        return {"what": "memory", "about": f"{taken / 1e6:.0f} MB for {len(file.data)} bytes"}
    if sentence is not None and faults(sentence):
        return {"what": "sentence", "about": f"{faults(sentence)}: {sentence!r:.400}"}
    what = "valid" if sentence is None else "refused"
    return {"what": what, "length": len(sentence or ""), "taken": taken}


def child(kinds: list[str], first: int, count: int) -> None:
    """Read files first..first+count-1; one line of JSON each."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        known = [file for file in originals(folder) if file.kind in kinds]
        for file in known:
            assert use(file, folder) is None, file.name
        for seed in range(first, first + count):
            rng = np.random.default_rng(seed)
            file = mutated(rng, known[int(rng.integers(len(known)))])
            print(json.dumps({"seed": seed, "kind": file.kind, "file": file.name}), flush=True)
            found = read_one(file, folder)
            if (folder / Planted.mark).exists():
                found = {"what": "executed"}
            print(json.dumps(found), flush=True)


def children(kinds: list[str], first: int, count: int) -> Counter[str]:
    """Read all files, in children; prints what is broken and returns the counts."""
    counts: Counter[str] = Counter()
    longest = most = 0
    for begin in range(first, first + count, CHUNK):
        ask = [*kinds, "--first", str(begin), "--count", str(min(CHUNK, first + count - begin))]
        done = subprocess.run(
            [sys.executable, __file__, "--child", *ask], capture_output=True, text=True
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for case, found in zip(lines[::2], lines[1::2], strict=False):
            counts[found["what"]] += 1
            longest = max(longest, found.get("length", 0))
            most = max(most, found.get("taken", 0))
            if found["what"] not in ("valid", "refused"):
                print(f"BROKEN {case} {found['what']}: {found.get('about', '')}", flush=True)
        if done.returncode:
            counts["died"] += 1
            print(f"DIED ({done.returncode}) after {lines[-1:]}: {done.stderr[-800:]}", flush=True)
    print(
        f"{', '.join(kinds)}: {counts.total()} files, {counts['valid']} valid, "
        f"{counts['refused']} refused, {counts['exception']} exceptions of other kinds, "
        f"{counts['sentence']} bad sentences, longest {longest} characters, "
        f"{counts['memory']} beyond {TIMES} times the file plus {MORE // 2**20} MB (most taken "
        f"{most / 1e6:.0f} MB), {counts['executed']} executed, {counts['died']} children died"
    )
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help="method, memory, config, checkpoint, data")
    parser.add_argument("--count", type=int, default=20_000, help="of the files of methods to runs")
    parser.add_argument("--data", type=int, default=10_000, help="of data files")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.kinds, given.first, given.count)
        return 0
    began = time.perf_counter()
    counts: Counter[str] = Counter()
    for kinds, count in ((STATE, given.count), (("data",), given.data)):
        chosen = [kind for kind in kinds if not given.kinds or kind in given.kinds]
        if chosen and count:
            counts += children(chosen, given.first, count)
    print(f"{time.perf_counter() - began:.0f} s")
    return int(counts.total() > counts["valid"] + counts["refused"])


if __name__ == "__main__":
    sys.exit(main())
