"""The inertial system: its default coefficients and the schedule of its Euler discretisation."""
