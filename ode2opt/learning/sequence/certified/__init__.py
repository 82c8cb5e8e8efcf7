"""Tables that are learned inside what can be proved of them (docs/mathematics.md, section 15)."""
