"""The lane x bank picture of a shared-memory access and the line x sector picture of a global one, as PNG."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.lower.access_answer import bank_rules
from simulator.lower.access_kinds import AccessKind
from simulator.lower.bank_use import BankUse, bank_use
from simulator.projection.tile_accesses import KINDS, TileAccess
from simulator.report.study_style import Drawing

_WAYS_COLOURS = ("#f4f4f2", "#4c9f70", "#e9c46a", "#f4a261", "#e76f51", "#a4036f")
_USE_COLOURS = ("#f4f4f2", "#e76f51", "#e9c46a", "#4c9f70")
_PHASE_COLOURS = ("#33658a", "#86bbd8")
TICK_EVERY = 4


def save_bank_png(use: BankUse, path: Path, title: str) -> None:
    """Write the lane x bank picture with the words per bank below it."""
    _save(_bank_figure(use, title), path)


def bank_drawing(access: TileAccess, chip: HardwareConfig) -> Drawing:
    """The lane x bank picture of a design's access. UserError for one that has no lanes."""
    if not access.lane_offsets:
        raise UserError("this design has no access by lanes to draw: its operands are fetched by bulk copies and multiply-adds")
    kind = KINDS[access.name.split(".")[0]]
    is_matrix = kind in (AccessKind.LDSM, AccessKind.STSM)
    width = max(access.width_bytes // 4, 1) if is_matrix else access.width_bytes
    use = bank_use(kind, width, np.array(access.lane_offsets, np.int64), bank_rules(chip))
    title = f"{access.name} on {chip.name}"
    caption = f"{title}: {access.wavefronts} wavefronts, ideal {access.ideal_wavefronts}; numbers: words that a bank delivers."
    return Drawing("banks", caption, caption, _bank_figure(use, title))


def _bank_figure(use: BankUse, title: str) -> Figure:
    figure, (grid, bars) = _figure(title, lanes=len(use.touches))
    ways = np.zeros(use.touches.shape, dtype=np.int64)
    for number, lanes in enumerate(use.phases):
        ways[list(lanes)] = use.touches[list(lanes)] * use.words[number]
    bounds = [0, 1, 2, 3, 5, 9, 1 << 30]
    grid.imshow(ways, cmap=ListedColormap(_WAYS_COLOURS), norm=BoundaryNorm(bounds, len(_WAYS_COLOURS)), aspect="auto")
    for lane, bank in np.argwhere(ways > 1):
        grid.text(bank, lane, str(ways[lane, bank]), ha="center", va="center", fontsize=5, color="#222222")
    _separate_phases(grid, use)
    grid.set_yticks(range(0, len(use.touches), TICK_EVERY))
    grid.set_ylabel("lane")
    bottom = np.zeros(use.rules.n_banks, dtype=np.int64)
    for number, words in enumerate(use.words):
        colour = _PHASE_COLOURS[number % len(_PHASE_COLOURS)]
        bars.bar(np.arange(use.rules.n_banks), words, bottom=bottom, width=0.85, color=colour)
        bottom = bottom + words
    bars.set_ylabel("words, all phases")
    bars.set_xlabel(f"bank ({use.rules.bank_width_bytes} bytes wide)")
    bars.set_xticks(range(0, use.rules.n_banks, TICK_EVERY))
    bars.set_xlim(-0.5, use.rules.n_banks - 0.5)
    return figure


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
