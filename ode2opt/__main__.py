"""``python -m ode2opt``: the command line without its script."""

from ode2opt.cli import main

main()
