"""Global accesses: which lines and 32-byte sectors one warp instruction touches, and what the L1 needs to serve them.

A request is cut into lines (the unit of a cache tag) and sectors (the unit of a transfer); each distinct sector that
an active lane touches moves once, whatever the number of lanes in it.  Exact on the 365 global patterns measured with
hardware counters in tests/data/access_patterns.csv and tests/data/access_patterns_masked.csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from simulator.lower.access_kinds import AccessKind
from simulator.lower.shared_access import shared_wavefronts_batch


class SectorCount(NamedTuple):
    """Per pattern, int64 [n_patterns]: distinct sectors and distinct lines touched."""

    sectors: np.ndarray
    lines: np.ndarray


class LineTable(NamedTuple):
    """Touched lines of each pattern, in ascending order.

    Pattern p owns rows ``start[p]:start[p + 1]`` (int64 [n_patterns + 1]) of ``line_offset`` (int32: lines from the
    line that holds the pattern origin) and ``sector_mask`` (uint8: bit s = sector s of that line is touched).
    """

    start: np.ndarray
    line_offset: np.ndarray
    sector_mask: np.ndarray


def global_sectors(width_bytes: ArrayLike, lane_offsets: np.ndarray, sector_bytes: int, line_bytes: int) -> SectorCount:
    """Sectors and lines of ``lane_offsets`` (int bytes from a line boundary, [n_patterns, lanes], -1 = inactive)."""
    table = global_lines(width_bytes, lane_offsets, 0, sector_bytes, line_bytes)
    set_bits = np.unpackbits(table.sector_mask[:, None], axis=1).sum(axis=1, dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(set_bits)))
    return SectorCount(before[table.start[1:]] - before[table.start[:-1]], np.diff(table.start))


def global_lines(
    width_bytes: ArrayLike,
    lane_offsets: np.ndarray,
    misalignment: ArrayLike,
    sector_bytes: int,
    line_bytes: int,
) -> LineTable:
    """Lines and sector masks of every pattern.

    ``misalignment``: bytes by which the pattern origin lies beyond a line boundary, a scalar or [n_patterns], as
    ``width_bytes``.  Lines have at most eight sectors (the mask is one byte): ValueError otherwise.
    """
    if line_bytes % sector_bytes or not 0 < line_bytes // sector_bytes <= MASK_BITS:
        raise ValueError(f"a line of {line_bytes} bytes does not hold 1 to {MASK_BITS} sectors of {sector_bytes} bytes")
    offsets = np.ascontiguousarray(lane_offsets, dtype=np.int64)
    n_patterns = len(offsets)
    widths = np.ascontiguousarray(np.broadcast_to(np.asarray(width_bytes, np.int64), n_patterns))
    shifts = np.ascontiguousarray(np.broadcast_to(np.asarray(misalignment, np.int64), n_patterns))
    lines_per_lane = 1 + (int(widths.max(initial=1)) + line_bytes - 2) // line_bytes
    start, line, mask = _cut_patterns(offsets, widths, shifts, sector_bytes, line_bytes, lines_per_lane)
    return LineTable(start, line, mask)


MASK_BITS = 8


def ideal_sectors(width_bytes: int, lane_offsets: Sequence[int] | np.ndarray, sector_bytes: int) -> int:
    """Sectors that the distinct bytes of one pattern would fill if they lay side by side."""
    offsets = np.asarray(lane_offsets, np.int64)
    touched = (offsets[offsets >= 0][:, None] + np.arange(width_bytes)).ravel()
    return -(-len(np.unique(touched)) // sector_bytes)


def sector_use(
    width_bytes: int, lane_offsets: np.ndarray, sector_bytes: int, line_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Touched line numbers [n_lines], ascending, and the distinct bytes used of each sector [n_lines, sectors]."""
    offsets = np.asarray(lane_offsets, np.int64)
    touched = np.unique((offsets[offsets >= 0][:, None] + np.arange(width_bytes)).ravel())
    lines, row = np.unique(touched // line_bytes, return_inverse=True)
    used = np.zeros((len(lines), line_bytes // sector_bytes), np.int64)
    np.add.at(used, (row, touched % line_bytes // sector_bytes), 1)
    return lines, used


def l1_data_wavefronts(
    width_bytes: ArrayLike, lane_offsets: np.ndarray, n_banks: int, bank_width_bytes: int
) -> np.ndarray:
    """Passes over the data array that a load served by the L1 needs, int64 [n_patterns].

    The lines lie in the same banks as shared memory, and paired lanes are not merged (measured with
    l1tex__data_pipe_lsu_wavefronts: exact for up to four lines, up to 9 % more with many, where replays come in).
    """
    return shared_wavefronts_batch(AccessKind.STS, width_bytes, lane_offsets, n_banks, bank_width_bytes).wavefronts


def l1_tag_passes(lines: LineTable, bank_masks: Sequence[int]) -> np.ndarray:
    """Passes through the tag stage, int64 [n_patterns]: the most lines of a pattern that fall into one tag bank.

    The tag bank of a line has one bit per mask: the parity of (line number AND mask).  ``lines`` must be counted from
    an address that is a multiple of the masks' reach.
    """
    bank = np.zeros(len(lines.line_offset), np.int64)
    for mask in bank_masks:
        bank = 2 * bank + _parity(lines.line_offset.astype(np.int64) & mask)
    n_patterns = len(lines.start) - 1
    pattern = np.repeat(np.arange(n_patterns), np.diff(lines.start))
    per_bank = np.zeros((n_patterns, 1 << len(bank_masks)), np.int64)
    np.add.at(per_bank, (pattern, bank), 1)
    most: np.ndarray = per_bank.max(axis=1, initial=0)
    return most


def _parity(values: np.ndarray) -> np.ndarray:
    folded = values.copy()
    for shift in (32, 16, 8, 4, 2, 1):
        folded ^= folded >> shift
    return folded & 1


@njit(cache=True)
def _cut_patterns(offsets, widths, shifts, sector_bytes, line_bytes, lines_per_lane):  # type: ignore[no-untyped-def]
    """Arrays of a LineTable; ``lines_per_lane`` bounds the lines that one lane can touch."""
    n_patterns, n_lanes = offsets.shape
    start = np.zeros(n_patterns + 1, np.int64)
    line_offset = np.empty(n_patterns * n_lanes * lines_per_lane, np.int32)
    sector_mask = np.empty(len(line_offset), np.uint8)
    end = 0
    for p in range(n_patterns):
        first = end
        for lane in range(n_lanes):
            if offsets[p, lane] < 0:
                continue
            byte = shifts[p] + offsets[p, lane]
            for sector in range(byte // sector_bytes, (byte + widths[p] - 1) // sector_bytes + 1):
                line = sector * sector_bytes // line_bytes
                bit = sector - line * line_bytes // sector_bytes
                end = _touch(line_offset, sector_mask, first, end, line, bit)
        start[p + 1] = end
    return start, line_offset[:end].copy(), sector_mask[:end].copy()


@njit(cache=True)
def _touch(line_offset, sector_mask, first, end, line, bit):  # type: ignore[no-untyped-def]
    """Set the sector's bit in the sorted rows first:end, inserting its line if it is new; returns the new end."""
    place = end
    while place > first and line_offset[place - 1] > line:
        place -= 1
    if place > first and line_offset[place - 1] == line:
        sector_mask[place - 1] |= np.uint8(1 << bit)
        return end
    for row in range(end, place, -1):
        line_offset[row] = line_offset[row - 1]
        sector_mask[row] = sector_mask[row - 1]
    line_offset[place] = line
    sector_mask[place] = np.uint8(1 << bit)
    return end + 1
