"""The report of a run: its contents, its refusals, and how a browser shows it."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from markupsafe import escape
from support import DESKTOP, PHONE, assert_drawn, figures_of, traces, wait_for_traces

from ode2opt import Family, InputError, learn
from ode2opt.proofs import check_proof
from ode2opt.proofs.confidence import Expectation
from ode2opt.proofs.exact import exact_proof
from ode2opt.proofs.table import exact_rows
from ode2opt.solvers import METHODS, Method
from ode2opt.study.prove import prove
from ode2opt.study.run_report import run_report

TOL = 1e-2


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short real run, of the shape of that in tests/learning/test_training.py."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((400, 5))
    b = (A @ rng.standard_normal(5) + rng.standard_normal(400) > 0).astype(float)
    folder = tmp_path_factory.mktemp("report") / "run"
    learn(
        Family.from_arrays("logistic", A, b, size=100, l2=0.02), out=folder, steps=4, horizon=80,
        coefficients="spline", validation=2, validate_every=2, tol=TOL,
    )  # fmt: skip
    return folder


@pytest.fixture
def copied(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


def row(reached, complexity):
    return {
        "measure_mean": -3.456, "measure_std": 0.1, "complexity_mean": complexity,
        "complexity_std": 2.0, "complexity_max": 50, "oracle_calls_mean": 12.4,
        "seconds_mean": 0.0123, "reached": reached, "diverged": 0, "handovers": 0,
    }  # fmt: skip


BENCHMARK = {"instances": 4, "methods": {"nag": row(3, 41.04), "learned": row(4, 20.0)}}
CURVES = {"nag": 0.9 ** np.arange(80), "learned": 0.8 ** np.arange(60), "gd": [1.0, np.inf]}


def test_statistics_certificate_and_provenance_are_those_of_the_method(run):
    text = run_report(run).html()
    method = Method.load(run / "method.safetensors")
    config = json.loads((run / "config.json").read_text())
    for sentence in method.certificate["verdict"]:
        assert str(escape(sentence)) in text
    assert f"{method.certificate['margins']['linear']:.4g}</td>" in text
    for part in ("validation", "test"):
        found = method.statistics[part]
        assert f"{found['complexity']:.4g}</td>" in text
        assert f"{found['reached']}/{found['total']}</td>" in text
    told = method.statistics["statistical"]
    assert method.certificate["statistical"] == told
    assert (told["problems"], told["tol"]) == (method.statistics["test"]["total"], TOL)
    assert f"Of this family {Expectation(**told).words()}." in text
    assert config["family"]["hash"] in text
    assert config["versions"]["jax"] in text
    for name in config["options"]:
        assert f"<dt>{name.replace('_', ' ')}</dt>" in text
    assert "not finished" not in text


WITHOUT_JAX = """
import sys
for name in ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "optax"):
    sys.modules[name] = None
