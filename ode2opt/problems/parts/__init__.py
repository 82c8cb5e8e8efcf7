"""Problems whose rows are in parts: in files, in memory-mapped arrays, on other machines."""

from ode2opt.problems.parts.blocks import Block, RowSource
from ode2opt.problems.parts.files import files_in_parts
from ode2opt.problems.parts.problem import Parts

__all__ = ["Block", "Parts", "RowSource", "files_in_parts"]
