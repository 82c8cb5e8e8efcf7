"""Figures 3 and 4: both protocols side by side, and what goes wrong is shown."""

import html
from typing import ClassVar

import numpy as np
import pytest
from support import figures_of

from ode2opt import Family, Lpp
from ode2opt.learning.flow.smoothness import SCATTER_METHODS
from ode2opt.paper.conditions import contraction as contraction_of
from ode2opt.study.page import Page
from ode2opt.study.reproduction import cells, contraction, plan, running
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.figures import add_figures, make_figures
from ode2opt.study.reproduction.findings import Findings
from ode2opt.study.reproduction.plan import Effort, Item
from ode2opt.study.reproduction.report import write_report

SEED = 0


def test_the_papers_options_are_sixty_epochs_and_eighty_where_they_are_followed():
    full, quick = plan.FULL, plan.QUICK
    followed, other = Item("protocol", "lpp", "a5a"), Item("protocol", "logistic", "w3a")
    assert full.paper_options(other)["steps"] == 60 * 6
    assert quick.paper_options(other)["steps"] == 60
    assert full.paper_options(followed)["steps"] == quick.paper_options(followed)["steps"] == 480
    assert full.paper_options(other)["protocol"] == "paper"
    assert running.cost_of([followed, other], quick) == 480 + 60


def test_figure_4_comes_after_both_trainings_of_its_cell():
    work = plan.work_behind(("fig4",), ("a5a", "w3a"))
    assert [item.kind for item in work] == ["training", "protocol", "contraction"]
    kinds = {item.kind for item in plan.work_behind(("fig3",), ("a5a",))}
    assert kinds == {"training", "protocol"}


def test_the_mean_curvature_of_a_segment_is_that_of_the_averaged_hessian():
    rng = np.random.default_rng(0)
    problem = Lpp(rng.standard_normal((60, 12)), rng.standard_normal(60))
    here, there = rng.standard_normal((2, 12))
    nodes, weights = np.polynomial.legendre.leggauss(5)  # exact far beyond what is needed
    points = [here + (1 + node) / 2 * (there - here) for node in nodes]
    mean = sum(w / 2 * problem.hessian(x) for w, x in zip(weights, points, strict=True))
    top = np.linalg.eigvalsh(mean)[-1]
    assert contraction.mean_curvature(problem, here, there) == pytest.approx(top, rel=1e-6)
    assert not np.isclose(np.linalg.eigvalsh(problem.hessian(there))[-1], top, rtol=1e-2)
    assert np.isnan(contraction.mean_curvature(problem, here, there + np.inf))


def test_numbers_of_a_run_end_where_it_leaves():
    norms = np.array([1.0, 0.1, 0.01, 0.5, 6.0, 1e9])
    k, rho = np.arange(6), np.array([0.5, 0.9, 1.2, 1.4, 3.0, 1e9])
    C = np.array([-1.0, -0.5, -0.1, 0.2, 4.0, 1e9])
    found = contraction.extremes(norms, k, rho, C)
    assert (found["left"], found["least_norm"]) == (4, 0.01)
    assert found["rho"] == {"largest": 1.4, "at": 3, "above": 2, "first": 2}
    assert found["C"] == {"largest": 0.2, "at": 3, "above": 1, "first": 3}
    calm = contraction.extremes(norms[:3], k[:3], rho[:3] / 2, C[:3])
    assert calm["left"] is None
    assert calm["C"]["first"] is calm["rho"]["first"] is None


# Drawn from results that are given ---------------------------------------------------------------


def line(rho, C, left=None):
    """A line of figure 4 that reaches some rho and C at iteration 300."""
    k = np.arange(0, 500, 5)
    bump = np.exp(-(((k - 300) / 50) ** 2))
    norms = np.geomspace(1, 1e-5, 501) if left is None else np.geomspace(1, 1e-5, left + 1)
    norms = norms if left is None else np.append(norms, np.geomspace(1e-5, 1e3, 500 - left))
    values = {"rho": 0.9 + (rho - 0.9) * bump, "C": -0.5 + (C + 0.5) * bump}
    return {
        "grad_norm": norms.tolist(), "handovers": [], "k": k.tolist(), "B": (0.1 * bump).tolist(),
        "extremes": contraction.extremes(norms, k, values["rho"], values["C"]),
    } | {name: found.tolist() for name, found in values.items()}  # fmt: skip


def training(reached):
    steps = len(reached)
    times = [6.0 - 0.1 * i if met else None for i, met in enumerate(reached)]
    columns = {"step": list(range(steps)), "stopping_time": times, "reached": reached}
    columns |= {"P": [0.5 + i for i in range(steps)], "Q": [0.0] * steps}
    curve = [1.0, 2.0, 4.0]
    return {
        "steps": columns, "options": {"t0": 1.0}, "horizon": 3, "certificate": {"verdict": ["x."]},
        "curves": dict.fromkeys(("k", "t", "beta", "gamma", "a", "c", "d"), curve),
    }  # fmt: skip


