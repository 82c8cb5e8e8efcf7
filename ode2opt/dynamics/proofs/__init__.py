"""What can be proved of a table: worst cases by matrix inequalities, exact proofs, the theorem.

See docs/mathematics.md, section 15.
"""
