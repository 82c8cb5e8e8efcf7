"""The exact worst case by PEPit: all inequalities between all points, one semidefinite program."""

import warnings


def pep_worst_case(rows):
    """Return the largest (f(y_N) - f*) / (L |x0 - x*|^2) of rows (m, p, q) over all functions."""
    from PEPit import PEP
    from PEPit.functions import SmoothConvexFunction

    problem = PEP()
    f = problem.declare_function(SmoothConvexFunction, L=1.0)
    star = f.stationary_point()
    y = before = problem.set_initial_point()
    problem.set_initial_condition((y - star) ** 2 <= 1)
    g_before = None
    for m, p, q in rows:
        g = f.gradient(y)
        step = m * (y - before) - p * g
        if g_before is not None:
            step = step + q * g_before
        y, before, g_before = y + step, y, g
    problem.set_performance_metric(f(y) - f(star))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
        return problem.solve(verbose=0, wrapper="cvxpy", solver="CLARABEL", **tight)
