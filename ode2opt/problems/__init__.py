"""What is minimised: problems, families of problems, datasets."""

from ode2opt.data.datasets import Dataset, load_dataset
from ode2opt.data.files import read_encoded, read_table
from ode2opt.data.named_data import DATASETS
from ode2opt.problems.base import Problem, Scale, Start
from ode2opt.problems.deconvolution import Deconvolution
from ode2opt.problems.family import KINDS, Family
from ode2opt.problems.function import FunctionProblem
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.logistic import Logistic
from ode2opt.problems.losses import Huber, LeastSquares, Lpp, Poisson, SquaredHinge
from ode2opt.problems.parts import Parts
from ode2opt.problems.quadratic import Quadratic
from ode2opt.problems.scaled_huber import ScaledHuber
from ode2opt.problems.softmax import Softmax

__all__ = [
    "DATASETS",
    "KINDS",
    "Dataset",
    "Deconvolution",
    "Family",
    "FunctionProblem",
    "Huber",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "Lpp",
    "Parts",
    "Poisson",
    "Problem",
    "Quadratic",
    "Scale",
    "ScaledHuber",
    "Softmax",
    "SquaredHinge",
    "Start",
    "load_dataset",
    "read_encoded",
    "read_table",
]
