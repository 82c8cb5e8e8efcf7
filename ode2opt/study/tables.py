"""One kind of table for all that shows some: on a terminal, on a page, in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rich import box
from rich.table import Table

from ode2opt.base.terminal import plain
from ode2opt.study.page import Page


@dataclass(frozen=True)
class Sheet:
    """Rows of text.

    Attributes:
        columns: their names.
        rows: a text for each column.
        title: stands above it on a terminal; empty by default.
        caption: stands below it; empty by default.
        texts: columns of words, which stand on the left, as the first column does.
        bold: the row that a terminal shows in bold type; None by default.
    """

    columns: list[str]
    rows: list[list[str]]
    title: str = ""
    caption: str = ""
    texts: Collection[str] = ()
    bold: int | None = None

    def terminal(self) -> Table:
        """Return it for a terminal; words are wrapped, numbers are not."""
        table = Table(
            title=plain(self.title) if self.title else None,
            caption=plain(self.caption) if self.caption else None,
            caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        )  # fmt: skip
        for name in self.columns:
            wrapped = name in self.texts
            left = wrapped or name == self.columns[0]
            table.add_column(plain(name), justify="left" if left else "right", no_wrap=not wrapped)
        for i, row in enumerate(self.rows):
            table.add_row(*map(plain, row), style="bold" if i == self.bold else "")
        return table

    def add_to(self, page: Page) -> None:
        """Add it to a page."""
        page.add_table(self.columns, self.rows, self.caption)

    def markdown(self) -> str:
        """Return it in Markdown, with its caption below."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{body}\n\n{self.caption}\n"

    def latex(self, caption: str) -> str:
        """Return it in LaTeX, whose tables are numbered by themselves."""
        head, *rows = (" & ".join(map(_tex, line)) + r" \\" for line in (self.columns, *self.rows))
        lines = [
            r"\begin{table}", r"\centering", rf"\caption{{{_tex(caption)}}}",
            rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}", r"\toprule", head, r"\midrule",
            *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
        ]  # fmt: skip
        return "\n".join(lines)


def _tex(text: str) -> str:
    for sign in "&%_#":
        text = text.replace(sign, "\\" + sign)
    text = text.replace("<", "$<$").replace(">", "$>$")
    return f"${text[0]}${text[1:]}" if text[:1] in {"+", "-"} and text != "-" else text
