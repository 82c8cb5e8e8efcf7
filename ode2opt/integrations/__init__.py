"""ode2opt in the tools people already use; each module needs its own package only."""
