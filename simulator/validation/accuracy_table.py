"""Write the README's accuracy table from the committed error tables: ``python -m simulator.validation.accuracy_table``.

The table stands between two marker lines and is never edited by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from simulator.errors import UserError
from simulator.validation.error_table import CYCLES, DURATION, FAMILY, read_error_table
from simulator.validation.evaluation import ALL, REPORTED_SPLIT

BEGIN, END = "<!-- accuracy: begin (generated) -->", "<!-- accuracy: end -->"
HEADER = ("Kernels", "n", "mean error", "median", "bias", "within 20 %", "roofline", "wave model")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of this module; exit code 2 with one sentence for bad input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--run", nargs=2, action="append", required=True, metavar=("TITLE", "ERRORS.csv"), dest="runs")
    options = parser.parse_args(arguments)
    try:
        content = "\n\n".join(table(title, Path(errors)) for title, errors in options.runs)
        text = options.readme.read_text(encoding="utf-8")
        options.readme.write_text(replace_between_markers(text, content), encoding="utf-8")
    except UserError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    return 0


def table(title: str, errors: Path) -> str:
    """The Markdown table of the reported split of one error table."""
    rows = read_error_table(errors)
    rows = rows[(rows["split"] == REPORTED_SPLIT) & (rows["quantity"] == CYCLES)]
    if rows.empty:
        raise UserError(f"{errors} has no errors of the split {REPORTED_SPLIT}")
    return "\n".join(_lines(title, rows))


def replace_between_markers(text: str, content: str) -> str:
    """``text`` with everything between the two marker lines replaced by ``content``."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"the README lacks the marker lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def _lines(title: str, rows: pd.DataFrame) -> Iterator[str]:
    (total,) = rows[rows["group"] == ALL].to_dict("records")
    yield f"**{title}**: {total['n']:.0f} of {total['compiled']:.0f} compiled kernels predicted."
    yield ""
    yield _row(HEADER)
    yield _row(["---", *["---:"] * (len(HEADER) - 1)])
    for row in rows[rows["group"] == FAMILY].to_dict("records"):
        yield _row([f"`{row['name']}`", *_cells(row)])
    for row in rows[rows["group"] == DURATION].to_dict("records"):
        yield _row([f"measured {row['name']}", *_cells(row)])
    yield _row([f"**{cell}**" for cell in (ALL, *_cells(total))])


def _cells(row: dict) -> list[str]:
    return [
        f"{row['n']:.0f}",
        f"{row['mean']:.1f} %",
        f"{row['median']:.1f} %",
        f"{row['bias']:+.1f} %",
        f"{row['within_20']:.0f} %",
        *("" if pd.isna(row[name]) else f"{row[name]:.0f} %" for name in HEADER[-2:]),
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