class Stored:
    """A store whose results are given."""

    identity: ClassVar = {"ode2opt": "", "code": "", "packages": {}}
    calm = {name: line(0.95, -0.2) for name in ("default", "early", "last", "relay")}  # noqa: RUF012
    made: ClassVar = {
        "contraction": {
            "protocols": {"paper": calm | {"last": line(1.77, 0.51, left=340)}, "ours": calm}
        },
        "protocol": training([1, 1, 0, 1, 1]),
        "training": training([2, 2, 2, 2, 2]),
        "smoothness": {
            "points": {name: [[1.0, 2.0], [0.1, 0.3]] for name in SCATTER_METHODS},
        },
    }

    def load(self, item):
        return self.made.get(item.kind)


@pytest.fixture
def findings():
    return Findings(Stored(), Effort(mark="quick: given"), ("a5a",), ("fig3", "fig4"))


def test_figure_4_names_the_largest_factor_and_where_it_is(findings):
    axes = make_figures(findings)["fig4_contraction"].axes
    protocols = ("the paper's protocol", "ours")
    assert [one.get_title() for one in axes[:2]] == [f"{one}: gradient norm" for one in protocols]
    assert axes[2].get_title().endswith("\nlargest: 1.77 (last, k = 300)")
    assert axes[4].get_title().endswith("\nlargest: 0.51 (last, k = 300)")
    assert axes[3].get_title().endswith("\nlargest: 0.95 (default, k = 300)")
    for left, right in zip(axes[::2], axes[1::2], strict=True):
        assert left.get_ylim() == right.get_ylim()
    assert len(axes[0].lines) == 4 + 1  # and the tolerance


def test_figure_3_marks_steps_whose_flow_did_not_get_there(findings):
    axes = make_figures(findings)["fig3_training"].axes
    assert axes[0].get_title() == "logistic, the paper's protocol: stopping time"
    assert axes[1].get_title() == "logistic, ours: stopping time"
    crosses = [one for one in axes[0].lines if one.get_marker() == "x"]
    assert [list(one.get_xdata()) for one in crosses] == [[3]]
    assert not [one for one in axes[1].lines if one.get_marker() == "x"]


def test_the_page_tells_what_the_paper_shows_and_what_is_seen_here(findings):
    page = Page("test")
    add_figures(page, findings)
    text = page.html()
    assert "because the contraction factor rises above 1 after 330 iterations" in text
    assert "The default here has C = 3.956, the largest that meets" in text
    assert "rho is at most 1.77, at iteration 300 (above 1 first at" in text
    assert "C is at most 0.51, at iteration 300 (above 0 first at" in text
    assert "it leaves at iteration" in text
    assert "Steps whose flow did not reach the tolerance: 1 of a5a." in text
    assert "the paper's protocol: contraction factor, top mode" in html.unescape(text)
    assert "lpp, ours: stopping time" in text
    assert len(figures_of(text)) == 2 * 2 * 2 + 2 * 4


def test_the_report_has_figures_2_3_and_4():
    outputs = ("fig2", "fig3", "fig4")
    text = write_report(Findings(Stored(), Effort(), ("a5a",), outputs), {}, []).html()
    for heading in ("curvature against gradient norm", "training", "lpp a5a, followed"):
        assert f": {heading}</h2>" in text
    assert "logistic separable" in text
    assert "lpp mushrooms" in text


def test_a_training_that_had_to_end_is_drawn_and_told(findings):
    broken = training([1, 1, 1]) | {"broken_off": "alpha is 0.5: it must be above 1."}
    findings.store.made = Stored.made | {"protocol": broken}
    axes = make_figures(findings)["fig3_training"].axes
    assert [one.get_marker() for one in axes[2].lines].count("X") == 1
    page = Page("test")
    add_figures(page, findings)
    assert "a5a ended after 3 steps: alpha is 0.5: it must be above 1." in page.html()


@pytest.mark.exhaustive
def test_both_protocols_are_trained_and_followed(tmp_path):
    short = {"steps": 3, "validate_every": 1, "validation": 2, "batch": 1, "tol": 2e-2}
    effort = Effort(instances=2, training=short, protocol=short, curvature_every=20)
    cell = ("lpp", "breast_cancer")
    store = Store(tmp_path / "cache", {}, {cell: "x"})
    for kind in ("training", "protocol"):
        item = Item(kind, *cell)
        made = getattr(cells, kind)(store, effort, item)
        store.save(item, made)
        assert len(made["steps"]["step"]) == 3
        assert made["options"].get("protocol") == ("paper" if kind == "protocol" else None)
    found = contraction.contraction(store, effort, Item("contraction", *cell))["protocols"]
    problem = Family.from_dataset(*cell, split="paper").sample([SEED, 0], part="test")
    first = found["paper"]["default"]
    schedule = contraction.Subject(contraction.Default(3.956), problem.start().L).schedule()
    x0 = problem.start().x0  # flow and sequence start there
    curvature = np.linalg.eigvalsh(problem.hessian(x0))[-1]
    expected = contraction_of(schedule.a[:1], schedule.c[:1], schedule.d[:1], np.array([curvature]))
    assert first["rho"][0] == pytest.approx(float(expected.rho[0]), rel=1e-5)
    assert set(found["ours"]) == {"default", "early", "last", "relay"}
