"""What a fresh interpreter pays: seconds of `import ode2opt`, and its first solve over the second.

The first solve is that of a small logistic problem (569 x 30), made anew each time; CPU seconds.
"""

import subprocess
import sys
from statistics import median

RUNS = 15
CODE = """
import time
began = time.perf_counter()
import ode2opt
print(time.perf_counter() - began)
import numpy as np
rng = np.random.default_rng(0)
A = rng.standard_normal((569, 30))
b = (A @ rng.standard_normal(30) + rng.standard_normal(569) > 0).astype(float)
for _ in range(2):
    began = time.process_time()
    ode2opt.solve(ode2opt.Logistic(A, b, l2=1e-3))
    print(time.process_time() - began)
"""


def main() -> dict[str, float]:
    """Print and return the least seconds of the import, and the median ratio of the solves."""
    runs = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
        for _ in range(RUNS)
    ]
    numbers = [tuple(map(float, run.stdout.split())) for run in runs]
    found = {
        "import_seconds": min(seconds for seconds, _, _ in numbers),
        "first_solve": median(first / second for _, first, second in numbers),
    }
    for name, number in found.items():
        print(f"{name}: {number:.3f}")
    return found


if __name__ == "__main__":
    main()
