"""Write the README's accuracy table from validation runs: ``python -m simulator.validation.accuracy_table``.

The table stands between two marker lines and is never edited by hand. ``--classes`` writes the same errors of the first
run as a CSV (chip, class, n, mean_error_percent, bias_percent, origin) that studies take their intervals from.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from simulator.errors import UserError
from simulator.hw.loader import load_hw
from simulator.validation.errors import ErrorSummary
from simulator.validation.evaluation import SplitEvaluation, evaluate
from simulator.validation.measured import read_measured

BEGIN, END = "<!-- accuracy: begin (generated) -->", "<!-- accuracy: end -->"
REPORTED_SPLIT = "check"
HEADER = ("Kernels", "n", "mean error", "median", "bias", "within 20 %", "roofline", "wave model")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of this module; exit code 2 with one sentence for bad input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hw", required=True)
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--classes", type=Path)
    parser.add_argument("--run", nargs=3, action="append", required=True, metavar=("TITLE", "MEASURED", "PREDICTED"), dest="runs")
    options = parser.parse_args(arguments)
    try:
        runs = [(title, _reported(Path(measured), Path(predicted), options.hw)) for title, measured, predicted in options.runs]
        tables = ["\n".join(_lines(title, split)) for title, split in runs]
        if options.classes:
            origin = f"{Path(options.runs[0][1]).name} split {REPORTED_SPLIT}"
            class_errors(runs[0][1], options.hw, origin).to_csv(options.classes, index=False, lineterminator="\n")
        text = options.readme.read_text(encoding="utf-8")
        options.readme.write_text(replace_between_markers(text, "\n\n".join(tables)), encoding="utf-8")
    except UserError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    return 0


def table(title: str, measured: Path, predicted: Path, hw: str) -> str:
    """The Markdown table of the reported split of one validation run."""
    return "\n".join(_lines(title, _reported(measured, predicted, hw)))


def class_errors(split: SplitEvaluation, chip: str, origin: str) -> pd.DataFrame:
    """Measured errors of each kernel class and of all, as a study reads them; per cent with one decimal."""
    summaries = split.families | ({"all": split.total} if split.total is not None else {})
    rows = [(chip, name, s.n, round(s.mape, 1), round(s.bias, 1), origin) for name, s in summaries.items()]
    return pd.DataFrame(rows, columns=["chip", "class", "n", "mean_error_percent", "bias_percent", "origin"])


def _reported(measured: Path, predicted: Path, hw: str) -> SplitEvaluation:
    """The errors of the reported split of one run."""
    whole_file, predictions = read_measured(measured), pd.read_csv(predicted, dtype=str, keep_default_na=False)
    cases = whole_file[whole_file["id"].isin(predictions["id"])].reset_index(drop=True)
    if sorted(cases["id"]) != sorted(predictions["id"]):
        raise UserError(f"{predicted} is not a prediction of {measured}: it has ids that the file lacks")
    predictions = predictions.set_index("id").loc[cases["id"]].reset_index()
    evaluation = evaluate(cases, predictions, load_hw(hw), whole_file)
    if REPORTED_SPLIT not in evaluation.splits:
        raise UserError(f"{measured} has no measured cases in the split {REPORTED_SPLIT}")
    return evaluation.splits[REPORTED_SPLIT]


def replace_between_markers(text: str, content: str) -> str:
    """``text`` with everything between the two marker lines replaced by ``content``."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"the README lacks the marker lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def _lines(title: str, split: SplitEvaluation) -> Iterator[str]:
    yield f"**{title}**: {split.n_supported} of {split.n_with_cubin} compiled kernels predicted."
    yield ""
    yield _row(HEADER)
    yield _row(["---", *["---:"] * (len(HEADER) - 1)])
    for family, summary in split.families.items():
        yield _row([f"`{family}`", *_cells(summary, split, family)])
    for bucket, summary in split.buckets.items():
        yield _row([f"measured {bucket}", *_cells(summary, split, "")])
    if split.total is not None:
        yield _row([f"**{cell}**" for cell in ("all", *_cells(split.total, split, "all"))])


def _cells(summary: ErrorSummary, split: SplitEvaluation, family: str) -> list[str]:
    formulas = [split.baselines.get(name, {}).get(family) for name in HEADER[-2:]]
    return [
        str(summary.n),
        f"{summary.mape:.1f} %",
        f"{summary.median:.1f} %",
        f"{summary.bias:+.1f} %",
        f"{summary.within_20:.0f} %",
        *(f"{formula.mape:.0f} %" if formula is not None else "" for formula in formulas),
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
