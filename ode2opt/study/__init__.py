"""Measuring and showing: the benchmark, its tables, the demonstration."""
