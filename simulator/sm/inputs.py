"""What the engine reads: the lowered program. Columns are named here, once.

Times are ticks; ``CYCLE`` ticks are one SM cycle, the only unit of time in compiled code.
``pack`` puts a program into one int64 array (``k`` in compiled functions), tables at offsets in its header.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulator.compiled import compiled
from simulator.isa.effects import BYTE, LINE_BYTES, MASK_BITS

TICK_SHIFT = 16
CYCLE = 1 << TICK_SHIFT
"""Ticks per SM cycle: fine enough that the chip-wide L2 time of a sector (0.006 cycles) is an integer within 0.3 %."""

# Columns of Program.static. PORT: ticks of shared-memory port of an MMA's operands; KIND: sub-kind of the effect;
# ARGUMENT: its static operand; CONTENTION: extra dispatch ticks beside running MMAs; REASON: stall reason of a wait
# on its scoreboard; IDLE_PASS: whether it takes a pass of the shared-memory port when all its lanes
# are off; NUMBER: of the row; PHASE: of the warp, times N_CAUSES.
(
    I_EFFECT,
    I_PIPE,
    I_INTERVAL,
    I_PORT,
    I_LATENCY,
    I_STALL,
    I_WRITE,
    I_READ,
    I_WAIT,
    I_KIND,
    I_ARGUMENT,
    I_CONTENTION,
    I_REASON,
    I_IDLE_PASS,
    I_NUMBER,
    I_PHASE,
    STATIC_SIZE,
) = range(17)

# Columns of Program.event_table. COORDINATE and BASE take five columns each, from the named one on.
(
    E_WAVEFRONTS,
    E_PATTERN,
    E_ADDRESS,
    E_TENSOR,
    E_MBARRIER,
    E_COUNT,
    E_PARITY,
    E_COORDINATE,
) = range(8)
E_BASE = E_COORDINATE + 5
EVENT_SIZE = E_BASE + 5

# Columns of Program.tensor. ROW: ticks per box row; WAVEFRONTS: shared-memory port ticks per row; PROMOTION: bytes that an
# L2 miss fills at least; SHAPE, STRIDE and BOX take five columns each.
T_ADDRESS, T_ELEMENT, T_DIMENSIONS, T_ROW, T_WAVEFRONTS, T_PROMOTION, T_SHAPE = range(7)
T_STRIDE = T_SHAPE + 5
T_BOX = T_STRIDE + 5
TENSOR_SIZE = T_BOX + 5

# Header of a packed program: offsets of its tables.
(
    K_STATIC,
    K_EVENTS,
    K_VARIANTS,
    K_LINES,
    K_SLOTS,
    K_N_SLOTS,
    K_TENSORS,
    K_CTA_CLASS,
    K_CTA_BASE,
    K_N_CTAS,
    K_STREAM_START,
    K_STREAMS,
    PROGRAM_HEADER,
) = range(13)

# A stream entry: static row, active lanes, event row + 1.
ACTIVE_SHIFT = 24
EVENT_SHIFT = 32


class Program(NamedTuple):
    """``static`` int64 [n_static, STATIC_SIZE]; streams of all classes and warps one after another:
    ``instruction`` int32, ``active`` uint8, ``event`` int32 (-1 none), stream of (class c, warp j) from
    ``stream_start[c * n_warps + j]``; ``event_table`` int64 [n_events, EVENT_SIZE].
    Global patterns: lines of (pattern p, misalignment slot m) are rows ``variant_start[p * n_slots + m]`` on of
    ``line_offset`` (lines from the origin) and ``line_mask`` (sectors); ``misalignment_slot`` int64 [LINE_BYTES + 1],
    its last entry is n_slots.  ``tensor`` int64 [n, TENSOR_SIZE]; ``cta_class`` int32 [n_ctas],
    ``cta_base`` int64 [n_ctas, columns]."""

    static: np.ndarray
    instruction: np.ndarray
    active: np.ndarray
    event: np.ndarray
    stream_start: np.ndarray
    event_table: np.ndarray
    variant_start: np.ndarray
    line_offset: np.ndarray
    line_mask: np.ndarray
    misalignment_slot: np.ndarray
    tensor: np.ndarray
    cta_class: np.ndarray
    cta_base: np.ndarray

    @property
    def n_warps(self) -> int:
        """Warps of a CTA."""
        return (len(self.stream_start) - 1) // (int(self.cta_class.max(initial=0)) + 1)


def pack(program: Program) -> np.ndarray:
    """The program as one int64 array: header, then tables. Filled in place: streams are most of a trace's memory."""
    tables = {
        K_STATIC: program.static,
        K_EVENTS: program.event_table,
        K_VARIANTS: program.variant_start,
        K_LINES: program.line_offset,
        K_SLOTS: program.misalignment_slot,
        K_TENSORS: program.tensor,
        K_CTA_CLASS: program.cta_class,
        K_CTA_BASE: program.cta_base,
        K_STREAM_START: program.stream_start,
        K_STREAMS: program.instruction,
    }
    packed = np.zeros(PROGRAM_HEADER + sum(table.size for table in tables.values()), np.int64)
    place = PROGRAM_HEADER
    pieces = {}
    for entry, table in tables.items():
        packed[entry] = place
        pieces[entry] = packed[place : place + table.size]
        pieces[entry][:] = table.reshape(-1)
        place += table.size
    pieces[K_LINES] <<= MASK_BITS
    pieces[K_LINES] |= program.line_mask
    _add_shifted(pieces[K_STREAMS], program.active, ACTIVE_SHIFT)
    _add_shifted(pieces[K_STREAMS], program.event, EVENT_SHIFT)
    pieces[K_STREAMS] += 1 << EVENT_SHIFT
    packed[K_N_SLOTS] = program.misalignment_slot[LINE_BYTES]
    packed[K_N_CTAS] = len(program.cta_class)
    return packed


def _add_shifted(words: np.ndarray, values: np.ndarray, shift: int) -> None:
    """``words`` += ``values`` << ``shift``, a piece at a time."""
    for first in range(0, len(words), PIECE):
        part = slice(first, first + PIECE)
        words[part] += values[part].astype(np.int64) << shift


PIECE = 1 << 20
"""Stream entries that are packed at a time."""


@compiled
def static_row(k, i):
    """Offset of the static row of stream entry ``i``."""
    return k[K_STATIC] + (k[k[K_STREAMS] + i] & ((1 << ACTIVE_SHIFT) - 1)) * STATIC_SIZE


@compiled
def active_lanes(k, i):
    """Lanes of stream entry ``i`` whose guard holds."""
    return k[k[K_STREAMS] + i] >> ACTIVE_SHIFT & BYTE


@compiled
def event_row(k, i):
    """Offset of the event row of stream entry ``i``, -1 if it has none."""
    number = (k[k[K_STREAMS] + i] >> EVENT_SHIFT) - 1
    return k[K_EVENTS] + number * EVENT_SIZE if number >= 0 else -1
