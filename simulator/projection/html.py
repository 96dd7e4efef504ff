"""A result as a small table of HTML, which a notebook shows when a cell ends with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

CELL = "text-align:left;vertical-align:top"


def html_card(subject: str, headline: str, groups: Mapping[str, Iterable[Sequence[str]]]) -> str:
    """``subject`` in bold, the answer in one line, then each group: its title, and a row of texts for every line."""
    parts = [f"<p><b>{escape(subject)}</b><br>{escape(headline)}</p>"]
    rows = [_rows(title, list(lines)) for title, lines in groups.items()]
    return "".join([*parts, "<table>", *rows, "</table>"])


def _rows(title: str, lines: Sequence[Sequence[str]]) -> str:
    """The title stands before the first line, and spans them all."""
    if not lines:
        return ""
    head = f'<th style="{CELL}" rowspan="{len(lines)}">{escape(title)}</th>'
    cells = ["".join(f'<td style="{CELL}">{escape(text)}</td>' for text in line) for line in lines]
    return "".join(f"<tr>{head if number == 0 else ''}{line}</tr>" for number, line in enumerate(cells))
