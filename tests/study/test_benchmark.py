"""The benchmark's numbers against runs made by hand."""

import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from ode2opt import Family, InputError, Memory, Method, Quadratic, Schedule, solve
from ode2opt.paper.default import DefaultCoefficients
from ode2opt.study.benchmark import Settings, run_benchmark
from ode2opt.study.result_tables import benchmark_cells
from ode2opt.study.tuned import TUNED


@pytest.fixture(scope="module")
def family():
    return Family.from_dataset("lpp", "breast_cancer")


def test_the_numbers_are_those_of_plain_runs(family):
    settings = Settings(("nag", "lbfgs"), instances=3, tol=1e-3, max_iter=60, seed=9, jobs=1)
    statistics = run_benchmark(family, settings).statistics()
    for method, found in statistics.items():
        norms, first, calls = [], [], []
        for i in range(3):
            problem = family.sample([9, i], part="test")
            whole = solve(
                problem, problem.start(), method=method, tol=1e-12, max_iter=60, history=True
            )
            norms.append(np.log10(whole.history.grad_norm[-1]))
            stopped = solve(problem, problem.start(), method=method, tol=1e-3, max_iter=60)
            first.append(stopped.iterations)
            calls.append((stopped.reached or stopped).oracle_calls)
        assert found["measure_mean"] == pytest.approx(np.mean(norms))
        assert found["measure_std"] == pytest.approx(np.std(norms, ddof=1))
        assert found["complexity_mean"] == pytest.approx(np.mean(first))
        assert found["complexity_max"] == max(first)
        assert found["oracle_calls_mean"] == pytest.approx(np.mean(calls))
        assert found["diverged"] == 0


def test_processes_do_not_change_the_numbers(family):
    alone, shared = (
        run_benchmark(family, Settings(("eigac-c1",), instances=4, max_iter=50, jobs=jobs))
        for jobs in (1, 2)
    )
    for a, b in zip(alone.outcomes["eigac-c1"], shared.outcomes["eigac-c1"], strict=True):
        assert (a.measure, a.complexity, a.oracle_calls) == (
            b.measure,
            b.complexity,
            b.oracle_calls,
        )


def test_a_memory_solves_the_instances_in_order(family):
    settings = Settings(("lbfgs", "memory"), instances=5, tol=1e-3, max_iter=500, seed=3, jobs=2)
    benchmark = run_benchmark(family, settings)
    memory = Memory()
    for i, outcome in enumerate(benchmark.outcomes["memory"]):
        result = solve(family.sample([3, i], part="test"), memory=memory, tol=1e-3, max_iter=500)
        assert outcome.oracle_calls == result.oracle_calls
        assert outcome.reached
    found = benchmark.statistics()
    assert found["memory"]["oracle_calls_mean"] < found["lbfgs"]["oracle_calls_mean"]


@np.errstate(all="ignore")  # some choices diverge
def first_below(problem, step, tol, most):
    """Return the iteration at which the gradient norm is first at most ``tol``, or ``most``."""
    for k in range(most + 1):
        g = problem.gradient(step.x)
        if np.linalg.norm(g) <= tol:
            return k
        step(k, g)
    return most


class ByHand:
    """The two methods as docs/mathematics.md writes them, in the plainest way."""

    def __init__(self, problem, C, alpha=None):
        (self.x, L), self.alpha, self.step = problem.start(), alpha, C / problem.start().L
        self.y = self.x
        if alpha is not None:
            schedule = DefaultCoefficients(C, alpha).schedule(1_000, L)
            self.numbers = list(zip(schedule.a, schedule.c, schedule.d, strict=True))
            self.u = self.numbers[0][0] * problem.gradient(self.x)

    def __call__(self, k, g):
        if self.alpha is not None:
            a, c, d = self.numbers[k]
            e = self.u - a * g
            self.x, self.u = self.x + e, self.u - d * e - c * g
        else:
            y = self.x - self.step * g
            self.x, self.y = y + k / (k + 3) * (y - self.y), y


