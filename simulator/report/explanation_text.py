"""What-if answers, advice and the hottest instructions for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.projection.advice import Advice
from simulator.projection.annotated_code import CodeLine
from simulator.projection.explanations import Explanations
from simulator.projection.what_if import WhatIf
from simulator.report.format import percent, scaled, signed_percent, whole, words


def render(more: Explanations) -> RenderableType:
    """Everything that was asked for, in the order of its use."""
    return Group(*_parts(more))


def _parts(more: Explanations) -> Iterator[RenderableType]:
    if more.what_if is not None:
        yield Text("\nWhat if one resource were ideal (each replayed)", style="bold")
        yield _what_if(more.what_if)
    if more.advice is not None:
        yield Text("\nAdvice", style="bold")
        yield from _advice(more.advice)
    if more.code is not None:
        yield Text("\nInstructions with most stall cycles", style="bold")
        yield _code(more.code)


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name, is_number in columns:
        table.add_column(name, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    return table


def _what_if(answers: Sequence[WhatIf]) -> RenderableType:
    table = _table(("", False), ("cycles", True), ("gain", True), ("stack", True), ("overlap", True), ("", False))
    for answer in answers:
        note = "scheduling anomaly" if answer.is_anomaly else answer.sentence
        shares = (percent(answer.gain), percent(answer.stack_share), signed_percent(100 * answer.remainder))
        table.add_row(words(answer.name), whole(answer.cycles), *shares, Text(note, style="dim"))
    return table


def _advice(advice: Sequence[Advice]) -> Iterator[RenderableType]:
    if not advice:
        yield Text("No rule found a change that saves 2 % or more.")
    for item in advice:
        yield Text.assemble((f"{percent(item.gain):>7} ", "bold green"), item.advice)
        yield Text(f"        {words(item.rule)}: {item.threshold}", style="dim")
        for place in item.where:
            yield Text(f"        at {place}", style="dim")


def _code(code: Sequence[CodeLine]) -> RenderableType:
    counts = (("wavefronts", True), ("sectors", True))
    table = _table(("share", True), ("stall cycles", True), ("issues", True), ("mostly", False), *counts, ("", False))
    for line in code:
        waves = f"{scaled(line.wavefronts)}/{scaled(line.ideal_wavefronts)}" if line.wavefronts else ""
        sectors = scaled(line.sectors) if line.sectors else ""
        text = Text(f"{line.address:05x} {line.text}")
        text.append(f"  {line.source}" if line.source else "", style="dim")
        table.add_row(
            percent(line.share), scaled(line.stall_cycles), scaled(line.issues), words(line.top_reason), waves, sectors, text
        )
    return table
