"""Older import paths lead to the same names, with a warning that says where they are."""

import importlib
import subprocess
import sys

import pytest

from ode2opt._moved import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_path_gives_the_same_names_and_says_where_they_are(old):
    sys.modules.pop(f"ode2opt.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"ode2opt.{MOVED[old][0]}"):
        module = importlib.import_module(f"ode2opt.{old}")
    new = importlib.import_module(f"ode2opt.{MOVED[old][0]}")
    names = [name for name in vars(new) if not name.startswith("_")]
    assert names
    assert all(getattr(module, name) is getattr(new, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = module.absent


def test_old_imports_run_in_a_process_of_their_own():
    script = (
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "from ode2opt.dynamics import Schedule, ProximalTable, worst_case\n"
        "from ode2opt.dynamics.proofs.check_proof import bound\n"
        "from ode2opt.problems.files import ReadOptions\n"
        "from ode2opt.confidence import expectation\n"
        "from ode2opt.dynamics.worst_cases import IterationsBound\n"
        "print(Schedule.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("ode2opt.base.schedule", "")