from ode2opt.cli import main
main()
"""


def test_a_report_needs_no_jax(run, tmp_path):
    page = tmp_path / "report.html"
    arguments = ["report", str(run), "--out", str(page)]
    subprocess.run([sys.executable, "-c", WITHOUT_JAX, *arguments], check=True, capture_output=True)
    text, whole = page.read_text(encoding="utf-8"), run_report(run).html()
    titles = [[figure["y"]["title"] for figure in figures_of(each)] for each in (text, whole)]
    assert [title for title in titles[1] if title not in ("beta(t)", "gamma(t)")] == titles[0]
    assert "The curves of beta and gamma are left out." in text
    assert "pip install" in text


def test_every_report_shows_how_gradient_norms_fell_over_calls(run):
    """The last points are those of solves made here anew."""
    (figure,) = [
        one for one in figures_of(run_report(run).html()) if one["x"]["title"] == "oracle calls"
    ]
    method = Method.load(run / "method.safetensors")
    curves = {curve["name"]: curve for curve in figure["curves"]}
    assert list(curves)[:2] == ["learned", "L-BFGS"]
    assert figure["threshold"] == TOL
    fresh = {"learned": "method", "L-BFGS": "lbfgs", "auto": "auto"}
    for name, key in fresh.items():
        found = method.statistics["courses"][key]
        np.testing.assert_allclose(curves[name]["x"], found["calls"], rtol=1e-5)
        np.testing.assert_allclose(curves[name]["y"], found["norms"], rtol=1e-5)
        assert curves[name]["y"][-1] <= TOL < curves[name]["y"][0]
        assert np.all(np.diff(curves[name]["x"]) >= 0)
    firsts = [curve["y"][0] for curve in figure["curves"]]
    np.testing.assert_allclose(firsts, firsts[0], rtol=1e-5)  # all begin at one point


def test_damaged_expectations_are_told(copied):
    method = Method.load(copied / "method.safetensors")
    for damage in ({"share": 2.0}, {"calls": "many"}, {"problems": 0}, {"more": 1}):
        told = dict(method.statistics["statistical"]) | damage
        changed = method.replace(statistics=dict(method.statistics) | {"statistical": told})
        changed.save(copied / "method.safetensors")
        with pytest.raises(InputError, match="its statistics are damaged"):
            run_report(copied)


def test_damaged_gradient_curves_are_told(copied):
    method = Method.load(copied / "method.safetensors")
    for wrong in (3, {"lbfgs": {"calls": [1.0], "norms": []}}, {"lbfgs": {"calls": "x"}}):
        spoiled = method.replace(statistics={**method.statistics, "courses": wrong})
        spoiled.save(copied / "method.safetensors")
        with pytest.raises(InputError, match=r"courses|curve of lbfgs"):
            run_report(copied)


def test_the_plots_show_the_schedule_and_the_metrics(run):
    figures = figures_of(run_report(run).html())
    method = Method.load(run / "method.safetensors")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    by_label = {figure["y"]["title"]: figure["curves"] for figure in figures}
    for curve in by_label["a, c, d"]:
        np.testing.assert_allclose(curve["y"], getattr(method.schedule, curve["name"]), rtol=1e-5)
    h = method.formula.h
    np.testing.assert_allclose(
        h * np.array(by_label["beta(t)"][0]["y"]), method.schedule.a, rtol=1e-5
    )
    curves = {curve["name"]: curve for figure in figures for curve in figure["curves"]}
    for name in ("stopping_time", "loss"):
        known = [line for line in lines if line[name] is not None]
        curve = curves[name.replace("_", " ")]
        assert curve["x"] == [line["step"] for line in known]
        np.testing.assert_allclose(curve["y"], [line[name] for line in known], rtol=1e-5)
    assert len(curves["loss"]["x"]) == 4


def test_validations_are_drawn_where_they_were_made(copied):
    file = copied / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[1]["validation"], lines[3]["validation"] = 12.5, 11.0
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    figures = figures_of(run_report(copied).html())
    (curve,) = [c for figure in figures for c in figure["curves"] if c["name"] == "validation"]
    assert (curve["x"], curve["y"]) == ([1, 3], [12.5, 11.0])


def test_violations_that_are_zero_are_told_and_not_drawn(copied):
    file = copied / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]

    def names(Q):
        for i, line in enumerate(lines):
            line |= {"P": 0.0, "Q": Q * i, "penalty": 10.0}
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        text = run_report(copied).html()
        assert "<strong>Penalty.</strong> 10 throughout." in text
        return {curve["name"] for figure in figures_of(text) for curve in figure["curves"]}, text

    drawn, text = names(0.0)
    assert not drawn & {"P", "Q", "penalty"}
    assert "<strong>Violations P and Q.</strong> 0 throughout." in text
    drawn, text = names(0.5)
    assert drawn & {"P", "Q", "penalty"} == {"Q"}
    assert "P: 0 throughout.</figcaption>" in text


def test_a_comparison_marks_what_was_not_reached(run):
    text = run_report(run, benchmark=BENCHMARK).html()
    for cell in ("&gt;41.0 (2.0)", "&gt;50", "&gt;12", "&gt;12.3", "3/4", "20.0 (2.0)", "4/4"):
        assert f'<td class="number">{cell}</td>' in text


def test_gradient_norms_are_drawn_with_the_tolerance(run):
    figure = figures_of(run_report(run, curves=CURVES).html())[0]
    assert figure["threshold"] == TOL
    assert figure["y"]["log"]
    assert [curve["name"] for curve in figure["curves"]] == ["learned", "nag", "gd"]
    assert figure["curves"][2]["y"] == [1, None]


def first_line(text):
    return text.split('<p class="subtitle">')[1].split("</p>")[0]


def test_the_first_line_is_what_the_method_takes_beside_others(run):
    text, method = run_report(run).html(), Method.load(run / "method.safetensors")
    fresh = method.statistics["fresh"]
    assert first_line(text).startswith(
        f"On {fresh['problems']} fresh test problems it takes, beside L-BFGS, "
    )
    assert text.index("fresh test problems it takes") < text.index("<h2>")
    ratio = fresh["calls"]["lbfgs"] / fresh["calls"]["method"]
    times = f"{ratio:.1f} times fewer" if ratio > 1 else f"{1 / ratio:.1f} times more"
    assert f"beside L-BFGS, {times} gradients" in first_line(text)
    for name, calls in fresh["calls"].items():
        assert f"{calls:.4g}</td>" in text, name
        assert f"{1e3 * fresh['seconds'][name]:.4g}</td>" in text, name


@pytest.fixture(scope="module")
def instant(tmp_path_factory):
    """A run without steps."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((200, 5)) * [1, 1, 1, 0.1, 0.01]
    b = (A @ rng.standard_normal(5) + rng.standard_normal(200) > 0).astype(float)
    folder = tmp_path_factory.mktemp("report") / "instant"
    source = Family.from_arrays("logistic", A, b, size=40, l2=0.001)
    learn(source, out=folder, target="sequence", steps=0, validation=2, tol=TOL)
    return folder


