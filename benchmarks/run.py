"""Run every benchmark and write benchmarks/results.json: {name: ratio}."""

import json
from pathlib import Path

import import_time
import overhead
import stopm

RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    """Run them one after the other; results so far are written after each."""
    results: dict[str, float] = {}
    for benchmark in (import_time, overhead, stopm):
        results |= benchmark.main()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
