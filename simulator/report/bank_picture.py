"""The lane x bank picture of a shared-memory access and the line x sector picture of a global one, as text."""

from __future__ import annotations

import numpy as np
from rich.text import Text

from simulator.lower.access_kinds import KIND_RULES
from simulator.lower.bank_use import BankUse
from simulator.report.format import plural

WAYS_STYLES = ((1, "green"), (2, "yellow"), (4, "dark_orange"), (8, "red"), (1 << 30, "bold magenta"))
"""Largest number of words that a bank delivers in a phase, and how the cell looks."""

_EMPTY = "·"
_WIDE_CELLS_UP_TO = 32
_MARGIN = len("lane 00 ")


def bank_text(use: BankUse) -> Text:
    """One row per lane, one column per bank; a cell holds the words that its bank delivers in that lane's phase."""
    cell = 2 if use.rules.n_banks <= _WIDE_CELLS_UP_TO else 1
    text = Text(no_wrap=True)
    text.append(_ruler(use.rules.n_banks, cell) + "\n", style="dim")
    for number, lanes in enumerate(use.phases):
        cost = int(use.words[number].max()) * KIND_RULES[use.kind].wavefronts_per_visit
        headline = f"── phase {number + 1} of {len(use.phases)}: {plural(cost, 'wavefront')} "
        text.append(headline.ljust(_MARGIN + cell * use.rules.n_banks, "─") + "\n", style="cyan")
        for lane in lanes:
            text.append(f"lane {lane:<{_MARGIN - 5}}", style="dim")
            for bank in range(use.rules.n_banks):
                _append_cell(text, int(use.words[number, bank]) if use.touches[lane, bank] else 0, cell)
            text.append("\n")
    idle = sum(use.phase_of(lane) is None for lane in range(len(use.touches)))
    if idle:
        text.append(f"── {plural(idle, 'lane')} without part in it\n", style="dim")
    return text


def sector_text(lines: np.ndarray, used: np.ndarray, sector_bytes: int) -> Text:
    """One row per line, one cell per sector with the bytes of it that lanes use (from ``sector_use``)."""
    text = Text(no_wrap=True)
    text.append(f"{'line':>10}  bytes used of each {sector_bytes}-byte sector\n", style="dim")
    for line, sectors in zip(lines.tolist(), used.tolist(), strict=True):
        text.append(f"{line:>10}  ", style="dim")
        for n_bytes in sectors:
            style = "dim" if n_bytes == 0 else _use_style(n_bytes / sector_bytes)
            text.append(f"{n_bytes or _EMPTY:>4}", style=style)
        text.append("\n")
    return text


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