def test_an_instant_method_is_not_reported_as_what_it_is_not(instant):
    text, method = run_report(instant).html(), Method.load(instant / "method.safetensors")
    assert first_line(text).startswith("On 20 fresh test problems it takes, beside L-BFGS, ")
    assert f"<dd>{method.words}</dd>" in text
    assert "There is no table of steps" in text
    assert "There is no table to certify" in text
    for promise in ("EIGAC", "spline coef", "linearly stable", "smallest margin", "Training found"):
        assert promise not in text
    labels = [figure["y"]["title"] for figure in figures_of(text)]
    assert labels == ["gradient norm", "length"]
    assert "No step is done yet" not in text


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """A short certified run, of the shape of that in tests/learning/test_certified.py."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((240, 5)) * np.logspace(0, -1, 5)
    b = (A @ np.ones(5) + rng.standard_normal(240) > 0).astype(float)
    folder = tmp_path_factory.mktemp("certified") / "run"
    learn(
        Family.from_arrays("logistic", A, b, size=40), out=folder, target="sequence", steps=4,
        certified=2.0, horizon=40, batch=1, validation=2, tol=1e-3, metric="none", knots=3,
    )  # fmt: skip
    return folder


def test_a_certified_run_shows_its_cap_its_exact_ratio_and_its_theorem(certified):
    text, method = run_report(certified).html(), Method.load(certified / "method.safetensors")
    ratio = check_proof.ratio(
        proof := check_proof.ExactProof(dict(method.proof)), check_proof.bound(proof)
    )
    (told,) = re.findall(r"<dd>([\d.]+) times Nesterov&#39;s bound</dd>", text)[1:]
    assert ratio <= Fraction(told) <= ratio + Fraction(1, 10**6)
    assert "<dd>2 times Nesterov&#39;s bound</dd>" in text
    assert text.count(str(escape(prove(method).found.words))) == 1
    assert "whose worst case over all smooth convex functions is below a cap" in text
    assert "ratio" in [figure["y"]["title"] for figure in figures_of(text)]
    assert "P + Q" not in text.partition("Training</h2>")[2]


def test_a_certified_run_with_the_proof_of_another_table_is_not_reported(certified, tmp_path):
    folder = shutil.copytree(certified, tmp_path / "copy")
    method = Method.load(folder / "method.safetensors")
    other = exact_proof(exact_rows(METHODS["nag"].schedule(12)))
    method.replace(proof=dict(other.document), monitored=None).save(folder / "method.safetensors")
    with pytest.raises(InputError, match=r"method.safetensors is damaged: .*another table"):
        run_report(folder)


def test_where_training_was_in_vain_the_report_says_so(instant, tmp_path):
    folder = shutil.copytree(instant, tmp_path / "copy")
    damage_options(folder, steps=100)
    assert "Training found no table that does clearly better" in run_report(folder).html()


def test_an_unfinished_run_says_so(copied):
    method = Method.load(copied / "method.safetensors")
    method.replace(
        certificate={}, provenance={**method.provenance, "finished": False},
        statistics={"validation": method.statistics["validation"]},
    ).save(copied / "method.safetensors")  # fmt: skip
    (copied / "metrics.jsonl").write_text("")
    text = run_report(copied).html()
    assert first_line(text).startswith("Training is not finished")
    assert "certified when training is finished" in text
    assert "No step is done yet" in text
    assert "fresh test problems" not in text


def test_a_schedule_without_coefficients_is_reported_too(copied):
    method = Method.load(copied / "method.safetensors").replace(formula=None)
    method.save(copied / "method.safetensors")
    labels = {figure["y"]["title"] for figure in figures_of(run_report(copied).html())}
    assert "a, c, d" in labels
    assert "beta(t)" not in labels


def damage_options(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config["options"] |= changes
    (folder / "config.json").write_text(json.dumps(config))


def damage_statistics(folder):
    method = Method.load(folder / "method.safetensors")
    damaged = dict(method.statistics) | {"fresh": {"problems": 3}}
    method.replace(statistics=damaged).save(folder / "method.safetensors")


DAMAGES = {
    "no folder": (shutil.rmtree, "There is no folder"),
    "no config": (lambda f: (f / "config.json").unlink(), "is no training run"),
    "no method": (lambda f: (f / "method.safetensors").unlink(), "has no method yet"),
    "no metrics": (lambda f: (f / "metrics.jsonl").unlink(), "metrics.jsonl is missing"),
    "config": (lambda f: (f / "config.json").write_text("{"), "config.json is damaged"),
    "sections": (lambda f: (f / "config.json").write_text("{}"), "is not of a run of ode2opt"),
    "option": (lambda f: damage_options(f, tol=-1), "config.json is damaged: tol is -1"),
    "kind of option": (lambda f: damage_options(f, coefficients=[]), "config.json is damaged"),
    "method": (
        lambda f: (f / "method.safetensors").write_bytes(b"no method"),
        "damaged or no method file",
    ),
    "statistics": (damage_statistics, "its statistics are damaged"),
    "line": (
        lambda f: (f / "metrics.jsonl").write_text('{"step"'),
        r"Line 1 of .*metrics\.jsonl is damaged",
    ),
    "bytes": (lambda f: (f / "metrics.jsonl").write_bytes(b"\xff\xfe"), "metrics.jsonl is damaged"),
    "value": (lambda f: (f / "metrics.jsonl").write_text('{"step": "a"}'), "step of line 1 is 'a'"),
}


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_no_run_or_damaged_is_told_in_a_sentence(copied, damage, sentence):
    damage(copied)
    with pytest.raises(InputError, match=sentence):
        run_report(copied)


def test_parameters_that_do_not_fit_their_kind_are_told(copied):
    method = Method.load(copied / "method.safetensors")
    unheard = replace(method.formula, kind="unheard")
    method.replace(formula=unheard).save(copied / "method.safetensors")
    with pytest.raises(InputError, match=r"method\.safetensors is no valid method: Unknown kind"):
        run_report(copied)


def test_the_command_writes_into_the_run_and_says_where(copied, run_cli):
    code, out, _ = run_cli("report", copied)
    assert code == 0
    assert str(copied / "report.html") in out
    assert (copied / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_the_command_writes_where_it_is_told(run, tmp_path, run_cli):
    code, _, _ = run_cli("report", run, "--out", tmp_path / "mine.html")
    assert code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine.html"]
    assert not (run / "report.html").exists()


def test_the_command_refuses_in_one_sentence(tmp_path, run, run_cli):
    code, out, err = run_cli("report", tmp_path)
    assert (code, out) == (2, "")
    assert "is no training run" in err
    code, _, err = run_cli("report", run, "--out", tmp_path)
    assert code == 2
    assert "is a folder" in err


def test_the_command_has_an_example(run_cli):
    assert "Example: ode2opt report" in run_cli("report", "--help")[1]


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    run_report(run, benchmark=BENCHMARK, curves=CURVES).save(file)
    return file.as_uri()


@pytest.fixture
def shown(opened, address):
    return partial(opened, address)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_within_the_screen(shown, run, viewport, scheme):
    view = shown(viewport=viewport, color_scheme=scheme)
    assert_drawn(view, run_report(run, benchmark=BENCHMARK, curves=CURVES).html(), viewport)


def test_a_method_is_hidden_and_shown_by_its_entry_in_the_legend(shown):
    view = shown(viewport=DESKTOP)
    entry = view.locator("#plot-0 .legend .traces", has_text="nag").locator(".legendtoggle")
    wait_for_traces(view, len(CURVES))
    entry.click()
    wait_for_traces(view, len(CURVES) - 1)
    view.wait_for_timeout(500)  # a second click sooner would be a double click
    entry.click()
    wait_for_traces(view, len(CURVES))


def test_colours_follow_the_system_and_keep_what_was_hidden(shown):
    view = shown(viewport=DESKTOP, color_scheme="light")
    view.locator("#plot-0 .legend .traces", has_text="nag").locator(".legendtoggle").click()
    wait_for_traces(view, len(CURVES) - 1)
    ground = "getComputedStyle(document.querySelector('#plot-0 .main-svg')).backgroundColor"
    assert view.evaluate(ground) == "rgb(255, 255, 255)"
    view.emulate_media(color_scheme="dark")
    view.wait_for_function(f"() => {ground} === getComputedStyle(document.body).backgroundColor")
    assert view.evaluate(ground) != "rgb(255, 255, 255)"
    assert traces(view) == len(CURVES) - 1


def test_hovering_shows_values_and_dragging_zooms(shown):
    view = shown(viewport=DESKTOP)
    area = view.locator("#plot-0 .nsewdrag")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    values = view.locator("#plot-0 .hovertext")
    for down in range(5, int(box["height"]), 5):  # until a curve is met
        view.mouse.move(x, box["y"] + down)
        if values.count():
            break
    assert values.first.text_content()
    before = view.evaluate("document.getElementById('plot-0').layout.xaxis.range[1]")
    view.mouse.move(x, y)
    view.mouse.down()
    view.mouse.move(x + box["width"] / 4, y + box["height"] / 4, steps=5)
    view.mouse.up()
    view.wait_for_function(
        "before => document.getElementById('plot-0').layout.xaxis.range[1] < before", arg=before
    )


def test_a_finger_scrolls_the_page_over_a_plot(shown):
    view = shown(viewport=PHONE, has_touch=True, is_mobile=True)
    view.locator("#plot-0").scroll_into_view_if_needed()
    box = view.locator("#plot-0 .nsewdrag").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = view.evaluate("scrollY")
    finger = view.context.new_cdp_session(view)

    def touch(kind, *points):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", {"x": x, "y": y})
    for up in range(0, 120, 10):
        touch("touchMove", {"x": x, "y": y - up})
    touch("touchEnd")
    view.wait_for_function("before => scrollY > before", arg=before)


def test_there_is_no_button_that_sends_a_plot_away(shown):
    titles = (
        shown(viewport=DESKTOP)
        .locator("#plot-0 .modebar-btn")
        .evaluate_all("buttons => buttons.map(button => button.dataset.title)")
    )
    assert len(titles) == 6
    assert not [title for title in titles if "hare" in title or "loud" in title]
