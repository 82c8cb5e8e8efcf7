"""Draw the pictures of the documentation anew: measured, a few seconds.

python benchmarks/pictures.py
"""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from ode2opt import Family, Memory, solve

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SOLVES, TOL = 40, 1e-4
TICKS = (20, 50, 100, 200, 500)
GREY = "#808080"  # reads on white and on black


def stream() -> Figure:
    """Gradients of each solve of a stream: L-BFGS, auto, and a memory with its learning."""
    family, memory = Family.from_dataset("logistic", "digits", split="shuffled"), Memory()
    problems = [family.sample(i) for i in range(SOLVES)]
    calls = {
        "L-BFGS": [solve(each, method="lbfgs", tol=TOL).oracle_calls for each in problems],
        "auto": [solve(each, tol=TOL).oracle_calls for each in problems],
        "memory": [solve(each, memory=memory, tol=TOL).oracle_calls for each in problems],
    }
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    looks = {"L-BFGS": ("#E69F00", "s"), "auto": ("#56B4E9", "^"), "memory": ("#009E73", "o")}
    for name, values in calls.items():
        colour, marker = looks[name]
        axes.plot(range(1, SOLVES + 1), values, marker, color=colour, markersize=4, label=name)
    axes.set_yscale("log")
    axes.set_yticks(TICKS, map(str, TICKS))
    axes.minorticks_off()
    axes.set_xlabel("solve", color=GREY)
    axes.set_ylabel("gradients", color=GREY)
    axes.tick_params(colors=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    figure.legend(frameon=False, labelcolor=GREY, loc="outside upper right", ncols=3)
    return figure


if __name__ == "__main__":
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ode2opt"}):
        stream().savefig(PICTURES / "stream.svg", transparent=True, metadata={"Date": None})
