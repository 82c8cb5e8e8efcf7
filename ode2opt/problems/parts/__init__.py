"""Problems whose rows are in parts: in files, in memory-mapped arrays, on other machines."""

from ode2opt.problems.parts.blocks import Block, Source
from ode2opt.problems.parts.engines import Engine, Threads
from ode2opt.problems.parts.files import files_in_parts
from ode2opt.problems.parts.problem import Parts

__all__ = ["Block", "Engine", "Parts", "Source", "Threads", "files_in_parts"]
