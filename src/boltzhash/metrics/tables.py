"""Tables of measures as plain text, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


class Cell(NamedTuple):
    """A value as shown, whether it is the best of its column, and the letters it is marked with."""

    value: str
    best: bool = False
    marks: str = ""


class Table(NamedTuple):
    """What is shown of an evaluation: one method per row, with its letter in the first column.

    ``note`` says what the marks mean; it is empty if there is nothing to compare.
    """

    title: str
    header: list[str]
    rows: list[list[Cell]]
    note: str

    def shown(self, show: Callable[[Cell], str]) -> list[list[str]]:
        """The cells of each row as strings."""
        return [[show(cell).rstrip() for cell in row] for row in self.rows]


def text(table: Table) -> str:
    rows = table.shown(lambda cell: "*" * cell.best + f"{cell.value} {cell.marks}")
    lines = [table.header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    best = f"* best; {table.note}" if table.note else ""
    return "\n".join(filter(None, [table.title, *shown, best]))


def markdown(table: Table) -> str:
    def show(cell: Cell) -> str:
        value = f"**{cell.value}**" if cell.best else cell.value
        return value + (f"<sup>{cell.marks}</sup>" if cell.marks else "")

    lines = [table.header, ["---"] * len(table.header), *table.shown(show)]
    body = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
    note = f"Bold: best; {table.note}." if table.note else ""
    return "\n\n".join(filter(None, [table.title, body, note])) + "\n"


def latex(table: Table) -> str:
    def show(cell: Cell) -> str:
        value = _escaped(cell.value)
        value = f"\\textbf{{{value}}}" if cell.best else value
        return value + (f"$^{{\\mathrm{{{cell.marks}}}}}$" if cell.marks else "")

    columns = "ll" + "r" * (len(table.header) - 2)
    lines = [
        f"% {_escaped(table.title)}",
        *([f"% {_escaped(table.note)}"] if table.note else []),
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(map(_escaped, table.header)).strip() + r" \\",
        "\\midrule",
        *(" & ".join(row) + r" \\" for row in table.shown(show)),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    r"""
    >>> _escaped("a_b & 5%")
    'a\\_b \\& 5\\%'
    """
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _LATEX[found[0]], value)
