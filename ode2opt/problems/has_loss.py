"""A loss as methods of a class: of data, or a user's own."""

from __future__ import annotations

from typing import Any, ClassVar

from ode2opt.base.arrays import Array
from ode2opt.kernels.row_loss import Loss, RowLoss
from ode2opt.problems.predicting import NUMBER, Prediction


class HasLoss:
    """The loss of rows, which ``row_loss`` tells, or the methods of a subclass."""

    b: Array
    row_loss: ClassVar[Loss | None] = None
    """The loss as data, in place of methods of the class."""
    kernel: ClassVar[RowLoss | None] = None
    """The loss as numba can compile it. A subclass does not inherit it, nor the compiled form of
    ``row_loss``, as it may have another loss."""
    slope_bound: float | None = None
    """The largest second derivative of the loss, where it has one."""
    least_loss: float | None = None
    """A number that no row's loss is below, where one is known."""
    binary = False
    """Whether targets are labels of two classes, 0 and 1."""
    counted = False
    """Whether targets are labels of classes that are counted from 0."""
    prediction: ClassVar[Prediction] = NUMBER
    """What scores predict."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Take what is known of a loss that is data, and the curvature by either of its names."""
        super().__init_subclass__(**options)
        if cls.row_loss is not None and "row_loss" in vars(cls):
            cls.slope_bound = cls.row_loss.curvature_bound
            cls.least_loss = cls.row_loss.lower_bound
        for base in map(vars, cls.__mro__):
            if found := base.get("curvature", base.get("bend")):
                cls.curvature = cls.bend = found  # type: ignore[method-assign]
                return

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Refuse a class without a loss."""
        methods = ("loss", "slope", "curvature")
        lacking = [one for one in methods if getattr(cls, one) is getattr(HasLoss, one)]
        if lacking and cls.row_loss is None:
            raise TypeError(f"{cls.__name__} needs the methods {', '.join(lacking)}.")
        return super().__new__(cls)

    @property
    def targets(self) -> Array:
        """What the functions of ``row_loss`` take beside scores."""
        return self.b

    def _formula(self, name: str, z: Array) -> Any:
        data = self.row_loss
        assert data is not None, "a class without data has methods"
        known = () if data.parameter is None else (getattr(self, data.parameter),)
        return getattr(data, name)(z, self.targets, *known)

    def loss(self, z: Array) -> Array:
        """Return the loss of each row.

        Args:
            z: the scores A x, N numbers; a loss with several scores a row has N x K.
        """
        return self._formula("value", z)

    def slope(self, z: Array) -> Array:
        """Return the derivative of each row's loss by its score, as a new array.

        Args:
            z: the scores, as for :meth:`loss`.
        """
        return self._formula("slope", z)

    def curvature(self, z: Array) -> Array:
        """Return the second derivative of each row's loss by its score.

        Args:
            z: the scores, as for :meth:`loss`.
        """
        return self._formula("curvature", z)

    bend = curvature

    def loss_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return loss and slope of each row; together they may cost less than one after the other.

        Args:
            z: the scores, as for :meth:`loss`.
        """
        if self.row_loss is None or self.row_loss.value_and_slope is None:
            return self.loss(z), self.slope(z)
        return self._formula("value_and_slope", z)

    @classmethod
    def agreed(cls, options: dict[str, Any], top: float) -> dict[str, Any]:
        """Return the options that all parts of a problem in parts share.

        Args:
            options: those that were given to the class.
            top: the largest target of all parts.
        """
        return options

    def check_targets(self) -> None:
        """Refuse targets that the loss is not made for."""
