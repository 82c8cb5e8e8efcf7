"""Names on the API pages document every argument; examples run, and print what they say."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from public_names import public

import ode2opt
from ode2opt import Family, Logistic, Memory, Method, Problem, learn, solve
from ode2opt.paper import DefaultCoefficients

PACKAGE = Path(__file__).parents[1] / "ode2opt"
STEPS = re.compile(r"steps=[1-9]\d*")
TRAINS = re.compile(r"(>>>|\.\.\.) .*\blearn\(")


def with_examples():
    """The modules that show some; those that train run with the exhaustive tests."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ">>> " in text:
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            yield pytest.param(name, marks=[pytest.mark.exhaustive] * bool(TRAINS.search(text)))


class Lenient(doctest.OutputChecker):
    """An example that shows no output may have some."""

    def check_output(self, want, got, flags):
        return not want or super().check_output(want, got, flags)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What examples speak of: data, functions, models; a method's file and a run where they are."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 3))
    b = (A @ [1.0, -1.0, 0.5] + rng.standard_normal(60) > 0).astype(float)
    method = Method(DefaultCoefficients(2.0).schedule(30), "test", 1e-6, "family", 1.0)
    method.save("method.safetensors")
    return {
        "np": np, "ode2opt": ode2opt, "Path": Path, "minimize": scipy.optimize.minimize,
        "Family": Family, "Logistic": Logistic, "Memory": Memory, "Method": Method,
        "Problem": Problem,
        "learn": learn, "solve": solve, "A": A, "b": b, "X": A, "y": b, "method": method,
        "family": Family.from_arrays("logistic", A, b, size=20, l2=0.1),
        "x": np.zeros(3), "x0": np.ones(3), "problem": Logistic(A, b, l2=0.1),
        "problems": [Logistic(A[i:], b[i:], l2=0.1) for i in range(3)],
        "fun": lambda x: ((x - 1) ** 2).sum(), "gradient": lambda x: 2 * (x - 1),
    }  # fmt: skip


def optax_names():
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    return {
        "jax": jax, "optax": optax, "params": {"w": jax.numpy.ones(3)},
        "loss": lambda params: (params["w"] ** 2).sum(),
    }  # fmt: skip


def torch_names():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 1)

    def closure():
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    return {"model": model, "closure": closure}


def a_run():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((100, 3)), rng.integers(0, 2, 100).astype(float)
    family = Family.from_arrays("logistic", A, b, size=30, l2=0.1)
    learn(family, target="sequence", steps=0, validation=2, out="runs/logistic-a5a")
    return {}


def dask_names():
    module = pytest.importorskip("ode2opt.integrations.dask")
    return {"open_executor": module.open_executor, "Parts": ode2opt.Parts}


MORE = {
    "ode2opt.integrations.dask.clusters": dask_names,
    "ode2opt.integrations.dask.executor": dask_names,
    "ode2opt.integrations.optax": optax_names,
    "ode2opt.integrations.torch": torch_names,
    "ode2opt.study.run_report": a_run,
}


@pytest.mark.parametrize("module", [*with_examples()])
def test_the_examples_of_a_module_run(module, names):
    names |= MORE.get(module, dict)()
    found, said = importlib.import_module(module), []
    runner = doctest.DocTestRunner(Lenient(), verbose=False, optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(found, module, globs=names | vars(found)):
        for example in test.examples:
            example.source = STEPS.sub("steps=2", example.source)  # training is cut short
        runner.run(test, out=said.append)
    assert runner.tries > 0
    assert not said, "".join(said)


SHOWN = re.compile(r"^::: (\S+)(\n    options:\n      members: false$)?", re.MULTILINE)


def on_api_pages():
    """What docs/api shows, as the places where it is defined, and whether methods are shown.

    Of a class those above it, too.
    """
    for page in sorted((PACKAGE.parent / "docs" / "api").glob("*.md")):
        for name, alone in SHOWN.findall(page.read_text(encoding="utf-8")):
            found = pkgutil.resolve_name(name)
            homes = inspect.getmro(found) if inspect.isclass(found) else [inspect.unwrap(found)]
            own = [each for each in homes if each.__module__.startswith("ode2opt.")]
            paths = [each.__module__.partition(".")[2].replace(".", "/") for each in own]
            places = zip(paths, own, strict=True)
            yield [f"{path}.py: {each.__qualname__}" for path, each in places], not alone


def test_names_on_the_api_pages_document_every_argument():
    named = {each.place: each for each in public()}
    lacking = {}
    for places, members in on_api_pages():
        above = frozenset().union(*(named[at].documented for at in places if at in named))
        for place, each in named.items():
            if place in places or (members and place.rpartition(".")[0] in places):
                documented = above if each.is_class else each.documented
                lacking |= {place: each.takes - documented} if each.takes - documented else {}
    assert not lacking


def test_docstrings_document_no_argument_that_is_gone():
    assert not [f"{each.place}: {', '.join(sorted(each.gone))}" for each in public() if each.gone]
