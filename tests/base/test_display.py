"""How results, methods, memories, problems and families show themselves."""

import math
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse

from ode2opt import (
    Family,
    Huber,
    Logistic,
    Lpp,
    Memory,
    Method,
    Model,
    Parts,
    Poisson,
    Problem,
    Quadratic,
    Schedule,
    Softmax,
    solve,
)
from ode2opt.base.display import Listing, html_table, vector_words
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.models.model_file import Fit
from ode2opt.problems.parts import Block
from ode2opt.problems.quality import Quality
from ode2opt.problems.transformed import Transformed
from ode2opt.proofs.certificate import Certificate, Condition

HOSTILE = "</td></table><script>alert('1')</script><img src=x onerror=\"y\"> & \x1b[2J"
RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 4))
B = (A @ np.ones(4) + RNG.standard_normal(60) > 0).astype(float)


class Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = set(), set(), "", []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f"{data}\n"


def read(shown):
    """The text of an object's table, which is well-formed and has no tags but a table's."""
    page = Reader(shown._repr_html_())
    assert not page.open
    assert page.tags <= {"table", "thead", "tbody", "tr", "th", "td"}
    assert page.attributes <= {"class", "colspan", "style"}
    assert page.text.replace("\n", "").isprintable()
    return page.text


def hostile_function():
    function = lambda x: float(x @ x)  # noqa: E731
    function.__name__ = HOSTILE
    return Problem.from_function(function, lambda x: 2 * x, n=3)


class FromFile:
    """A part whose file has a bad name."""

    name, bytes = HOSTILE, 100

    def read(self):
        return Block(A, B)


def fitted(name="age", label="y", classes=("no", "yes"), **options):
    """A model of five columns, one of them called ``name``."""
    columns = [ColumnEncoding(each) for each in ("a", "b", "c", "d", name)]
    header = (*(column.name for column in columns), label)
    encoding = TableEncoding(5, tuple(columns), header=header, named=True, label=label)
    coef = np.array([[0.1, -3.0, 0.2, 0.4, 2.0]])
    return Model("logistic", coef, np.array([0.5]), encoding, np.array(classes), **options)


def certificate(method):
    conditions = {
        "stability": Condition(0.25, 1.5, 3, 4, 5),
        "linear": Condition(-0.5, 2.0, 1, 3, 5),
    }
    trace = tuple(np.arange(9999.0) for _ in range(4))
    return Certificate(method, 5, conditions, None, None, "power", (trace,), (1.0, 2.0))


@pytest.mark.parametrize(
    "shown",
    [
        Method(Schedule([0.5], [0.5], [1]), HOSTILE, 1e-4, provenance={"command": HOSTILE},
               statistics={"fresh": {"calls": {HOSTILE: 1.0}}}, certificate={"levels": HOSTILE}),
        hostile_function(),
        Parts(Logistic, [FromFile()]),
        Family(HOSTILE, lambda rng, part: None),
        certificate(HOSTILE),
        fitted(name=HOSTILE),
        fitted(label=HOSTILE),
        fitted(classes=("no", HOSTILE)),
    ],
    ids=lambda shown: type(shown).__name__,
)  # fmt: skip
def test_a_hostile_name_is_text_in_html_and_printable_on_a_prompt(shown):
    assert "<script>alert('1')" in read(shown)
    assert repr(shown).isprintable()


def test_every_cell_of_a_table_is_escaped():
    page = Reader(html_table(Listing(HOSTILE, [(HOSTILE, HOSTILE)])))
    assert page.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    assert page.text.count('<img src=x onerror="y"> & \\x1b[2J') == 3


def test_a_long_text_is_cut():
    page = Reader(html_table(Listing("t", [("a", "é" * 10_000)])))
    assert max(map(len, page.text.splitlines())) == 300
    assert page.text.rstrip().endswith(" ...")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Logistic(A, B), "Logistic(60 rows x 4 columns)"),
        (
            Logistic(scipy.sparse.csr_matrix(A), B, l2=1e-3, intercept=True),
            "Logistic(60 rows x 4 columns, matrix = sparse, l2 = 0.001, intercept = yes)",
        ),
        (Lpp(A, B, p=8), "Lpp(60 rows x 4 columns, p = 8)"),
        (
            Softmax(A, B, classes=3, intercept=True),
            "Softmax(60 rows x 4 columns, intercept = yes, classes = 3)",
        ),
        (
            Huber(A, B, delta=2.5, weights=np.ones(60), offset=B),
            "Huber(60 rows x 4 columns, delta = 2.5, weights = yes, offset = yes)",
        ),
        (
            Poisson(A.astype(np.float32), B.astype(np.float32)),
            "Poisson(60 rows x 4 columns, numbers = float32)",
        ),
        (Quadratic(np.eye(3), np.ones(3), l2=0.5), "Quadratic(3 variables, l2 = 0.5)"),
        (
            Transformed(Quadratic(np.eye(1), np.ones(1)), np.eye(1)),
            "Transformed(1 variable, of = Quadratic(1 variable))",
        ),
        (
            Parts(Logistic, [(A[:10], B[:10]), (A[10:], B[10:])], l2=0.5),
            "Parts(Logistic, size = 60 rows x 4 columns, l2 = 0.5, parts = 2, "
            "held by = LocalExecutor)",
        ),
        (
            Problem.from_function(math.dist, np.sin, n=2, hvp=np.hypot),
            "FunctionProblem(2 variables, function = dist, "
            "gradient and Hessian-vector product = given)",
        ),
    ],
)  # fmt: skip
def test_a_problem_says_its_kind_and_size(problem, words):
    assert repr(problem) == words
    assert problem.kind in read(problem)


