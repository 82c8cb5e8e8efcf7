"""A pytest plugin: scikit-learn's own tests meet our estimators in the place of its own.

``pytest -p our_classes --pyargs sklearn.linear_model.tests.test_ridge ...``. The outcomes go to the
file that OUTCOMES names, as JSON.
"""

import json
import os
import re
from inspect import getsource
from pathlib import Path

import sklearn.linear_model
import sklearn.svm
import sklearn.svm._classes

from ode2opt.integrations import sklearn as ours

NAMES = re.compile(rf"\b({'|'.join(ours.__all__)})\b")
OTHERS = re.compile("(Binomial|Gamma|Tweedie|GeneralizedLinear)Regressor|array_api")
outcomes: dict[str, str] = {}


def pytest_configure(config):
    """Put our classes in the place of scikit-learn's, before any test module is imported."""
    for home in (sklearn.linear_model, sklearn.svm):
        for name in ours.__all__:
            if hasattr(home, name):
                setattr(home, name, getattr(ours, name))


def pytest_collection_modifyitems(config, items):
    """Leave out tests that name none of our classes, fit another, or have arrays we do not take."""
    ours_alone = [
        item
        for item in items
        if NAMES.search(item.name + getsource(item.function)) and not OTHERS.search(item.name)
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in ours_alone])
    items[:] = ours_alone


def pytest_runtest_logreport(report):
    """Take note of how a test went; a failure before or after it is one of it."""
    name = Path(report.location[0]).stem + "::" + report.location[2]
    if report.failed:
        outcomes[name] = "failed"
    elif report.when == "call" or report.skipped:
        outcomes.setdefault(name, report.outcome)


def pytest_sessionfinish(session, exitstatus):
    """Write the outcomes."""
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(outcomes, indent=0))
