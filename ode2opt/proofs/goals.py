"""What a worst case or a proof is about: the last point of a table, or all that follows it.

See docs/mathematics.md, section 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ode2opt.base.errors import InputError, unknown_name

TAILS = {"ogm": 2, "nag": 1}
"""How a table may go on, and eta of each."""
STARS = ("smooth", "convex")


@dataclass(frozen=True)
class Goal:
    """What is bounded, in units of L |x0 - x*|^2.

    Attributes:
        tail: None bounds the value at the table's last point. "ogm" or "nag" bounds all points from
            there on, the table being followed by that method with theta, theta + 1/2, ...
        star: "smooth" takes the inequalities of an L-smooth function at the minimiser. "convex"
            takes plain convexity there, so that a run can check all the others by itself.
        theta: where the tail's method stands at the table's last point, at least 1; None without a
            tail.
    """

    tail: str | None = None
    star: str = "smooth"
    theta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.tail is not None and self.tail not in TAILS:
            raise unknown_name("tail", self.tail, TAILS)
        if self.star not in STARS:
            raise unknown_name("star", self.star, STARS)
        if (self.theta is None) != (self.tail is None):
            raise InputError("theta belongs to a tail: give both or none.")
        if self.theta is not None and self.theta < 1:
            raise InputError(f"theta is {float(self.theta):g}: it must be at least 1.")
        if self.tail == "ogm" and self.star == "convex":
            raise InputError("The tail ogm has no proof by plain convexity: use the tail nag.")

    @property
    def eta(self) -> int:
        """The tail's eta; 1 without a tail."""
        return 1 if self.tail is None else TAILS[self.tail]

    @property
    def weight(self) -> Fraction:
        """A, what the last value is weighed with: eta theta^2, or 1 without a tail."""
        return Fraction(1) if self.theta is None else self.eta * self.theta**2

    @property
    def square(self) -> Fraction:
        """What the terminal form has times |g_M|^2, besides the tail's |z - x*|^2."""
        if self.tail is None:
            return Fraction(0) if self.star == "smooth" else Fraction(1, 2)
        step_on = Fraction(1, 8) if self.star == "convex" else Fraction(0)
        return self.weight / 2 - step_on

    def ratio(self, tau: float, last: int) -> float:
        """Return the bound divided by Nesterov's own, L R^2 / (2 t^2), at the last point."""
        t = Fraction(last + 2, 2) if self.theta is None else self.theta
        return 2 * tau * float(t * t / self.weight)


def goal_of(tail: str | None, star: str, theta: Fraction | float | None, last: int) -> Goal:
    """Return the goal for a table whose last point has the index ``last``."""
    if tail is not None and theta is None:
        theta = Fraction(last + 2, 2)
    return Goal(tail, star, None if theta is None else Fraction(theta))
