"""The guarded sequence as a target: a table, in a metric (docs/mathematics.md, 13 and 14)."""
