"""The supervisor: whoever gives up is followed, and the last one always arrives."""

import math

import numpy as np
import pytest

from ode2opt import Guard, Logistic, Lpp, Method, Quadratic, Schedule, Status, solve
from ode2opt.base.ended import Ended
from ode2opt.solvers import supervisor
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.oracle import Oracle, Outcome, Stop
from ode2opt.solvers.stages.lbfgs import Lbfgs
from ode2opt.solvers.stages.stage import Stage, SwitchIfCheaper, not_stuck, turn, within
from ode2opt.solvers.supervisor import supervise


def made(N=200, n=30, seed=0, l2=0.01):
    rng = np.random.default_rng(seed)
    return Logistic(rng.standard_normal((N, n)), (rng.random(N) < 0.5).astype(float), l2=l2)


def ended(problem, stages, **options):
    """A run under supervision from ones, after its end."""
    run = Oracle(Objective(problem), **({"tol": 1e-8, "max_iter": 5000} | options))
    here = run.evaluate(np.ones(problem.n))
    with pytest.raises(Stop) as stop:
        supervise(run, here, stages)
    return run, stop.value.status


class Given(Stage):
    """A stage that does what a function does."""

    name = "given"

    def __init__(self, name, go, watch=None):
        super().__init__(watch)
        self.name, self.go = name, go

    def run(self, oracle, point):
        return self.go(oracle, point)


def gives_up(name, after=0):
    """A stage that makes some gradient steps and then has had enough."""

    def go(run, here):
        for _ in range(after):
            here = run.evaluate(here.x - 0.1 * here.g)
        return Outcome(Ended.MANY_STEPS, here if after else None)

    return Given(name, go)


def test_a_stage_that_gives_up_is_followed_by_the_next_from_where_it_was():
    starts = []

    def last(run, here):
        starts.append(here)
        raise Stop(Status.CALLBACK)

    run, status = ended(made(), [gives_up("first", 3), gives_up("second"), Given("third", last)])
    assert status is Status.CALLBACK
    assert [(h.to, h.iteration) for h in run.handovers] == [("second", 3), ("third", 3)]
    assert run.handovers[0].reason == "Newton's method took too many steps"
    expected = np.ones(30)
    for _ in range(3):
        expected = expected - 0.1 * made().gradient(expected)
    np.testing.assert_allclose(starts[0].x, expected)
    np.testing.assert_allclose(starts[0].g, made().gradient(expected))
    assert starts[0].value == pytest.approx(made().value(expected))


@pytest.mark.parametrize("stages", [[], [gives_up("a")], [gives_up("a", 2), gives_up("b", 2)]])
def test_after_all_stages_nesterov_converges(stages):
    run, status = ended(made(), stages)
    assert status is Status.CONVERGED
    assert run.best_norm <= 1e-8
    assert [h.to for h in run.handovers] == [*(s.name for s in stages[1:]), "nesterov"][
        : len(stages)
    ]


def test_a_watch_is_asked_about_its_own_stage_only():
    asked = []

    def watch(run):
        asked.append(run.k)
        return Outcome(Ended.FAR) if len(asked) == 3 else None

    run, status = ended(made(), [Lbfgs(watch), Lbfgs()])
    assert status is Status.CONVERGED
    assert len(asked) == 3
    assert [(h.to, h.reason) for h in run.handovers] == [("lbfgs", Ended.FAR.clause)]


def test_after_a_line_search_that_finds_nothing_nesterov_goes_on(monkeypatch):
    """L-BFGS may give up near rounding; the promise of the guard does not depend on it."""
    monkeypatch.setattr("ode2opt.solvers.stages.lbfgs.search", lambda *given: None)
    problem = Quadratic(np.diag([1.0, 0.1]), np.ones(2))
    wild = Schedule(np.full(9, 90.0), np.full(9, 90.0), np.full(9, 0.1))
    result = solve(problem, np.zeros(2), method=wild, handover=Guard(fallback="lbfgs"), tol=1e-8)
    assert result.success
    assert [h.to for h in result.handovers] == ["lbfgs", "nesterov"]
    for method in ("lbfgs", "newton", "auto"):
        result = solve(problem, np.zeros(2), method=method, tol=1e-8)
        assert result.success
        assert result.handovers[-1].to == "nesterov"
        assert "Nesterov" in result.method


