"""Which scikit-learn is new enough."""

from ode2opt.base.errors import MissingDependencyError, installing

LEAST = (1, 8)


def require(version: str) -> None:
    """Refuse a scikit-learn whose estimators have other parameters."""
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST:
        raise MissingDependencyError(
            f"The estimators need scikit-learn {LEAST[0]}.{LEAST[1]} or later, not {version}: "
            f"{installing('sklearn')}."
        )
