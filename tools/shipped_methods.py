"""Learn the methods that come with the package: ``make methods``.

One run of ``ode2opt train --target sequence --split shuffled`` with its defaults for each of the
paper's twelve families, under runs/shipped; a run that is done is not repeated. Then the files go
to ode2opt/learned, with licence and origin, and their hashes into hashes.json there.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from ode2opt import Method
from ode2opt.solvers.methods import FOLDER, SUFFIX

PROBLEMS = ("logistic", "lpp")
DATASETS = ("mushrooms", "a5a", "w3a", "phishing", "separable", "covtype20k")
RUNS = Path("runs/shipped")
PROGRAM = "from ode2opt.cli import main; main()"
ORIGINS = {
    "separable": "drawn by ode2opt",
    "covtype20k": "the first 20,000 rows of covtype of the LIBSVM site",
}


def command(problem: str, dataset: str, run: Path) -> list[str]:
    """Return what learns one method."""
    options = ["--target", "sequence", "--split", "shuffled", "--out", str(run)]
    return ["ode2opt", "train", problem, dataset, *options]


def learned(problem: str, dataset: str) -> Method:
    """Return the method of a finished run, which is made if need be."""
    run = RUNS / f"{problem}-{dataset}"
    file = run / f"method{SUFFIX}"
    words = command(problem, dataset, run)
    if not file.exists() or not Method.load(file).provenance.get("finished"):
        resume = ["--resume"] if run.exists() else []
        subprocess.run([sys.executable, "-c", PROGRAM, *words[1:], *resume], check=True)
    method = Method.load(file)
    about = {
        "licence": "MIT",
        "data": ORIGINS.get(dataset, f"{dataset} of the LIBSVM site"),
        "command": " ".join(words[:-2]),
    }
    return method.replace(provenance=dict(method.provenance) | about)


def main() -> None:
    """Learn what is missing, then write files and hashes."""
    FOLDER.mkdir(exist_ok=True)
    hashes = {}
    for problem in PROBLEMS:
        for dataset in DATASETS:
            name = f"{problem}-{dataset}"
            method, file = learned(problem, dataset), FOLDER / f"{name}{SUFFIX}"
            method.save(file)
            hashes[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            print(f"{name}: {method.words}, {file.stat().st_size:,} bytes", flush=True)
    (FOLDER / "hashes.json").write_text(json.dumps(hashes, indent=1) + "\n")


if __name__ == "__main__":
    main()
