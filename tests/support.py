"""What several test files do the same way."""

import copy
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import psutil
import scipy.sparse

from ode2opt import solve


def module_of(path):
    """A script of tools/ or docs/ as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder, *arguments):
    """Run git there, by an author of its own."""
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


def one_sentence(text):
    """Whether an error is told in one line, without a traceback."""
    return text.startswith("Error: ") and "Traceback" not in text and text.count("\n") == 1


PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


def visited(problem, x0, method, iterations):
    """The points of all iterations of a method that runs unwatched, 0 being the start."""
    points = []
    solve(
        problem, x0, method=method, tol=1e-15, max_iter=iterations, handover="none",
        callback=lambda progress: points.append(progress.x) and None,
    )  # fmt: skip
    return points


def random_sparse(rng, shape, density):
    """A sparse matrix of uniform numbers, as any version of SciPy makes it."""
    places = rng.choice(shape[0] * shape[1], int(density * shape[0] * shape[1]), replace=False)
    entries = scipy.sparse.coo_array((rng.random(len(places)), np.divmod(places, shape[1])), shape)
    return entries.tocsr()


def graded_rows(count=900, n=8, seed=0):
    """Rows and two classes; the columns' sizes fall from 1 to 1/100."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((count, n)) * np.logspace(0, -2, n)
    return A, (A @ np.logspace(0, 2, n) + 0.5 * rng.standard_normal(count) > 0).astype(float)


def said_without(module, code):
    """What an ImportError says when ``code`` runs in an interpreter that lacks a module."""
    script = (
        f"import sys; sys.modules['{module}'] = None\n"
        f"try:\n    {code}\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout


def interrupted(command):
    """What a command says when Ctrl-C ends it after three lines; no process of it is left."""
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert [run.stdout.readline() for _ in range(3)] == ["one\n"] * 3
        workers = psutil.Process(run.pid).children(recursive=True)
        os.killpg(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert (run.returncode, "Traceback" in err) == (1, False), err
    assert len(workers) >= 2
    assert not psutil.wait_procs(workers, timeout=10)[1]
    return err


def figures_of(page):
    """The figures that the text of a page carries."""
    begin = page.index('id="figures">') + len('id="figures">')
    return json.loads(page[begin : page.index("</script>", begin)])


def traces(view, plot=0):
    """How many curves a browser draws in a plot."""
    return view.locator(f"#plot-{plot} .scatterlayer .trace").count()


def wait_for_traces(view, count):
    """Wait until the first plot has so many curves."""
    view.wait_for_function(
        "count => document.querySelectorAll('#plot-0 .scatterlayer .trace').length === count",
        arg=count,
    )


def wait_for_plots(view, count):
    """Wait until the script has drawn so many plots."""
    view.wait_for_function(
        "count => document.querySelectorAll('.plot .modebar').length === count", arg=count
    )


def assert_drawn(view, page, viewport):
    """Every curve of a page is drawn, and no plot nor the page is wider than the screen."""
    figures = figures_of(page)
    wait_for_plots(view, len(figures))
    assert view.locator(".plot").count() == len(figures)
    for i, figure in enumerate(figures):
        assert traces(view, i) == len(figure["curves"]) > 0
        box = view.locator(f"#plot-{i} .main-svg").first.bounding_box()
        assert box["width"] <= viewport["width"]
        assert box["height"] > 200
    assert view.evaluate("document.documentElement.scrollWidth") == viewport["width"]


class Tally:
    """What a problem was asked for, in gradients; what an answer is made of counts once."""

    def __init__(self):
        self.calls, self.inside = 0.0, False

    def count(self, price, ask):
        if self.inside:
            return ask()
        self.inside = True
        try:
            return ask()
        finally:
            self.inside = False
            self.calls += price


def counting(problem):
    """The same problem with a ``tally`` of its own; on m of its N rows everything counts m/N."""
    kind = type(problem)

    def asked(name):
        def method(self, *args):
            price = self.hessian_flops() / self.gradient_flops() if name == "hessian" else 1
            share = self.rows / rows if rows else 1
            return self.tally.count(price * share, lambda: getattr(super(found, self), name)(*args))

        return method

    def curvature_operator(self, x):
        product, size = super(found, self).curvature_operator(x)
        return lambda v: self.tally.count(1, lambda: product(v)), size

    def _paper_bound(self):
        if rows and self.weights is None and not self.intercept:  # an eigenvalue of A^T A
            self.tally.calls += math.ceil(self.columns / 2)  # else by products that are counted
        return super(found, self)._paper_bound()

    def class_hessians(self, x, each=True):
        blocks = self.classes if each else 1
        price = 1 + blocks * self.extent().flops() / self.gradient_flops()
        return self.tally.count(price, lambda: super(found, self).class_hessians(x, each))

    names = ("value", "gradient", "value_and_gradient", "hvp", "hessian", "hessian_diagonal")
    names += tuple(name for name in ("gradient_error", "gram_product") if hasattr(kind, name))
    methods = {name: asked(name) for name in names}
    if problem.rows and problem.width > 1:
        methods["class_hessians"] = class_hessians
    methods |= {"curvature_operator": curvature_operator, "_paper_bound": _paper_bound}
    found, rows = type(kind.__name__, (kind,), methods), problem.rows
    counted = copy.copy(problem)
    counted.__class__, counted.tally = found, Tally()
    return counted


def write_table(frame, path, index=False):
    """Write a data frame by the ending of its path, which is returned."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=index)
    else:
        frame.to_csv(path, index=index, sep="\t" if path.suffix == ".tsv" else ",")
    return path
