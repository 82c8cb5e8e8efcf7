"""Every option of learn, for every kind of run: something reads it, or it is refused by name."""

import sys
from dataclasses import fields

import numpy as np
import pytest

from ode2opt import L1, Family, InputError, Memory, learn, solve
from ode2opt.learning import FlowOptions, SequenceOptions
from ode2opt.learning.validation import Validation
from ode2opt.paper import Neural, Spline

KINDS = {
    "flow": {},
    "paper": {"protocol": "paper"},
    "sequence": {"target": "sequence"},
    "instant": {"target": "sequence", "steps": 0},
    "certified": {"target": "sequence", "certified": 2.0},
    "penalised": {"target": "sequence"},
}
FLOWS, EVERY = "flow paper", " ".join(KINDS)
TRAINED = "flow paper sequence"
TABLES = f"{TRAINED} certified penalised"
PRECONDITIONED = "sequence instant certified"

HONOURED = {
    "tol": (0.1, EVERY),
    "steps": (7, TABLES),
    "coefficients": ("proved", f"{TRAINED} penalised"),
    "scale": ({"flow": "family", "paper": "family", "": "instance"}, FLOWS),
    "metric": ("diagonal", PRECONDITIONED),
    "batch": (3, TABLES),
    "horizon": (50, TABLES),
    "seed": (1, EVERY),
    "blocks": ({"paper": True, "": False}, EVERY),
    "optimizer": ("adamw", TRAINED),
    "lr": (0.2, f"{TRAINED} penalised"),
    "momentum": (0.5, TRAINED),
    "decay": ("exponential", TRAINED),
    "decay_power": (0.6, TRAINED),
    "clip": (1.0, f"{TRAINED} penalised"),
    "penalty": (5.0, TRAINED),
    "penalty_growth": (1.5, TRAINED),
    "validate_every": (3, f"{TRAINED} penalised"),
    "validation": (3, EVERY),
    "patience": (3, f"{TRAINED} penalised"),
    "keep": ({"paper": "best", "": "last"}, FLOWS),
    "activation": ("relu", FLOWS),
    "alpha": (5.0, FLOWS),
    "learn_alpha": ({"paper": False, "": True}, FLOWS),
    "h": (0.05, FLOWS),
    "t0": (1.5, FLOWS),
    "substeps": (2, FLOWS),
    "C": (1.5, FLOWS),
    "kappa": (0.5, FLOWS),
    "lam": (4.0, FLOWS),
    "estimator": ("global", FLOWS),
    "safety": (1.5, FLOWS),
    "units": ({"paper": "free", "": "printed"}, FLOWS),
    "reference": ("path", PRECONDITIONED),
    "start": ("learned", PRECONDITIONED),
    "knots": (5, "sequence certified"),
    "margin": (0.1, "sequence"),
    "certified": (3.0, PRECONDITIONED),
    "tail": ("ogm", "certified"),
}
"""For each option a value that is not its default, and the kinds of runs that honour it."""
BESIDE = {
    "momentum": {"optimizer": "sgd"},
    "decay_power": {"decay": "theorem"},
    "activation": {"coefficients": "neural"},
    "patience": {"keep": "best"},
}
"""Without these nothing reads an option."""
IDLE = (
    ("flow", {"momentum": 0.5}, "momentum is for optimizer sgd, and optimizer is adam"),
    ("sequence", {"momentum": 0.5}, "momentum is for optimizer sgd"),
    ("flow", {"decay_power": 0.6}, "decay_power is for decay theorem, and decay is cosine"),
    ("flow", {"activation": "relu"}, "activation is for coefficients neural"),
    ("flow", {"keep": "last", "patience": 3}, "patience is for keep best, and keep is last"),
    ("paper", {"patience": 3}, "patience is for keep best"),
    ("sequence", {"metric": "none", "reference": "path"}, "reference is for metric auto"),
    ("instant", {"metric": "none", "reference": "path"}, "reference is for metric auto"),
    ("sequence", {"tail": "ogm"}, "give certified"),
    ("flow", {"coefficients": Spline(), "C": 1.5}, "C is for coefficients that training makes"),
    ("flow", {"coefficients": Neural(), "activation": "relu"}, "activation is for coefficients"),
    ("flow", {"coefficients": Spline(5.0), "alpha": 6.0}, "alpha is 6"),
)


class BeganError(Exception):
    """The options were taken: a first problem is drawn."""


def draw_nothing(rng):
    raise BeganError


def family_of(kind, family):
    return family.with_penalty(L1(0.01)) if kind == "penalised" else family


def value_for(name, kind):
    value = HONOURED[name][0]
    return value.get(kind, value[""]) if isinstance(value, dict) else value


def begin(kind, **options):
    """Ask for a run of a kind; its first problem ends it."""
    learn(family_of(kind, Family.from_sampler(draw_nothing)), **KINDS[kind] | options)


