"""scikit-learn's linear estimators, fitted by ode2opt: change the import line, keep the rest.

    from ode2opt.integrations.sklearn import LogisticRegression

Each is a subclass of its namesake with the same parameters, attributes and methods, and two
parameters more: ``solver`` and, where all is smooth, ``memory`` (docs/how-to/other-libraries.md).
"""

from pathlib import Path
from typing import Any

from ode2opt.base.errors import MissingDependencyError, installing, needing

_LEAST = (1, 8)  # the scikit-learn whose estimators have these parameters


def _require(version: str) -> None:
    """Refuse a scikit-learn whose estimators have other parameters."""
    if tuple(int(part) for part in version.split(".")[:2]) < _LEAST:
        raise MissingDependencyError(
            f"The estimators need scikit-learn {_LEAST[0]}.{_LEAST[1]} or later, not {version}: "
            f"{installing('sklearn')}."
        )


with needing("sklearn"):
    import sklearn as _theirs

    _require(_theirs.__version__)
    from ode2opt.integrations.sklearn._saving import load_as
    from ode2opt.integrations.sklearn.lasso import ElasticNet, Lasso
    from ode2opt.integrations.sklearn.lasso_cv import ElasticNetCV, LassoCV
    from ode2opt.integrations.sklearn.logistic import LogisticRegression
    from ode2opt.integrations.sklearn.logistic_cv import LogisticRegressionCV
    from ode2opt.integrations.sklearn.regressors import (
        HuberRegressor,
        LpRegression,
        PoissonRegressor,
        Ridge,
    )
    from ode2opt.integrations.sklearn.svc import LinearSVC


def load(path: str | Path) -> Any:
    """Return the fitted estimator that ``estimator.save(path)`` wrote, of whichever class it is.

    Args:
        path: the model file. One of ``ode2opt solve`` is read by ``ode2opt.Model.load``.

    Examples:
        >>> Ridge().fit(X, y).save("model.safetensors")
        >>> load("model.safetensors").predict(X)
    """
    return load_as(path, [globals()[name] for name in __all__ if name != "load"])


__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "LpRegression",
    "PoissonRegressor",
    "Ridge",
    "load",
]
