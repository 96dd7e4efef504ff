"""The error tables of a validation run for a terminal (rich renderables; the command line prints them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.report.format import signed_percent, words
from simulator.validation.errors import Agreement, ErrorSummary
from simulator.validation.evaluation import Evaluation, SplitEvaluation

N_REASONS_SHOWN = 12
ERROR_COLUMNS = ("n", "MAPE", "median", "bias", "p90", "<= 10 %", "<= 20 %")


def render(evaluation: Evaluation) -> RenderableType:
    """What was predicted, how well, and what was not."""
    return Group(*_parts(evaluation))


def verdict(evaluation: Evaluation) -> str:
    """The run in one line."""
    text = f"{evaluation.n_supported} of {evaluation.n_cases} cases predicted"
    totals = [
        f"{name}: MAPE {split.total.mape:.1f} %, median {split.total.median:.1f} % over {split.total.n}"
        for name, split in evaluation.splits.items()
        if split.total is not None
    ]
    return "; ".join([text, *totals])


def _parts(evaluation: Evaluation) -> Iterator[RenderableType]:
    for name, split in evaluation.splits.items():
        yield _errors(name, split)
        if split.agreements:
            yield _counters(name, split.agreements)
    if evaluation.reasons:
        yield _unsupported(evaluation.reasons)
    yield Text(verdict(evaluation), style="bold")


def _errors(name: str, split: SplitEvaluation) -> Table:
    share = 100 * split.n_supported / split.n_with_cubin if split.n_with_cubin else 0.0
    title = f"Cycles, split {name}: {split.n_supported} of {split.n_with_cubin} compiled kernels ({share:.1f} %)"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("family")
    for column in (*ERROR_COLUMNS, *split.baselines):
        table.add_column(column, justify="right")
    for family, summary in split.families.items():
        table.add_row(family, *_cells(summary), *_baseline_cells(split.baselines, family))
    table.add_section()
    for bucket, summary in split.buckets.items():
        table.add_row(bucket, *_cells(summary))
    table.add_section()
    if split.total is not None:
        table.add_row("all", *_cells(split.total), *_baseline_cells(split.baselines, "all"), style="bold")
    return table


def _counters(name: str, agreements: Sequence[Agreement]) -> Table:
    table = Table(title=f"Counters, split {name}", title_justify="left", title_style="bold")
    for column in ("counter", "n", "cases within", "tolerance", "median error", "p90"):
        table.add_column(column, justify="left" if column == "counter" else "right")
    for item in agreements:
        figures = ("-" if value is None else f"{value:.2f} {item.unit}" for value in (item.median, item.p90))
        table.add_row(words(item.counter), str(item.n), f"{item.within:.1f} %", f"{item.tolerance:g} {item.unit}", *figures)
    return table


def _unsupported(reasons: Mapping[str, int]) -> Table:
    table = Table(title="Not predicted", title_justify="left", title_style="bold")
    table.add_column("cases", justify="right")
    table.add_column("reason", overflow="fold")
    shown = list(reasons.items())[:N_REASONS_SHOWN]
    for reason, n_cases in shown:
        table.add_row(str(n_cases), reason)
    rest = sum(reasons.values()) - sum(n_cases for _, n_cases in shown)
    if rest:
        table.add_row(str(rest), "other reasons: see the output file")
    return table


def _cells(summary: ErrorSummary) -> list[str]:
    return [
        str(summary.n),
        f"{summary.mape:.1f} %",
        f"{summary.median:.1f} %",
        signed_percent(summary.bias),
        f"{summary.p90:.1f} %",
        f"{summary.within_10:.0f} %",
        f"{summary.within_20:.0f} %",
    ]


def _baseline_cells(baselines: Mapping[str, Mapping[str, ErrorSummary]], family: str) -> list[str]:
    """MAPE of each formula over the cases of ``family`` that it and we both predict."""
    summaries = [families.get(family) for families in baselines.values()]
    return [f"{summary.mape:.1f} %" if summary is not None else "-" for summary in summaries]