def test_without_the_guard_a_stage_that_gives_up_ends_the_solve(monkeypatch):
    monkeypatch.setattr("ode2opt.solvers.stages.lbfgs.search", lambda *given: None)
    problem = Quadratic(np.diag([1.0, 0.1]), np.ones(2))
    for method in ("lbfgs", "newton"):
        result = solve(problem, np.zeros(2), method=method, handover="none")
        assert result.status is Status.LINE_SEARCH
        assert not result.handovers


def instant(metric):
    return Method(
        None, "test", 1e-6, "family", family_scale=1.0, metric=metric,
        guard=Guard(fallback="metric-lbfgs"),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_lbfgs_in_a_bad_metric_is_handed_over_in_time(seed):
    n = 30
    lengths = np.random.default_rng(seed).permutation(np.logspace(-2, 2, n))
    problem = made(seed=seed)
    result = solve(problem, method=instant(Metric("diagonal", lengths)))
    assert result.success
    assert [h.to for h in result.handovers] == ["lbfgs"]
    assert result.handovers[0].iteration < 200
    plain = solve(problem, method="lbfgs")
    assert result.oracle_calls < 200 + 2 * plain.oracle_calls
    np.testing.assert_allclose(result.x, plain.x, atol=1e-4)


def test_lbfgs_in_a_good_metric_is_left_alone():
    problem = made()
    metric = Metric.inverse_of(problem.hessian(np.zeros(30)))
    result = solve(problem, method=instant(metric), tol=1e-10)
    assert result.success
    assert result.handovers == ()


def test_a_flat_place_far_out_does_not_win():
    """At 40 the gradient is small only because nothing moves there any more."""
    problem = Logistic(np.ones((10, 1)), [1.0] * 3 + [0.0] * 7)
    for method in ("eigac-c2", "auto", "lbfgs", "newton"):
        result = solve(problem, [40.0], method=method)
        assert result.success
        assert result.x[0] == pytest.approx(math.log(3 / 7), abs=1e-4)


@pytest.mark.parametrize("method", ["auto", "lbfgs", "newton", "eigac-c2"])
def test_a_curvature_that_changes_by_orders_of_magnitude_is_followed(method):
    result = solve(Lpp([[1e6]], [1.0], p=10), [3e-6], tol=1.0, method=method)
    assert result.success


def test_the_guard_goes_on_from_the_start_where_its_value_is_lower():
    """The schedule jumps from 1 to 100, where the gradient is smaller and the value is not."""
    problem = Logistic(np.ones((10, 1)), [1.0] * 3 + [0.0] * 7)
    jump = Schedule([1.0, -300.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    points = []
    result = solve(
        problem, [1.0], method=jump, tol=1e-9,
        callback=lambda progress: points.append(float(progress.x[0])) and None,
    )  # fmt: skip
    assert max(points) > 50
    handover = result.handovers[0].iteration
    assert result.success
    assert abs(points[handover + 1] - 1.0) < 5


class Norms:
    """What a watch sees of a run: an iteration and a norm at a time."""

    def __init__(self, tol=1e-6):
        self.k, self.norm, self.tol, self.reached = -1, math.inf, tol, None

    def show(self, watch, *norms, each=1):
        said = None
        for norm in norms:
            self.k, self.norm = self.k + each, norm
            self.calls = self.k + 1
            said = watch(self) or said
        return said


def test_a_stage_must_promise_to_arrive_in_time():
    """From 1 to 1e-6: 20 steps at a rate of 1/2, 132 at 0.9."""
    assert Norms().show(within(30, 5), *(0.5 ** np.arange(15))) is None
    assert "too far" in str(Norms().show(within(30, 5), *(0.9 ** np.arange(15))))
    assert Norms().show(within(140, 5), *(0.9 ** np.arange(130))) is None
    assert Norms().show(within(30, 20), *(0.9 ** np.arange(15))) is None  # too soon
    noisy = 0.5 ** np.arange(15) * np.where(np.arange(15) % 2, 10.0, 1.0)
    assert Norms().show(within(30, 5), *noisy) is None
    assert Norms().show(within(30, 5), *np.full(9, math.nan))
    assert Norms().show(within(90, 5), *(0.5 ** np.arange(15)), each=9)  # 9 calls each


def test_a_stage_ends_when_what_is_left_costs_more_than_another():
    rate, tol = 0.5, 1e-6  # from 1, about 20 steps to the tolerance
    norms = rate ** np.arange(4)
    assert Norms(tol).show(SwitchIfCheaper(30.0, 3), *norms) is None
    assert "costs less" in str(Norms(tol).show(SwitchIfCheaper(5.0, 3), *norms))
    assert Norms(tol).show(SwitchIfCheaper(5.0, 4), *norms) is None  # too soon to tell
    assert Norms(tol).show(SwitchIfCheaper(5.0, 3), *norms, each=9)  # 9 trials a step
    assert Norms(tol).show(SwitchIfCheaper(30.0, 3), *norms, each=9)


def test_a_stage_without_progress_ends_and_one_that_has_arrived_does_not():
    assert Norms().show(SwitchIfCheaper(1e9, 3), *np.full(4, 1.0))
    assert Norms().show(SwitchIfCheaper(0.0, 3), *np.full(9, 1e-7)) is None


@pytest.mark.parametrize("soonest", [0, 1, 2, 3])
def test_a_watch_may_be_asked_from_the_first_step_on(soonest):
    slow, quick = ([1.0] * 9, 0.5 ** np.arange(9)), ([1.0, 0.0, 0.0], 1e-3 ** np.arange(4))
    for norms in slow:
        assert Norms().show(SwitchIfCheaper(4.0, soonest), *norms).ended is Ended.CHEAPER
    for norms in quick:
        assert Norms().show(SwitchIfCheaper(4.0, soonest), *norms) is None


def test_the_last_stage_is_told_in_words():
    run, _ = ended(made(), [])
    assert run.description == ["Nesterov's method with backtracking"]


class Clock:
    """What a watch asks a solve for."""

    def __init__(self):
        self.k, self.calls, self.norm, self.tol, self.reached = 0, 0.0, 1.0, 1e-6, None

    def at(self, k, norm):
        self.k, self.calls, self.norm = k, float(k), norm
        return self


def test_a_stage_is_stuck_after_as_long_without_progress_as_it_took_to_come_there():
    watch, run = not_stuck(100), Clock()
    assert all(watch(run.at(k, 0.99**k)) is None for k in range(500))
    first = next(k for k in range(500, 2000) if watch(run.at(k, 0.99**499)))
    assert 980 < first < 1010
    run.reached = True  # a solve that goes on after its tolerance is nobody's business
    assert watch(run.at(5000, 1.0)) is None


def test_a_turn_is_over_where_more_is_left_than_was_made():
    slow, quick, run = turn(50), turn(50), Clock()
    assert all(quick(run.at(k, 0.8**k)) is None for k in range(60))
    assert next(k for k in range(200) if slow(run.at(k, 0.999**k))) == 50


def recorded(monkeypatch, reason, most=99):
    """Replace the methods of the rounds by ones that note who ran from where and then end."""
    ran = []

    def replace(stage):
        def run(self, oracle, here):
            ran.append((stage.name, here.x[0]))
            if len(ran) == most:
                raise Stop(Status.CALLBACK)
            return Outcome(reason, here)

        monkeypatch.setattr(stage, "run", run)

    for stage in (supervisor.Nesterov, supervisor.Newton, supervisor.Lbfgs):
        replace(stage)
    return ran


def test_a_round_in_which_nobody_finds_a_step_ends_the_solve(monkeypatch):
    ran = recorded(monkeypatch, Ended.LINE_SEARCH)
    run, status = ended(made(), [])
    assert status is Status.STALLED
    assert [name for name, _ in ran] == ["nesterov", "newton", "lbfgs"]
    assert [h.to for h in run.handovers] == ["newton", "lbfgs"]


@pytest.mark.parametrize("plain_first", [True, False])
def test_in_rounds_lbfgs_also_begins_at_the_start_if_it_has_not_yet(monkeypatch, plain_first):
    """What came before may have led into a corner that the start does not know."""
    ran = recorded(monkeypatch, Ended.TURN, most=8 + plain_first)
    down = Given("down", lambda run, here: Outcome(Ended.TURN, run.evaluate(0 * here.x)))
    _, status = ended(made(), [Lbfgs()] * plain_first + [down])
    assert status is Status.CALLBACK
    turns = [("nesterov", 0.0), ("newton", 0.0), ("lbfgs", 1.0), ("lbfgs", 0.0)]
    if plain_first:
        del turns[2]
        assert ran == [("lbfgs", 1.0), *turns, *turns, *turns][:9]
    else:
        assert ran == turns + turns


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_stage_that_ends_where_there_is_no_value_is_followed_from_before_it(value):
    def blown(run, here):
        return Outcome(Ended.MANY_STEPS, here._replace(x=here.x * math.nan, value=value))

    run, status = ended(made(), [Given("blown", blown), Lbfgs()])
    assert status is Status.CONVERGED
    assert np.all(np.isfinite(run.best_x))
