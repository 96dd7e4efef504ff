"""Programs for the engine, put together from instructions written down one by one (instructions.py names them).

A program is a list of instructions per warp; times are SM cycles::

    load = shared(write=0, latency=23)
    outcome = run([[load, alu(wait=(0,))]])
    assert outcome.times() == [0, 23]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from simulator.isa import effects as fx
from simulator.isa.effects import LINE_BYTES
from simulator.sm import inputs as at
from simulator.sm.inputs import CYCLE, Program

NO_BOARD = 7


@dataclass(frozen=True)
class Tensor:
    """A tensor map: ``shape`` and ``box`` in elements, innermost first, ``strides`` in bytes of dimensions 1 on;
    ``row_cycles`` of the copy engine and ``port_cycles`` of the shared-memory port per box row; ``promotion``: bytes that an
    L2 miss fills."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element: int = 2
    address: int = 0
    row_cycles: float = 1
    port_cycles: float = 0
    promotion: int = 0

    @property
    def box_bytes(self) -> int:
        return int(np.prod(self.box)) * self.element


@dataclass(frozen=True)
class Event:
    """Operands of an executed instruction; ``lines``: (lines from the origin, sector mask) of a global access;
    ``base``: columns of the CTA's address differences, by coordinate."""

    wavefronts: int = 0
    lines: tuple[tuple[int, int], ...] | None = None
    address: int = 0
    tensor: Tensor | None = None
    mbarrier: int = -1
    count: int = 0
    parity: int = 0
    coordinate: tuple[int, ...] = ()
    base: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Op:
    """One machine instruction and what it operates on. Using the same object again executes it again (a loop)."""

    effect: int = fx.FIXED
    pipe: int = fx.UNPIPED
    interval: float = 0
    latency: float = 0
    stall: float = 1
    write: int = NO_BOARD
    read: int = NO_BOARD
    wait: tuple[int, ...] = ()
    kind: int = 0
    argument: int = 0
    contention: float = 0
    port: float = 0
    reason: int = fx.SHORT_SCOREBOARD
    active: int = 32
    event: Event | None = None


def ticks(cycles: float) -> int:
    """Cycles as ticks, exactly: tests do not round."""
    exact = Fraction(cycles) * CYCLE
    assert exact.denominator == 1, f"{cycles} cycles are no whole number of ticks"
    return int(exact)


@dataclass
class _Tables:
    """Rows of a program while it is put together."""

    ops: list[Op] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    patterns: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    def number(self, table: list[Any], entry: Any) -> int:
        if entry is None:
            return -1
        for n, known in enumerate(table):
            if known is entry or (not isinstance(entry, Op) and known == entry):
                return n
        table.append(entry)
        return len(table) - 1


def assemble(
    warps: Sequence[Sequence[Op]] | None = None,
    *,
    classes: Sequence[Sequence[Sequence[Op]]] | None = None,
    cta_class: Sequence[int] | None = None,
    n_ctas: int = 1,
    cta_base: Sequence[Sequence[int]] | None = None,
) -> Program:
    """The program of ``n_ctas`` CTAs that all run ``warps``, or of CTAs of several ``classes``.
    ``cta_base[cta][column]``: address or coordinate differences."""
    groups = classes if classes is not None else [warps or []]
    streams = [stream for group in groups for stream in group]
    tables = _Tables()
    for stream in streams:
        for op in stream:
            tables.number(tables.ops, op)
    rows = {id(op): n for n, op in enumerate(tables.ops)}
    order = [op for stream in streams for op in stream]
    event = [tables.number(tables.events, op.event) for op in order]
    starts = np.cumsum([0, *map(len, streams)])
    kinds = np.array(cta_class if cta_class is not None else [0] * n_ctas, np.int32)
    base = np.array(cta_base if cta_base is not None else [[0]] * len(kinds), np.int64)
    event_table = np.array([_event_row(e, tables) for e in tables.events] or np.zeros((0, at.EVENT_SIZE)), np.int64)
    lines = [line for pattern in tables.patterns for line in pattern]
    return Program(
        static=np.array([_static_row(op) for op in tables.ops], np.int64).reshape(-1, at.STATIC_SIZE),
        instruction=np.array([rows[id(op)] for op in order], np.int32),
        active=np.array([op.active for op in order], np.uint8),
        event=np.array(event, np.int32),
        stream_start=starts.astype(np.int64),
        event_table=event_table,
        variant_start=np.cumsum([0, *map(len, tables.patterns)]).astype(np.int64),
        line_offset=np.array([offset for offset, _ in lines], np.int32),
        line_mask=np.array([mask for _, mask in lines], np.uint8),
        misalignment_slot=np.array([0] * LINE_BYTES + [1], np.int64),
        tensor=np.array([_tensor_row(t) for t in tables.tensors] or np.zeros((1, at.TENSOR_SIZE)), np.int64),
        cta_class=kinds,
        cta_base=base,
    )


def _static_row(op: Op) -> list[int]:
    row = [0] * at.STATIC_SIZE
    row[at.I_EFFECT], row[at.I_PIPE], row[at.I_KIND], row[at.I_ARGUMENT] = op.effect, op.pipe, op.kind, op.argument
    row[at.I_INTERVAL], row[at.I_LATENCY] = ticks(op.interval), ticks(op.latency)
    row[at.I_STALL], row[at.I_PORT] = ticks(op.stall), ticks(op.port)
    row[at.I_WRITE], row[at.I_READ], row[at.I_REASON] = op.write, op.read, op.reason
    row[at.I_WAIT] = sum(1 << board for board in op.wait)
    row[at.I_CONTENTION] = ticks(op.contention)
    return row


def _event_row(event: Event, tables: _Tables) -> list[int]:
    row = [0] * at.EVENT_SIZE
    row[at.E_WAVEFRONTS], row[at.E_ADDRESS], row[at.E_MBARRIER] = event.wavefronts, event.address, event.mbarrier
    row[at.E_PATTERN] = tables.number(tables.patterns, event.lines)
    row[at.E_TENSOR] = tables.number(tables.tensors, event.tensor)
    row[at.E_COUNT], row[at.E_PARITY] = event.count, event.parity
    for d in range(5):
        row[at.E_COORDINATE + d] = event.coordinate[d] if d < len(event.coordinate) else 0
        row[at.E_BASE + d] = event.base[d] if d < len(event.base) else -1
    return row


def _tensor_row(tensor: Tensor) -> list[int]:
    row = [0] * at.TENSOR_SIZE
    n = len(tensor.shape)
    row[at.T_ADDRESS], row[at.T_ELEMENT], row[at.T_DIMENSIONS] = tensor.address, tensor.element, n
    row[at.T_ROW], row[at.T_WAVEFRONTS] = ticks(tensor.row_cycles), ticks(tensor.port_cycles)
    row[at.T_PROMOTION] = tensor.promotion
    row[at.T_SHAPE : at.T_SHAPE + n] = tensor.shape
    row[at.T_STRIDE + 1 : at.T_STRIDE + n] = tensor.strides
    row[at.T_BOX : at.T_BOX + n] = tensor.box
    return row
