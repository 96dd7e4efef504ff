"""A projection as text for a terminal (rich renderables; the command line prints them)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.projection.projection import Projection
from simulator.report import summary
from simulator.report.summary import Bar, Fact

BAR_CELLS = 28
N_WEAK_INPUTS = 4
"""The JSON document lists them all."""
EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(projection: Projection) -> RenderableType:
    """Everything that a reader wants first, on one screen."""
    return Group(*_parts(projection))


def _parts(projection: Projection) -> Iterator[RenderableType]:
    yield Text.assemble((projection.kernel, "bold"), f" on {projection.hw}")
    yield Text(summary.headline(projection), style="bold green")
    if projection.interval:
        yield Text(summary.interval_text(projection.interval, projection.cycles, projection.time_us))
    yield Text("")
    yield _facts(summary.facts(projection))
    yield from _chart("Where the cycles go", summary.stack_bars(projection), "green")
    for line in summary.diagnosis_lines(projection):
        yield Text(line, style="italic")
    yield from _chart("Issue slots of resident warps", summary.stall_bars(projection), "cyan")
    yield from _chart("Lower bounds, cycles", summary.bound_bars(projection), "magenta")
    yield from _chart("Bytes moved", summary.byte_bars(projection), "blue")
    weak = summary.weak_inputs(projection)[:N_WEAK_INPUTS]
    if weak:
        yield Text("\nLeast certain inputs", style="bold")
        yield _facts(weak)
    for warning in projection.warnings:
        yield Text(f"Warning: {warning}", style="yellow")
    yield Text(summary.effort(projection), style="dim")


def _facts(facts: Sequence[Fact]) -> Table:
    table = Table.grid(padding=(0, 2))
    for fact in facts:
        table.add_row(fact.label, Text(fact.value, style="bold"), Text(fact.note, style="dim"))
    return table


def _chart(title: str, bars: Sequence[Bar], colour: str) -> Iterator[RenderableType]:
    if not bars:
        return
    yield Text(f"\n{title}", style="bold")
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=18)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for bar in bars:
        table.add_row(bar.label, Text(blocks(bar.share), style=colour), bar.value, Text(bar.note, style="dim"))
    yield table


def blocks(share: float, n_cells: int = BAR_CELLS) -> str:
    """A bar of block characters, ``share`` 0..1 of ``n_cells``, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * n_cells * 8)
    full, part = divmod(eighths, 8)
    return (EIGHTHS[-1] * full + (EIGHTHS[part] if part else "")).ljust(n_cells)
