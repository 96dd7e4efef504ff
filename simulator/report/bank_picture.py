"""The lane x bank picture of a shared-memory access and the line x sector picture of a global one: text and PNG."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from rich.text import Text

from simulator.lower.access_kinds import KIND_RULES
from simulator.lower.bank_use import BankUse

WAYS_STYLES = ((1, "green"), (2, "yellow"), (4, "dark_orange"), (8, "red"), (1 << 30, "bold magenta"))
"""Largest number of words that a bank delivers in a phase, and how the cell looks."""

_WAYS_COLOURS = ("#f4f4f2", "#4c9f70", "#e9c46a", "#f4a261", "#e76f51", "#a4036f")
_USE_COLOURS = ("#f4f4f2", "#e76f51", "#e9c46a", "#4c9f70")
_EMPTY = "·"
_WIDE_CELLS_UP_TO = 32
_MARGIN = len("lane 00 ")


def bank_text(use: BankUse) -> Text:
    """One row per lane, one column per bank; a cell holds the words that its bank delivers in that lane's phase."""
    cell = 2 if use.rules.n_banks <= _WIDE_CELLS_UP_TO else 1
    text = Text(_ruler(use.rules.n_banks, cell) + "\n", style="dim", no_wrap=True)
    for number, lanes in enumerate(use.phases):
        cost = int(use.words[number].max()) * KIND_RULES[use.kind].wavefronts_per_visit
        headline = f"── phase {number + 1} of {len(use.phases)}: {_plural(cost, 'wavefront')} "
        text.append(headline.ljust(_MARGIN + cell * use.rules.n_banks, "─") + "\n", style="cyan")
        for lane in lanes:
            text.append(f"lane {lane:<{_MARGIN - 5}}", style="dim")
            for bank in range(use.rules.n_banks):
                _append_cell(text, int(use.words[number, bank]) if use.touches[lane, bank] else 0, cell)
            text.append("\n")
    idle = sum(use.phase_of(lane) is None for lane in range(len(use.touches)))
    if idle:
        text.append(f"── {_plural(idle, 'lane')} without part in it\n", style="dim")
    return text


def sector_text(lines: np.ndarray, used: np.ndarray, sector_bytes: int) -> Text:
    """One row per line, one cell per sector with the bytes of it that lanes use (from ``sector_use``)."""
    text = Text(f"{'line':>10}  bytes used of each {sector_bytes}-byte sector\n", style="dim", no_wrap=True)
    for line, sectors in zip(lines.tolist(), used.tolist(), strict=True):
        text.append(f"{line:>10}  ", style="dim")
        for n_bytes in sectors:
            style = "dim" if n_bytes == 0 else _use_style(n_bytes / sector_bytes)
            text.append(f"{n_bytes or _EMPTY:>4}", style=style)
        text.append("\n")
    return text


def save_bank_png(use: BankUse, path: Path, title: str) -> None:
    """Write the lane x bank picture with the words per bank below it."""
    figure, (grid, bars) = _figure(title, lanes=len(use.touches))
    ways = np.zeros(use.touches.shape, dtype=np.int64)
    for number, lanes in enumerate(use.phases):
        ways[list(lanes)] = use.touches[list(lanes)] * use.words[number]
    bounds = [0, 1, 2, 3, 5, 9, 1 << 30]
    image = grid.imshow(
        ways, cmap=ListedColormap(_WAYS_COLOURS), norm=BoundaryNorm(bounds, len(_WAYS_COLOURS)), aspect="auto"
    )
    image.set_rasterized(False)
    for lane, bank in np.argwhere(ways > 1):
        grid.text(bank, lane, str(ways[lane, bank]), ha="center", va="center", fontsize=5, color="#222222")
    _separate_phases(grid, use)
    grid.set_ylabel("lane")
    bottom = np.zeros(use.rules.n_banks, dtype=np.int64)
    for words in use.words:
        bars.bar(np.arange(use.rules.n_banks), words, bottom=bottom, width=0.85, edgecolor="white", linewidth=0.5)
        bottom = bottom + words
    bars.set_ylabel("words, all phases")
    bars.set_xlabel(f"bank ({use.rules.bank_width_bytes} bytes wide)")
    bars.set_xlim(-0.5, use.rules.n_banks - 0.5)
    _save(figure, path)


def save_sector_png(lines: np.ndarray, used: np.ndarray, sector_bytes: int, path: Path, title: str) -> None:
    """Write the line x sector picture."""
    figure = Figure(figsize=(6, 1.6 + 0.28 * max(len(lines), 3)), layout="constrained")
    figure.suptitle(title, fontsize=11, fontweight="bold")
    axes = figure.subplots()
    shown = used if len(lines) else np.zeros((1, used.shape[1]), dtype=np.int64)
    bounds = [0, 1, sector_bytes // 2, sector_bytes, sector_bytes + 1]
    axes.imshow(shown, cmap=ListedColormap(_USE_COLOURS), norm=BoundaryNorm(bounds, len(_USE_COLOURS)), aspect="auto")
    for row, sector in np.argwhere(shown > 0):
        axes.text(sector, row, f"{shown[row, sector]} B", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(shown.shape[1]))
    axes.set_yticks(range(len(lines)), [str(line) for line in lines])
    axes.set_xlabel(f"sector of the line ({sector_bytes} bytes)")
    axes.set_ylabel("line")
    _save(figure, path)


def _ruler(n_banks: int, cell: int) -> str:
    marks = "".join(f"{bank:>{cell}}".ljust(cell * 4) for bank in range(0, n_banks, 4))
    return "bank".ljust(_MARGIN) + marks.rstrip()


def _append_cell(text: Text, words: int, cell: int) -> None:
    if not words:
        text.append(f"{_EMPTY:>{cell}}", style="dim")
        return
    shown = str(words) if len(str(words)) <= cell else "+"
    text.append(f"{shown:>{cell}}", style=next(style for most, style in WAYS_STYLES if words <= most))


def _use_style(share: float) -> str:
    return "green" if share >= 1 else "yellow" if share >= 0.5 else "red"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _figure(title: str, lanes: int) -> tuple[Figure, tuple[Axes, Axes]]:
    figure = Figure(figsize=(9, 2.6 + 0.16 * lanes), layout="constrained")
    figure.suptitle(title, fontsize=11, fontweight="bold")
    grid, bars = figure.subplots(2, 1, sharex=True, height_ratios=[0.16 * lanes, 1.4])
    return figure, (grid, bars)


def _separate_phases(axes: Axes, use: BankUse) -> None:
    """A line wherever the next lane belongs to another phase."""
    lanes = range(len(use.touches))
    edge = 0
    for _, run in groupby(lanes, key=use.phase_of):
        edge += len(list(run))
        if edge < len(use.touches):
            axes.axhline(edge - 0.5, color="#555555", linewidth=0.8)


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, format="png", dpi=150)
