"""Two results side by side for a terminal: a comparison, a gate's outcome, measured counters beside projected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.projection.difference import Change, Difference
from simulator.projection.expectation import Check
from simulator.projection.sarif import sentence
from simulator.report.format import percent, plural, scaled, signed_percent, whole, words
from simulator.validation.profiler_comparison import ProfilerComparison

MOST_ROWS = 8
"""Of each table on a terminal; the JSON document has all."""
Shown = Callable[[float], str]


def render(difference: Difference, a: str, b: str) -> RenderableType:
    """A comparison: the verdict, then where the cycles went."""
    return Group(*_parts(difference, a, b))


def _parts(d: Difference, a: str, b: str) -> Iterator[RenderableType]:
    yield Text.assemble("A ", (a, "bold"), f": {whole(d.cycles.a)} cycles")
    yield Text.assemble("B ", (b, "bold"), f": {whole(d.cycles.b)} cycles ({signed_percent(100 * (d.ratio - 1))})")
    yield Text(d.sentence(), style="bold green")
    yield from _table("Cycles by cause", d.causes, whole)
    yield from _table("Issue slots of resident warps", d.stalls, percent, lambda share: f"{100 * share:.1f} points")
    yield from _table("Lower bounds, cycles", d.bounds, whole)
    yield from _table("Bytes moved", d.bytes, lambda value: scaled(value, "B"))
    yield from _table("Stall cycles by instruction", d.code, whole)
    yield from _table("Other figures", d.figures, lambda value: f"{value:,.6g}")
    for key, (old, new) in d.texts.items():
        yield Text(f"{words(key)}: {words(old)} -> {words(new)}")


def _table(title: str, changes: Sequence[Change], shown: Shown, step: Shown | None = None) -> Iterator[RenderableType]:
    """``step``: how a difference is written, where not as the values are."""
    if not changes:
        return
    yield Text(f"\n{title}", style="bold")
    table = Table(box=None, padding=(0, 2), header_style="dim", pad_edge=False)
    table.add_column("")
    for name in ("A", "B", "B - A"):
        table.add_column(name, justify="right")
    for change in changes[:MOST_ROWS]:
        sign = "-" if change.difference < 0 else "+"
        table.add_row(words(change.name), shown(change.a), shown(change.b), sign + (step or shown)(abs(change.difference)))
    yield table
    if len(changes) > MOST_ROWS:
        yield Text(f"and {len(changes) - MOST_ROWS} more", style="dim")


def render_checks(checks: Sequence[Check]) -> RenderableType:
    """One line per expectation."""
    return Group(
        *[Text(f"{'ok    ' if c.passed else 'FAILED'} {sentence(c)}", style="green" if c.passed else "bold red") for c in checks]
    )


def render_profiler(found: ProfilerComparison) -> RenderableType:
    """Measured and projected figures, and what explains a difference."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("figure", overflow="fold")
    for name in ("measured", "projected", "error"):
        table.add_column(name, justify="right")
    table.add_column("unit", style="dim")
    for row in (row for row in found.rows if row.measured or row.projected):
        error = "-" if row.error is None else signed_percent(100 * row.error)
        style = "bold yellow" if row.explains else ""
        measured, projected, unit = row.shown()
        table.add_row(row.projection, measured, projected, error, unit, style=style)
    parts: list[RenderableType] = [Text.assemble((found.kernel, "bold"), f", launch {found.launch} of the CSV"), table]
    parts.append(Text(found.explanation[:1].upper() + found.explanation[1:], style="bold green"))
    if found.unknown:
        n_unknown = plural(len(found.unknown), "measured figure")
        parts.append(Text(f"{n_unknown} without a counterpart in the projection", style="dim"))
    return Group(*parts)
