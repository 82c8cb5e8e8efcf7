"""What the site does to its pages: roles of docstrings, :class:`X`, become plain code."""

import re

ROLE = re.compile(r":(?:class|func|meth):<code>(?:[\w.]*\.)?(\w+)</code>")


def on_page_content(html: str, **_: object) -> str:
    """Take the roles out of a page that is rendered."""
    return ROLE.sub(r"<code>\1</code>", html)
