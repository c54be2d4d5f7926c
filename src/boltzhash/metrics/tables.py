"""A report as plain text, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from boltzhash.metrics.report import Report

_STATISTICS = ("balance", "correlation", "distinct", "entropy")

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


class _Cell(NamedTuple):
    """A value as shown, whether it is the best of its column, and the letters it is marked with."""

    value: str
    best: bool = False
    marks: str = ""


def text(report: Report) -> str:
    header, rows = _table(report, lambda cell: "*" * cell.best + f"{cell.value} {cell.marks}")
    lines = [["", *header], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    best = f"* best; {_note(report)}" if len(report.methods) > 1 else ""
    return "\n".join(filter(None, [report.title, *shown, best]))


def markdown(report: Report) -> str:
    def show(cell: _Cell) -> str:
        value = f"**{cell.value}**" if cell.best else cell.value
        return value + (f"<sup>{cell.marks}</sup>" if cell.marks else "")

    header, rows = _table(report, show)
    lines = [["", *header], ["---"] * (len(header) + 1), *rows]
    table = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
    note = f"Bold: best; {_note(report)}." if len(report.methods) > 1 else ""
    return "\n\n".join(filter(None, [report.title, table, note])) + "\n"


def latex(report: Report) -> str:
    def show(cell: _Cell) -> str:
        value = _escaped(cell.value)
        value = f"\\textbf{{{value}}}" if cell.best else value
        return value + (f"$^{{\\mathrm{{{cell.marks}}}}}$" if cell.marks else "")

    header, rows = _table(report, show)
    columns = "ll" + "r" * (len(header) - 1)
    note = [f"% {_escaped(_note(report))}"] if len(report.methods) > 1 else []
    lines = [
        f"% {_escaped(report.title)}",
        *note,
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(["", *map(_escaped, header)]).strip() + r" \\",
        "\\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _table(report: Report, show: Callable[[_Cell], str]) -> tuple[list[str], list[list[str]]]:
    """The header and the rows: letter, method, measures, statistics of the codes."""
    from boltzhash.metrics.report import LETTERS

    letters = dict(zip(report.methods, LETTERS, strict=False))
    statistics = _STATISTICS if report.codes else ()
    rows = []
    for method in report.methods:
        cells = [_Cell(letters[method] if len(letters) > 1 else ""), _Cell(method)]
        cells += [_measured(report, method, measure, letters) for measure in report.measures]
        for name in statistics:
            value = getattr(report.codes.get(method), name, None)
            cells.append(_Cell("" if value is None else _number(value)))
        rows.append([show(cell).rstrip() for cell in cells])
    return ["method", *report.measures, *statistics], rows


def _measured(report: Report, method: str, measure: str, letters: dict[str, str]) -> _Cell:
    value = report.mean(method, measure)
    best = max(report.mean(other, measure) for other in report.methods)
    marks = "".join(letters[other] for other in report.better(method, measure))
    return _Cell(_number(value), best=len(letters) > 1 and value == best, marks=marks)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _note(report: Report) -> str:
    """What the marks mean and how they were found."""
    pairs = len(report.methods) * (len(report.methods) - 1) // 2
    found = any(report.better(m, measure) for m in report.methods for measure in report.measures)
    how = (
        f"paired permutation test over {report.n_queries} queries, {report.resamples} resamples, "
        f"Holm's correction for {pairs} {'pair' if pairs == 1 else 'pairs'}, alpha {report.alpha:g}"
    )
    what = "letters: significantly better than that method" if found else ""
    return f"{what or 'no difference is significant'} ({how})"


def _escaped(value: str) -> str:
    r"""
    >>> _escaped("a_b & 5%")
    'a\\_b \\& 5\\%'
    """
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _LATEX[found[0]], value)
