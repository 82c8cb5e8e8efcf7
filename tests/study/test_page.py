"""The page builder: what it writes, read back by Python's own HTML and JSON parsers."""

import base64
import gzip
import html
import json
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from support import said_without

from ode2opt import InputError
from ode2opt.base.terminal import out
from ode2opt.study.curves import Curve, Plot
from ode2opt.study.page import COLOURS, DASHES, Page
from ode2opt.study.tables import Sheet

EVIL = "</script><script>alert(1)</script>\u2028<!-- &"


class Elements(HTMLParser):
    """All elements of a page: tag, attributes, text."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))

    def handle_data(self, data):
        if self.found:
            self.found[-1][2].append(data)

    def of(self, tag):
        return [(attrs, "".join(text)) for name, attrs, text in self.found if name == tag]


def figures_of(page):
    data = [text for attrs, text in Elements(page.html()).of("script") if "type" in attrs]
    return json.loads(data[0])


def plotted(*curves, **options):
    page = Page("plots")
    page.add_plot(Plot("one", list(curves), x="k", y="value", **options))
    return page


def drawn(curve):
    return figures_of(plotted(curve))[0]["curves"][0]


def test_text_is_shown_as_it_is_and_never_becomes_markup():
    page = Page(EVIL, EVIL)
    page.add_heading(EVIL)
    page.add_text(EVIL)
    page.add_facts({EVIL: EVIL})
    page.add_table([EVIL], [[EVIL]], EVIL)
    page.add_bars(EVIL, {EVIL: 1.0}, {EVIL: EVIL}, EVIL)
    page.add_plot(Plot(EVIL, [Curve(EVIL, [0], [0])], x=EVIL, y=EVIL, caption=EVIL))
    page.add_plot(Plot(EVIL, [Curve(EVIL, [0], [1], EVIL)], x=EVIL, y=EVIL, caption=EVIL))
    elements = Elements(page.html())
    assert len(elements.of("script")) == 3  # data, plotly, the page's own
    for tag in ("title", "h1", "h2", "h3", "dt", "dd", "th", "td", "figcaption"):
        assert elements.of(tag)[0][1].strip() == EVIL
    shown = [text.strip() for _, text in elements.of("p")]
    assert shown == [EVIL] * 4 + [""]  # the last one begins with a title
    assert elements.of("strong")[0][1].strip() == f"{EVIL}. 0 throughout. {EVIL}"


def test_names_reach_the_script_whole_and_without_markup():
    curve = drawn(Curve(EVIL, [0], [1]))
    assert curve["group"] == EVIL
    assert "<" not in curve["name"]  # plotly reads tags in names
    assert html.unescape(curve["name"]) == EVIL


def test_an_empty_line_ends_a_paragraph():
    page = Page("title")
    page.add_text("one\nstill one\n\n  \ntwo\n")
    assert [text.strip() for _, text in Elements(page.html()).of("p")] == ["one\nstill one", "two"]


def test_nothing_is_fetched_and_the_policy_forbids_it():
    page = plotted(Curve("a", [0, 1], [1, 2]))
    elements = Elements(page.html())
    links = [
        attrs[key] for _, attrs, _ in elements.found for key in ("src", "href") if key in attrs
    ]
    assert links == ["data:,"]
    policies = [attrs["content"] for attrs, _ in elements.of("meta") if "http-equiv" in attrs]
    assert policies[0].startswith("default-src 'none';")


def unpacked(text):
    """The script of plotly that a page carries, as a browser unpacks it."""
    (packed,) = [text for attrs, text in Elements(text).of("script") if attrs.get("id") == "plotly"]
    return gzip.decompress(base64.b64decode(packed)).decode()


def test_plotly_comes_once_and_only_with_plots():
    page = Page("title")
    page.add_text("no plot")
    assert Elements(page.html()).of("script") == []
    for _ in range(3):
        page.add_plot(Plot("one", [Curve("a", [0, 1], [1, 2])], x="k", y="value"))
    script = unpacked(page.html())
    assert script.startswith("/**\n* plotly.js (basic - minified) v4")
    assert "Licensed under the MIT license" in script[:300]


def test_a_page_is_small():
    assert len(plotted(Curve("a", [0, 1], [1, 2])).html()) < 600_000


def test_a_page_of_many_long_curves_is_below_1500_kilobytes():
    page, rng = Page("a study"), np.random.default_rng(0)
    for points in [501] * 14 + [1001] * 4 + [150] * 14:
        curves = [Curve(f"method {i}", range(points), rng.random(points)) for i in range(7)]
        page.add_plot(Plot("one", curves, x="iteration", y="gradient norm", log_y=True))
    assert len(page.html().encode()) < 1_500_000


def test_looks_and_behaviour_are_files():
    page = plotted(Curve("a", [0, 1], [1, 2])).html()
    web = files("ode2opt.study") / "web"
    for name in ("page.css", "page.js"):
        assert (web / name).read_text() in page
    assert "Permission is hereby granted" in (web / "plotly-basic.LICENSE").read_text()


def test_numbers_keep_six_digits_and_what_is_not_finite_is_a_gap():
    curve = drawn(Curve("a", range(5), [1 / 3, np.nan, np.inf, -np.inf, 123456789.0]))
    assert curve["y"] == [0.333333, None, None, None, 123457000.0]


def test_a_long_curve_is_thinned_without_losing_ends_spikes_or_gaps():
    y = np.sin(np.arange(100_000) / 5000)
    y[12_345], y[77_777] = 50.0, -50.0
    y[30_000:40_000] = np.nan
    curve = drawn(Curve("a", np.arange(100_000), y))
    x = curve["x"]
    assert len(x) <= 300
    assert x == sorted(x)
    assert (x[0], x[-1]) == (0, 99_999)
    points = dict(zip(x, curve["y"], strict=True))
    assert (points[12_345], points[77_777]) == (50, -50)
    gap = [k for k, value in points.items() if value is None]
    assert gap
    assert all(30_000 <= k < 40_000 for k in gap)


def test_a_short_curve_keeps_every_point():
    assert len(drawn(Curve("a", range(300), np.arange(300)))["x"]) == 300


def test_one_name_looks_the_same_on_the_whole_page_and_two_names_differ():
    names = [f"method {i}" for i in range(len(COLOURS) * len(DASHES))]
    page = plotted(*(Curve(name, [0], [1]) for name in names))
    page.add_plot(
        Plot("again", [Curve(name, [0], [1]) for name in reversed(names)], x="k", y="value")
    )
    first, again = (
        {curve["name"]: (curve["colour"], curve["dash"]) for curve in figure["curves"]}
        for figure in figures_of(page)
    )
    assert first == again
    assert len(set(first.values())) == len(names)


def test_neighbours_differ_in_dash_so_that_grey_will_do():
    page = plotted(*(Curve(name, [0], [1]) for name in "abcdef"))
    assert len({curve["dash"] for curve in figures_of(page)[0]["curves"]}) == 6


def test_curves_of_one_name_share_a_group_unless_told_otherwise():
    figure = figures_of(
        plotted(Curve("a", [0], [1]), Curve("a", [0], [2]), Curve("b", [0], [3], "c"))
    )
    assert [curve["group"] for curve in figure[0]["curves"]] == ["a", "a", "c"]


def test_zeros_are_told_and_not_drawn():
    page = plotted(Curve("P", range(9), np.zeros(9)), caption="Stability.")
    text = page.html()
    assert '<p class="flat"><strong>one.</strong> 0 throughout. Stability.</p>' in text
    assert "plot-0" not in text
    page = plotted(Curve("P", range(9), np.zeros(9)), Curve("Q", range(9), np.arange(9.0)))
    assert [curve["name"] for curve in figures_of(page)[0]["curves"]] == ["Q"]
    assert ">P: 0 throughout.</figcaption>" in page.html()


def test_constants_and_nothing_are_told_and_not_drawn():
    assert "10 throughout." in plotted(Curve("a", range(3), [10, 10, 10])).html()
    assert "No value." in plotted(Curve("a", range(2), [np.nan, np.inf])).html()
    both = plotted(Curve("a", [0, 1], [2, 2]), Curve("b", [0, 1], [3, 3])).html()
    assert "a: 2 throughout; b: 3 throughout." in both


def test_a_constant_beside_what_varies_is_drawn():
    page = plotted(Curve("a", [0, 1], [2, 2]), Curve("b", [0, 1], [3, 4]))
    assert len(figures_of(page)[0]["curves"]) == 2


def test_a_curve_that_others_hide_is_wider_and_told():
    x = np.arange(50)
    y = 0.9**x
    page = plotted(Curve("a", x, y), Curve("b", x, 2 * y), Curve("c", x, 1.001 * y), log_y=True)
    widths = {curve["name"]: curve["width"] for curve in figures_of(page)[0]["curves"]}
    assert widths["a"] > widths["b"] == widths["c"]
    assert ">The curves of a and c coincide.</figcaption>" in page.html()


def test_curves_that_part_somewhere_do_not_hide_each_other():
    x = np.arange(50)
    page = plotted(Curve("a", x, 0.9**x), Curve("b", x, np.maximum(0.9**x, 0.1)), log_y=True)
    assert "coincide" not in page.html()


def test_the_longest_bar_fills_its_place():
    page = Page("title")
    page.add_bars("calls", {"ours": 12.5, "theirs": 50.0}, {"ours": "12.5", "theirs": ">50"})
    elements = Elements(page.html())
    assert [attrs["width"] for attrs, _ in elements.of("rect")] == ["25.0%", "100.0%"]
    assert [text for _, text in elements.of("th")] == ["ours", "theirs"]
    assert [text.strip() for attrs, text in elements.of("td") if attrs] == ["12.5", ">50"]


def test_axes_and_threshold_are_passed_on():
    curve = Curve("a", [1], [1])
    figure = figures_of(plotted(curve, log_x=True, threshold=3e-4, heights=(0.5, 2)))[0]
    assert figure["x"] == {"title": "k", "log": True}
    assert figure["y"] == {"title": "value", "log": False}
    assert figure["threshold"] == 3e-4
    assert figure["heights"] == [0.5, 2]


@pytest.mark.parametrize(
    "text",
    ["1", "-3.25", "1e-05", ">500", ">498.8 (2.9)", "-1.81 (0.041)", "6/6", "12%", "1,024", "-",
     "+.5", "3 ± 1"],
)  # fmt: skip
def test_numbers_stand_on_the_right(text):
    page = Page("title")
    page.add_table(["name", "value"], [["a", text]])
    elements = Elements(page.html())
    assert [attrs.get("class") for attrs, _ in elements.of("td")] == [None, "number"]
    assert [attrs.get("class") for attrs, _ in elements.of("th")] == [None, "number"]


@pytest.mark.parametrize("text", ["eigac-c1", "2 of 3", "a5a", "1.2.3", "--"])
def test_words_stand_on_the_left(text):
    page = Page("title")
    page.add_table(["value"], [[text]])
    assert Elements(page.html()).of("td")[0][0] == {}


def test_rows_that_begin_alike_belong_together():
    page = Page("title")
    page.add_table(["name", "value"], [["a", "1"], ["a", "2"], ["b", "3"], ["a", "4"]])
    rows = [attrs.get("class") for attrs, _ in Elements(page.html()).of("tr")]
    assert rows == [None, None, "again", None, None]


def test_a_table_may_be_empty():
    page = Page("title")
    page.add_table(["a", "b"], [])
    assert Elements(page.html()).of("td") == []


def test_what_does_not_fit_together_is_refused():
    page = Page("title")
    with pytest.raises(InputError, match="1 cells in a table of 2 columns"):
        page.add_table(["a", "b"], [["1"]])
    with pytest.raises(InputError, match="The curve nag has x of"):
        page.add_plot(Plot("one", [Curve("nag", [0, 1], [1])], x="k", y="value"))


def test_the_file_is_the_page(tmp_path):
    page = plotted(Curve("é", [0], [1]))
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html()


def test_without_jinja_the_error_is_the_line_that_installs_it():
    code = "from ode2opt.study.page import Page; Page('title').html()"
    assert "pip install 'ode2opt[study]'" in said_without("jinja2", code)


def test_a_table_is_shown_in_four_ways(capsys):
    sheet = Sheet(["method", "calls"], [["a_b", "> 3"], ["c", "-1"]], "Title", "50% of <x>", bold=0)
    assert sheet.markdown() == (
        "| method | calls |\n| --- | --- |\n| a_b | > 3 |\n| c | -1 |\n\n50% of <x>\n"
    )
    tex = sheet.latex("50% of <x>").splitlines()
    assert {r"a\_b & $>$ 3 \\", r"c & $-$1 \\", r"\caption{50\% of $<$x$>$}"} <= set(tex)
    page = Page("A page")
    sheet.add_to(page)
    assert "50% of &lt;x&gt;" in page.html()
    out.print(sheet.terminal())
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("Title", "a_b", "> 3", "50% of <x>"))
