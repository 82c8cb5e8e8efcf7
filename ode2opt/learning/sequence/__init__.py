"""The target "sequence": a table and a preconditioner (docs/mathematics.md, sections 13, 14)."""
