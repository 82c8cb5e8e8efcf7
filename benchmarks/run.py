"""Run every benchmark: write benchmarks/results.json, {name: ratio}, and add to the history.

benchmarks/history.jsonl gets one line a run; the table that is printed at the end compares it with
the last run on the same machine.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import history

FOLDER = Path(__file__).parent
BENCHMARKS = ("import_time", "overhead", "stopm")


def main(benchmarks: tuple[str, ...] = BENCHMARKS, folder: Path = FOLDER) -> None:
    """Run them one after the other; results so far are written after each.

    Args:
        benchmarks: modules whose ``main()`` prints and returns {name: ratio}, lower is better.
        folder: where results.json and history.jsonl are.
    """
    path = folder / "history.jsonl"
    earlier = history.read(path)  # a damaged one is told before minutes of work
    results: dict[str, float] = {}
    for name in benchmarks:
        results |= import_module(name).main()
        (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    now = history.entry_of(results, FOLDER.parent)
    history.append(path, now)
    print("written to results.json; a line added to history.jsonl")
    print(history.comparison(history.last_on(now.machine, earlier), now))


if __name__ == "__main__":
    main()