def test_the_table_has_every_option():
    declared = {each.name for kind in (FlowOptions, SequenceOptions) for each in fields(kind)}
    assert set(HONOURED) == declared - {"first"}  # what coefficients that are given become


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HONOURED)
def test_an_option_is_taken_or_refused_by_name(name, kind):
    value = value_for(name, kind)
    if kind in HONOURED[name][1].split():
        with pytest.raises(BeganError):
            begin(kind, **{name: value}, **BESIDE.get(name, {}))
    elif (name, kind) != ("steps", "instant"):  # which trains
        with pytest.raises(InputError, match=rf"\b{name}\b") as caught:
            begin(kind, **{name: value})
        assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("kind", "options", "said"), IDLE)
def test_an_option_that_another_one_leaves_idle_is_refused(kind, options, said):
    with pytest.raises(InputError, match=said):
        begin(kind, **options)


def test_a_memory_is_for_what_has_a_metric_and_brings_its_own():
    memory, problem = Memory(), small().sample(0)
    solve(problem, memory=memory, tol=1e-3)
    for kind, words in (("flow", "sequence"), ("paper", "flow"), ("penalised", "penalties")):
        options = KINDS[kind] if kind != "flow" else {"target": "flow"}
        with pytest.raises(InputError, match=words):
            learn(family_of(kind, small()), memory=memory, **options)
    for options in ({"metric": "diagonal"}, {"reference": "path"}, {"start": "paper"}):
        with pytest.raises(InputError, match=next(iter(options))):
            begin("instant", memory=memory, **options)
    for kind in PRECONDITIONED.split():
        with pytest.raises(BeganError):
            begin(kind, memory=memory, start="learned")


def small():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((160, 3)) * [1, 0.6, 0.3]
    b = (A @ np.ones(3) + rng.standard_normal(160) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=40, l2=0.02)


SHORT = {"steps": 1, "batch": 1, "validation": 1, "tol": 1e-2}
UPDATES = {"optimizer": "sgd", "decay": "theorem"}
RUNS = {
    "flow": SHORT | UPDATES | {"protocol": "paper", "keep": "best", "horizon": 100},
    "sequence": SHORT | UPDATES | {"target": "sequence", "metric": "diagonal", "horizon": 20},
    "instant": {"target": "sequence", "steps": 0, "validation": 1, "tol": 1e-2},
    "certified": SHORT | {"target": "sequence", "certified": 2.0, "horizon": 20, "steps": 6},
    "penalised": SHORT | {"target": "sequence", "horizon": 20},
}
"""One short run of each kind, with all that options need."""
COPIED = {"as_dict", "check_read", "__post_init__"}  # who looks at all options and uses none


@pytest.mark.parametrize("run", RUNS)
def test_what_is_taken_is_read(run, monkeypatch):
    names, read = set(HONOURED), set()

    def look(self, name):
        frame = sys._getframe(1)
        copied = frame.f_globals["__name__"] == "dataclasses" or frame.f_code.co_name in COPIED
        if name in names and not copied:
            read.add(name)
        return object.__getattribute__(self, name)

    for kind in (FlowOptions, SequenceOptions):
        monkeypatch.setattr(kind, "__getattribute__", look, raising=False)
    monkeypatch.setattr(Validation, "feasible", False)  # so that a penalty would have to grow
    first = lambda step: step.validation is not None  # noqa: E731
    learn(family_of(run, small()), callback=first, **RUNS[run])
    honoured = {name for name, (_, kinds) in HONOURED.items() if run in kinds.split()}
    assert honoured - read == set()


def test_the_command_line_says_the_same(run_cli, tmp_path):
    where = ("train", "logistic", "digits", "--out", tmp_path / "run", "--target", "sequence")
    for options, said in (
        (("--l1", 0.01, "--metric", "diagonal"), "metric is not read by a table for problems with"),
        (("--steps", 0, "--lr", 0.1), "lr is not read by an instant method"),
        (("--certified", 2, "--penalty", 1), "penalty is not read by a certified table"),
        (("--momentum", 0.5), "momentum is for optimizer sgd"),
    ):
        code, _, err = run_cli(*where, *options)
        assert code == 2
        assert said in " ".join(err.split())
        assert not (tmp_path / "run").exists()


def test_problems_with_a_penalty_are_made_of_blocks_too(monkeypatch):
    """--no-blocks is honoured: else every second training problem is a stretch of the file."""
    asked, real = [], Family.sample

    def sample(self, rng, **options):
        asked.append(bool(options.get("block")))
        return real(self, rng, **options)

    monkeypatch.setattr(Family, "sample", sample)
    for blocks in (True, False):
        asked.clear()
        learn(
            family_of("penalised", small()), callback=lambda step: True, blocks=blocks,
            **RUNS["penalised"],
        )  # fmt: skip
        assert any(asked) == blocks
