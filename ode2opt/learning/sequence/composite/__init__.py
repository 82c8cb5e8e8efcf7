"""Tables with a prox, learned for families with a penalty (docs/mathematics.md, section 19)."""
