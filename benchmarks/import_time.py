"""How long `import ode2opt` takes, in seconds: the best of several fresh interpreters."""

import subprocess
import sys

CODE = "import time; t = time.perf_counter(); import ode2opt; print(time.perf_counter() - t)"


def main() -> dict[str, float]:
    """Print and return the seconds."""
    runs = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    best = min(float(run.stdout) for run in runs)
    print(f"import_seconds: {best:.3f}")
    return {"import_seconds": best}


if __name__ == "__main__":
    main()
