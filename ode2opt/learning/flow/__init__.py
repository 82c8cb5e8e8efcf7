"""The flow as a target: coefficients of the inertial system (docs/mathematics.md, 5 to 8)."""