def test_a_problem_that_was_never_finished_has_a_repr():
    assert "Logistic object at" in repr(Logistic.__new__(Logistic))


def test_a_problem_of_jax_arrays_is_shown_under_transformations():
    """The matrix is a tracer there, and may be anything while a tree is taken apart."""
    import jax

    from ode2opt.paper import to_jax

    seen = []
    twin = to_jax(Logistic(A, B, l2=1e-3))
    jax.eval_shape(lambda problem: seen.append(repr(problem)), twin)
    jax.tree.map(lambda _: None, twin, is_leaf=lambda leaf: False)
    emptied = jax.tree.unflatten(jax.tree.structure(twin), [object()] * len(jax.tree.leaves(twin)))
    assert {*seen, repr(twin), repr(emptied)} == {"Logistic(60 rows x 4 columns, l2 = 0.001)"}


def test_a_family_says_where_its_problems_come_from():
    family = Family.from_arrays("lpp", A, B, size=9, p=6)
    assert repr(family) == (
        "Family(lpp, rows a problem = 9, drawn from = 36 + 24 rows (train + test), 4 columns, "
        "p = 6)"
    )
    assert "36 + 24 rows" in read(family)

    def from_the_lake(rng):
        return Logistic(A, B)

    assert repr(Family.from_sampler(from_the_lake)) == "Family(sampler, drawn by = from_the_lake)"


def test_a_result_prints_no_long_x():
    n = 100_000
    problem = Quadratic(scipy.sparse.identity(n, format="csr"), np.arange(n, dtype=float) / n)
    result = solve(problem, tol=1e-9)
    norm = float(np.linalg.norm(problem.b))
    line = f"100,000 numbers, norm {norm:.4g}: 0, 1e-05, 2e-05, 3e-05, ..."
    assert len(repr(result)) < 200
    assert "x of 100,000 numbers" in repr(result)
    assert len(str(result)) < 1000
    assert [words for words in str(result).splitlines() if words.endswith(line)]
    for text in (str(result), read(result)):
        assert result.message in text
        assert result.method in text
        assert "(asked for: 1e-09)" in text


def test_a_result_shows_its_handovers_but_not_a_hundred():
    result = solve(Logistic(A, B, l2=0.1), method=Schedule.gradient_descent(500.0, 50), tol=1e-8)
    (handover,) = result.handovers
    assert str(handover) in str(result)
    many = type(result)(**vars(result) | {"handovers": (handover,) * 100})
    assert str(many).count("handover ") == 6
    assert "and 95 more" in str(many)


def test_vectors_of_any_shape_have_words():
    assert vector_words(np.array([3.0, 4.0])) == "2 numbers, norm 5: 3, 4"
    assert vector_words(np.ones((2, 8))) == "2 x 8 numbers, norm 4: 1, 1, 1, 1, ..."
    assert vector_words(np.array(2.0)) == "1 number, norm 2: 2"
    assert vector_words(np.empty(0)) == "0 numbers, norm 0: "
    assert vector_words(np.array([np.inf, np.nan])) == "2 numbers, norm nan: inf, nan"


def test_a_memory_shows_what_it_has_learned():
    memory = Memory()
    assert "nothing yet" in read(memory)
    for _ in range(2):
        solve(Logistic(A, B, l2=0.1), memory=memory)
    text = read(memory)
    assert "Logistic of 4 variables" in text
    assert "2 solves" in text
    assert "4 numbers, norm" in text


def test_a_method_shows_what_it_was_learned_for():
    text = read(Method(Schedule([0.5], [0.5], [1]), "logistic a5a", 3e-4))
    assert "logistic a5a" in text
    assert "0.0003" in text


def test_a_model_shows_its_fit_and_its_largest_coefficients():
    fit = Fit(rows=60, l2=0.01, success=True, quality={"holdout": Quality(20, 0.75, 0.5)})
    text = read(fitted(fit=fit))
    assert "b -3, age 2, d 0.4, c 0.2, a 0.1" in text
    assert "no, yes" in text
    assert "accuracy 0.75" in text
    several = Model("softmax", np.ones((3, 5)), np.zeros(3), TableEncoding(5), np.arange(3))
    assert "softmax" in read(several)


def test_a_certificate_shows_levels_and_margins_but_no_traces():
    shown = certificate("mine")
    assert (
        repr(shown) == "Certificate(mine, 5 instances: flow no, linear no, proved no, guarded yes)"
    )
    text = read(shown)
    assert "-0.5 at t = 2, held on 3 of 5" in text
    assert "not linearly stable" in text