@pytest.mark.parametrize("name", ["eigac-tuned", "nag-tuned"])
def test_constants_are_those_of_the_fewest_iterations_on_training_problems(family, name):
    settings = Settings((name,), instances=3, tol=1e-3, max_iter=300, seed=5, jobs=1)
    benchmark = run_benchmark(family, settings)
    chosen, choices = benchmark.tuned[name], TUNED[name].choices
    assert len(choices) == {"eigac-tuned": 18, "nag-tuned": 7}[name]
    train, test = ([family.sample([5, i], part=p) for i in range(3)] for p in ("train", "test"))
    counts = [
        np.mean([first_below(p, ByHand(p, **constants), 1e-3, 300) for p in train[:2]])
        for constants in choices
    ]
    assert chosen.constants == choices[int(np.argmin(counts))]
    assert (chosen.complexity, chosen.reached) == (min(counts), 2)
    own = [first_below(p, ByHand(p, **chosen.constants), 1e-3, 300) for p in test]
    assert [one.complexity for one in benchmark.outcomes[name]] == own
    assert min(counts) < max(counts)
    assert set(chosen.summary()) == {
        *chosen.constants, "choices", "training_problems", "complexity_mean", "reached", "seconds",
    }  # fmt: skip


def test_constants_are_chosen_without_a_look_at_test_problems(family):
    class Watched(Family):
        def sample(self, rng, part="train", **options):
            seen.append((tuple(rng), part))
            return super().sample(rng, part, **options)

    seen = []
    watched = Watched(family.name, family._sampler, family.size)
    chosen = [
        run_benchmark(watched, Settings(("nag-tuned",), instances=count, seed=2, jobs=1)).tuned
        for count in (1, 2)
    ]
    assert chosen[0]["nag-tuned"].constants == chosen[1]["nag-tuned"].constants
    assert {seed for seed, part in seen if part == "train"} == {(2, 0), (2, 1)}
    assert seen.index(((2, 0), "test")) > max(
        i for i, one in enumerate(seen[: len(seen) // 2]) if one[1] == "train"
    )


def test_what_is_not_reached_is_counted_at_the_cap(family):
    settings = Settings(("gd",), instances=2, tol=1e-9, max_iter=10, jobs=1)
    found = run_benchmark(family, settings).statistics()["gd"]
    assert (found["reached"], found["complexity_mean"]) == (0, 10)


def test_divergence_is_counted_and_stays_valid_json():
    class Understated(Quadratic):
        def _paper_bound(self):
            return 0.1, 1

    family = Family.from_sampler(lambda rng: Understated(np.eye(2), rng.standard_normal(2)))
    settings = Settings(("gd", "eigac-c4"), instances=2, max_iter=2_000, jobs=1)
    found = run_benchmark(family, settings).statistics()
    assert found["gd"]["diverged"] == 2
    assert math.isfinite(found["gd"]["measure_mean"])
    assert (found["eigac-c4"]["diverged"], found["eigac-c4"]["handovers"]) == (0, 2)
    assert found["eigac-c4"]["reached"] == 2


def test_ending_above_the_start_is_divergence_too():
    class Understated(Quadratic):
        def _paper_bound(self):
            return 0.4, 1

    family = Family.from_sampler(lambda rng: Understated(np.eye(2), rng.standard_normal(2)))
    found = run_benchmark(family, Settings(("gd",), instances=2, max_iter=5, jobs=1)).statistics()
    assert found["gd"]["diverged"] == 2
    assert found["gd"]["measure_mean"] < 10


def test_ctrl_c_keeps_what_is_done(family):
    done = []

    def advance():
        done.append(1)
        if len(done) == 2:
            raise KeyboardInterrupt

    settings = Settings(("gd",), instances=5, max_iter=5, jobs=1)
    assert run_benchmark(family, settings, advance).instances == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": ()}, "at least one"),
        ({"methods": ("ngd",)}, "Unknown method 'ngd'"),
        ({"methods": ("gd", "nag", "gd")}, "gd is named twice"),
        ({"instances": 0}, "instances is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"tol": 0.0}, "tol is 0"),
        ({"handover": "gaurd"}, "did you mean 'guard'"),
    ],
)
def test_bad_settings_are_named(options, said):
    with pytest.raises(InputError, match=said):
        Settings(**({"methods": ("gd",)} | options))


ONE_THREAD = """
import sys
import numpy as np
from ode2opt import Family, Quadratic
from ode2opt.study.benchmark import Settings, run_benchmark

file, jobs = sys.argv[1], int(sys.argv[2])

class Watched(Quadratic):
    def gradient(self, x):
        from threadpoolctl import threadpool_info
        with open(file, "a") as stream:
            print(*(pool["num_threads"] for pool in threadpool_info()), file=stream)
        return super().gradient(x)

family = Family.from_sampler(lambda rng: Watched(np.eye(9), rng.standard_normal(9)))
run_benchmark(family, Settings(("lbfgs-scipy", "newton"), instances=2, max_iter=3, jobs=jobs))
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_solve_has_one_thread_whatever_the_environment_says(tmp_path, jobs):
    """SciPy's BLAS used to be loaded within the first solve, with as many as it was told."""
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    command = [sys.executable, "-c", ONE_THREAD, str(tmp_path / "seen"), jobs]
    subprocess.run(command, check=True, env=os.environ | threads)
    seen = (tmp_path / "seen").read_text().split()
    assert len(seen) > 4
    assert set(seen) == {"1"}


def test_seconds_spent_waiting_for_a_processor_are_told(monkeypatch):
    class Waiting(Quadratic):
        def gradient(self, x):
            time.sleep(0.005)
            return super().gradient(x)

    family = Family.from_sampler(lambda rng: Waiting(np.eye(2), rng.standard_normal(2)))
    settings = Settings(("gd",), instances=2, max_iter=10, jobs=1)
    assert "The timing is disturbed" in run_benchmark(family, settings).disturbance()
    monkeypatch.setattr(time, "thread_time", time.perf_counter)  # as if nobody else were there
    assert run_benchmark(family, settings).disturbance() is None


def test_a_trial_at_the_limit_of_precision_is_no_divergence():
    """Beyond the tolerance a line search ends in trials far from the solution."""
    family = Family.from_dataset("logistic", "digits", split="shuffled")
    settings = Settings(methods=("auto", "newton"), instances=6, tol=1e-4, max_iter=500)
    methods = run_benchmark(family, settings).statistics()
    assert all(row["diverged"] == 0 for row in methods.values())
    assert all(row["measure_mean"] < -12 for row in methods.values())


def test_a_relay_is_for_tables_and_others_run_as_they_are(family):
    names = ("nag", "eigac-c4", "lbfgs", "auto", "memory", "eigac-tuned", "nag-tuned")
    instant = Method(None, "by hand", tol=1e-6, scale="family", family_scale=1.0)
    table = Method(Schedule.heavy_ball(1.0, 0.9, K=50), "by hand", tol=1e-6)
    given = {"learned": {"instant": instant, "table": table}, "instances": 1, "jobs": 1}
    relayed = Settings(names, handover="relay", **given)
    assert relayed.handovers() == {
        "nag": "guard", "eigac-c4": "relay", "lbfgs": "guard", "auto": "guard", "memory": "guard",
        "eigac-tuned": "relay", "nag-tuned": "guard", "instant": "guard", "table": "relay",
    }  # fmt: skip
    found, plain = (
        run_benchmark(family, settings).statistics()
        for settings in (relayed, Settings(names, **given))
    )
    for name in ("nag", "lbfgs", "auto", "memory", "instant"):
        assert found[name]["measure_mean"] == plain[name]["measure_mean"]
    assert set(Settings(names, handover="none", **given).handovers().values()) == {"none"}
    assert set(run_benchmark(family, Settings(names, handover="none", **given)).outcomes) == {
        *names, "instant", "table",
    }  # fmt: skip


def test_a_measure_is_not_below_the_rounding_of_the_first_norm():
    """Separable rows have no minimum: Newton's method and L-BFGS run away to gradients of 1e-60."""
    A = np.repeat([1.0, -1.0], 40)[:, None]
    family = Family.from_arrays("logistic", A, (A[:, 0] > 0).astype(float), size=20)
    names = ("gd", "lbfgs", "auto")
    settings = Settings(names, instances=2, max_iter=60, jobs=1)
    found = run_benchmark(family, settings)
    for i in range(2):
        problem = family.sample([0, i], part="test")
        first = np.linalg.norm(problem.gradient(problem.start().x0))
        least = np.log10(np.finfo(float).eps * first)
        for name in names:
            outcome = found.outcomes[name][i]
            assert outcome.measure >= least - 1e-9
            assert outcome.at_rounding == (outcome.measure < least + 1e-9)
    statistics = found.statistics()
    assert statistics["gd"]["measure_at_rounding"] == 0
    assert max(statistics[name]["measure_at_rounding"] for name in ("lbfgs", "auto")) == 2
    cells = {name: benchmark_cells(name, row, 2)[1] for name, row in statistics.items()}
    assert not cells["gd"].startswith("<")
    assert any(cell.startswith("<-") for cell in cells.values())
