"""The pre-check card of a design as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.projection.tile_accesses import TileAccess
from simulator.projection.tile_card import TileCard
from simulator.report.format import plural, words
from simulator.report.projection_text import blocks
from simulator.report.summary import interval_text

N_ACCESSES = 6
N_TRIED = 12


def render(card: TileCard) -> RenderableType:
    """The card on one screen."""
    return Group(*(_illegal(card) if card.violations else _legal(card)))


def _illegal(card: TileCard) -> Iterator[RenderableType]:
    yield Text(f"Not legal on {card.hw}", style="bold red")
    for violation in card.violations:
        change = f" -> {violation.change}" if violation.change else ""
        yield Text.assemble(("  ✗ ", "red"), violation.message, (change, "bold green"))
    if card.nearest_legal is None:
        yield Text("No sequence of single changes makes it legal.")
        return
    yield Text(f"nearest legal design: {_difference(card.design, card.nearest_legal)}", style="bold green")


def _difference(old: BaseModel, new: BaseModel) -> str:
    before, after = old.model_dump(), new.model_dump()
    return ", ".join(f"{name} {_short(after[name])}" for name in after if after[name] != before[name])


def _short(value: object) -> str:
    return "x".join(str(v) for v in value.values()) if isinstance(value, dict) else str(value)


def _legal(card: TileCard) -> Iterator[RenderableType]:
    p, resident = card.projection, card.occupancy
    assert p is not None and resident is not None
    yield Text.assemble((_title(card.design), "bold"), f" on {card.hw}: ", ("legal", "bold green"))
    yield Text(
        f"{p.cycles:,.0f} cycles, {_time(p.time_us)} at {p.clock_mhz:.0f} MHz, {_rate(card)}, bound by {words(p.bound_by)} "
        f"({card.bound_share:.0%} of that bound)",
        style="bold green",
    )
    if p.interval:
        yield Text(interval_text(p.interval, p.cycles, p.time_us))
    if card.library_us is not None:
        share = card.library_us / p.time_us
        yield Text(f"measured vendor library: {_time(card.library_us)} ({share:.0%} of this design's time)")
    yield Text("")
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "Occupancy",
        f"{resident.occupancy:.1%}",
        f"{plural(resident.ctas_per_sm, 'CTA')} per SM, {plural(resident.warps_per_sm, 'warp')}, limited by "
        + " and ".join(map(words, resident.limiters)),
    )
    table.add_row("Registers", str(card.registers), "per thread, from live ranges of the generated code")
    table.add_row("Shared memory", f"{resident.smem_allocated_per_cta:,}", "bytes per CTA with the reserved part")
    for cliff in resident.cliffs:
        change = ", ".join(
            f"{amount:+,} {'bytes of shared memory' if name == 'smem' else name}" for name, amount in cliff.change.items()
        )
        table.add_row("Next cliff", plural(cliff.ctas_per_sm, "CTA") if cliff.ctas_per_sm else "no CTA", f"per SM with {change}")
    yield table
    if card.accesses:
        yield from _accesses(card.accesses)
    yield Text("\nBottlenecks (share of resident warps' time)", style="bold")
    yield _bars([(name.replace("_", " "), share) for name, share in card.bottlenecks])
    if card.tried:
        yield Text("\nSingle-step changes, simulated (cycles saved)", style="bold")
        yield _changes(card)
    for warning in card.warnings:
        yield Text(f"Warning: {warning}", style="yellow")
    yield Text(f"{card.seconds:.2f} s; the time is extrapolated from {p.parts} simulated part(s)", style="dim")


def _rate(card: TileCard) -> str:
    if card.dram_share is not None:
        return f"{card.gigabytes_per_second:,.0f} GB/s ({card.dram_share:.0%} of the DRAM's peak)"
    if card.tflops and card.tflops >= 1:
        return f"{card.tflops:,.0f} TFLOP/s"
    return f"{card.gigabytes_per_second:,.0f} GB/s"


def _title(design: BaseModel) -> str:
    if title := getattr(design, "title", ""):
        return str(title)
    values = design.model_dump()
    extents = "x".join(str(values[name]) for name in ("m", "n", "k") if name in values)
    parts = [str(values["kind"]), extents or str(getattr(design, "problem", "")), str(values.get("dtype", ""))]
    if values.get("weights"):
        parts.append(f"weights {values['weights']}")
    if "tile" in values:
        parts.append(f"tile {_short(values['tile'])}")
    parts += [f"{name} {values[name]}" for name in ("stages", "warps") if name in values]
    return " ".join(part for part in parts if part)


def _time(us: float) -> str:
    return f"{us / 1e3:,.2f} ms" if us >= 1e3 else f"{us:,.1f} us"


def _accesses(accesses: tuple[TileAccess, ...]) -> Iterator[RenderableType]:
    yield Text("\nShared memory, per execution", style="bold")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("access", "bytes/lane", "wavefronts", "ideal", "conflicts", "times per CTA"):
        table.add_column(name, justify="left" if name == "access" else "right")
    for a in accesses[:N_ACCESSES]:
        style = "bold red" if a.bank_conflicts else ""
        table.add_row(
            a.name,
            str(a.width_bytes or ""),
            str(a.wavefronts),
            str(a.ideal_wavefronts),
            str(a.bank_conflicts),
            f"{a.executions:,}",
            style=style,
        )
    yield table
    for a in accesses[:N_ACCESSES]:
        if a.suggestion is not None:
            yield Text(f"{a.name}: {a.suggestion.text}", style="green")


def _bars(rows: list[tuple[str, float]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, share in rows:
        table.add_row(name, Text(blocks(share), style="cyan"), f"{share:.1%}")
    return table


def _changes(card: TileCard) -> Table:
    table = Table.grid(padding=(0, 2))
    for one in card.tried[:N_TRIED]:
        style = "bold green" if one in card.suggestions else "dim"
        table.add_row(Text(one.change, style=style), Text(f"{one.saves:+.1%}", style=style))
    return table
