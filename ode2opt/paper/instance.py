"""An instance of a problem, what is measured of it, and what StoPM knows of who measures.

StoPM is written in these terms alone: what is learned may be a flow's coefficients or a
sequence's table.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

from ode2opt.base.arrays import Array
from ode2opt.problems.base import Problem

Tree = TypeVar("Tree")
"""What is learned: the coefficients of a flow, or a sequence's table and filter."""


class Instance(Protocol):
    """A problem on JAX arrays with what a target needs beside it: at least a start point."""

    @property
    def problem(self) -> Problem:
        """The problem."""

    @property
    def x0(self) -> Array:
        """The start point."""


InstanceT = TypeVar("InstanceT", bound=Instance)
Tree_contra = TypeVar("Tree_contra", contravariant=True)
InstanceT_contra = TypeVar("InstanceT_contra", bound=Instance, contravariant=True)


class StoppingTime(NamedTuple):
    """The stopping time of one instance and how far it violates the constraints.

    Attributes:
        T: the time at which the tolerance is met (of a sequence, the iterations), or at which the
            instance was given up.
        P: the stability violation until then, dimensionless: that of docs/mathematics.md, section
            6, times h sqrt(scale).
        Q: the convergence violation until then, times h^2 scale; zero for a sequence.
        penalty: what rho multiplies: P + Q, or both with their units as the paper prints them.
        reached: whether the gradient norm came down to the tolerance.
        failed: whether flow or sequence blew up.
        min_cosine: the smallest cosine between a step and its change of gradient. It is not
            negative for a convex function, up to rounding.
    """

    T: Array
    P: Array
    Q: Array
    penalty: Array
    reached: Array
    failed: Array
    min_cosine: Array


class StoppingRules(Protocol[Tree_contra, InstanceT_contra]):
    """How the stopping time of an instance is measured, and what is minimised of it."""

    def stopping_time(self, learned: Tree_contra, instance: InstanceT_contra, /) -> StoppingTime:
        """Return T, P and Q of an instance, differentiable by what is learned."""

    def objective(self, found: StoppingTime, /) -> Array:
        """Return what is minimised, before the penalty."""

    def with_safety(self, safety: float, /) -> StoppingRules[Tree_contra, InstanceT_contra]:
        """Return the same rules with another factor on the curvature that P is measured with."""


class FlowInstance(NamedTuple):
    """A problem on which a flow is followed.

    Attributes:
        problem: the problem on JAX arrays.
        x0: the start point.
        scale: the curvature by which the coefficients are divided.
    """

    problem: Problem
    x0: Array
    scale: Array
