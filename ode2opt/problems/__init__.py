"""What is minimised: problems, families of problems, datasets."""

from ode2opt.problems.base import Problem, Scale, Start
from ode2opt.problems.datasets import DATASETS, Dataset, load_dataset
from ode2opt.problems.family import KINDS, Family
from ode2opt.problems.files import read_table
from ode2opt.problems.function import FunctionProblem
from ode2opt.problems.linear_model import LeastSquares, LinearModel, Logistic, Lpp
from ode2opt.problems.quadratic import Quadratic

__all__ = [
    "DATASETS",
    "KINDS",
    "Dataset",
    "Family",
    "FunctionProblem",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "Lpp",
    "Problem",
    "Quadratic",
    "Scale",
    "Start",
    "load_dataset",
    "read_table",
]
