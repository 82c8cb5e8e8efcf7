"""Why a solve, or a stage of it, ended: one list for Python, kernels, JAX and C."""

from __future__ import annotations

from enum import Enum


class Ended(Enum):
    """Why a solve ended, or a stage of it; public as ``ode2opt.Status``.

    The value is the sentence that a result shows; ``clause`` says the same of a stage, in a
    handover. The first twelve end solves; those after them end stages only.
    """

    clause: str

    def __new__(cls, sentence: str, clause: str = "") -> Ended:
        one = object.__new__(cls)
        one._value_, one.clause = sentence, clause or sentence
        return one

    def __str__(self) -> str:
        return f"Status.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value!r}>"

    CONVERGED = "The gradient norm reached the tolerance."
    MAX_ITER = "The iteration limit was reached."
    MAX_SECONDS = "The time limit was reached."
    NON_FINITE = "The iterates diverged: the gradient is not finite.", "the gradient is not finite"
    HORIZON = "The schedule ended.", "the schedule's horizon is over"
    STALLED = (
        "No further progress is possible at this precision.",
        "no further progress is possible at this precision",
    )
    LINE_SEARCH = (
        "The line search found no further decrease.",
        "the line search found no further decrease",
    )
    NON_CONVEX = "Negative curvature was met: the function is not convex."
    CALLBACK = "The callback asked to stop."
    WORKERS_LOST = "Those who hold the rows are gone; this is the best point so far."
    INTERRUPTED = "Interrupted; this is the best point so far."
    GAVE_UP = "The first stage gave up; handover 'none' lets no other go on."

    CHEAPER = "another preconditioner costs less than what is left"
    FAR = "the tolerance is too far away at this pace"
    STUCK = "hardly any progress in the later half of {:.0f} evaluations"
    TURN = "the other methods have a turn"
    TOO_DEAR = "rows with curvature are too many for Newton's method"
    MANY_VARIABLES = "the variables are too many for a quadratic model"
    MANY_STEPS = "Newton's method took too many steps"
    LONG_MODELS = "quadratic models took as long as thousands of evaluations"
    MANY_PRODUCTS = "Newton's method took too many products"
    BLOWUP = (
        "The guard stopped it: the gradient norm blew up.",
        "the gradient norm exceeds {:g} times its starting value",
    )
    ENVELOPE = (
        "The guard stopped it: the gradient norm is far above that of all held-out problems.",
        "the gradient norm is far above that of all held-out problems",
    )
    MISSED = "an inequality of its proof does not hold with these steps"
    VALUE = "the value is above that of the start"
    PATIENCE = "The guard stopped it: no progress.", "no progress for {:.0f} iterations"
    ROSE = "the gradient norm rose after the tolerance was reached"
