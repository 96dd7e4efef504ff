"""Event rows of the program: wavefronts, lines and sectors of each access, boxes of each bulk copy."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.lower.access_answer import bank_rules
from simulator.lower.access_kinds import AccessKind
from simulator.lower.global_access import global_lines, l1_data_wavefronts
from simulator.lower.instructions import ticks
from simulator.lower.shared_access import shared_wavefronts_batch
from simulator.sm.inputs import (
    E_ADDRESS,
    E_BASE,
    E_COORDINATE,
    E_COUNT,
    E_MBARRIER,
    E_PARITY,
    E_PATTERN,
    E_TENSOR,
    E_WAVEFRONTS,
    EVENT_SIZE,
    T_ADDRESS,
    T_BOX,
    T_DIMENSIONS,
    T_ELEMENT,
    T_PROMOTION,
    T_ROW,
    T_SHAPE,
    T_STRIDE,
    T_WAVEFRONTS,
    TENSOR_SIZE,
)
from simulator.trace.kernel_trace import LANES, NONE, EventTable, KernelTrace, Stream, TensorMap

_SHARED_KINDS = {
    "LDS": AccessKind.LDS,
    "STS": AccessKind.STS,
    "LDSM": AccessKind.LDSM,
    "STSM": AccessKind.STSM,
    "ATOMS": AccessKind.ATOMS_RMW,
    "LDGSTS": AccessKind.STS,
}
_MATRIX_KINDS = (AccessKind.LDSM, AccessKind.STSM)
_PLAIN_BULK = ("UBLKCP", "UBLKRED", "UBLKPF")
_ATOMIC_BASES = ("RED", "REDG", "ATOM", "ATOMG", "ATOMS")
BYTES_PER_MATRIX_LANE = 4
"""width_bytes of LDSM and STSM counts four bytes per lane and 8x8 matrix (kernel_trace.StaticTable)."""


def separate_uses(trace: KernelTrace) -> KernelTrace:
    """The trace with one event row per kind and width of access: instructions of different width share rows otherwise."""
    bases = trace.static.mnemonics.tolist()
    kinds: dict[tuple[str, int], int] = {}
    kind = np.array([kinds.setdefault(use, len(kinds)) for use in zip(bases, trace.static.width_bytes.tolist(), strict=True)])
    lowest = np.full(len(trace.events), len(kinds), np.int64)
    highest = np.full(len(trace.events), -1, np.int64)
    for stream in (s for warps in trace.streams for s in warps):
        used = stream.event >= 0
        np.minimum.at(lowest, stream.event[used], kind[stream.instruction[used]])
        np.maximum.at(highest, stream.event[used], kind[stream.instruction[used]])
    if not (lowest < highest).any():
        return trace
    uses = [s.event.astype(np.int64) * len(kinds) + kind[s.instruction] for warps in trace.streams for s in warps]
    known = np.unique(np.concatenate([use[use >= 0] for use in uses]))
    columns = {f.name: getattr(trace.events, f.name)[known // len(kinds)] for f in fields(trace.events)}

    def renumber(stream: Stream) -> Stream:
        use = stream.event.astype(np.int64) * len(kinds) + kind[stream.instruction]
        row = np.searchsorted(known, use).astype(np.int32)
        return replace(stream, event=np.where(stream.event >= 0, row, np.int32(NONE)).astype(np.int32))

    streams = tuple(tuple(renumber(s) for s in warps) for warps in trace.streams)
    return replace(trace, events=EventTable(**columns), streams=streams)


class EventUse:
    """Which static instruction each event belongs to. Arrays [n_events]: ``instruction`` (static row, -1 unused), ``base`` of its
    opcode, ``width`` in bytes, ``lanes`` that execute it."""

    def __init__(self, trace: KernelTrace) -> None:
        self.instruction = np.full(len(trace.events), -1, np.int64)
        self.lanes = np.zeros(len(trace.events), np.int64)
        for warps in trace.streams:
            for stream in warps:
                used = stream.event >= 0
                self.instruction[stream.event[used]] = stream.instruction[used]
                self.lanes[stream.event[used]] = stream.active[used]
        self.base = np.append(trace.static.mnemonics, "")[self.instruction]
        self.width = np.append(trace.static.width_bytes.astype(np.int64), 0)[self.instruction]


def lower_events(trace: KernelTrace, hw: HardwareConfig) -> dict[str, np.ndarray]:
    """Event table and the global-line tables, as keyword arguments of ``Program``."""
    use = EventUse(trace)
    events = trace.events
    table = np.zeros((len(events), EVENT_SIZE), np.int64)
    table[:, E_PATTERN] = NONE
    table[:, E_TENSOR] = events.tensor
    table[:, E_ADDRESS] = events.address
    table[:, E_PARITY] = events.parity
    table[:, E_COUNT] = events.count
    arrivals = _is_arrival(trace)[use.instruction] & (events.count == 0)
    table[arrivals, E_COUNT] = use.lanes[arrivals]
    table[:, E_COORDINATE : E_COORDINATE + 5] = events.coordinate
    table[:, E_BASE : E_BASE + 5] = events.base
    plain = plain_copy_maps(trace)[1]
    copies = plain >= 0
    table[copies, E_TENSOR] = plain[copies]
    table[copies, E_COORDINATE] = events.address[copies]
    _number_mbarriers(table, events.mbarrier)
    table[:, E_WAVEFRONTS] = _shared_costs(trace, use, hw)[0]
    lines = _lower_global(table, trace, use, hw)
    local = np.isin(use.base, ("LDL", "STL"))
    table[local, E_COUNT] = np.maximum(use.width[local] // 4, 1)
    return {"event_table": table, **lines}


def _is_arrival(trace: KernelTrace) -> np.ndarray:
    """Whether each static instruction, and the unused one after them, arrives at an mbarrier, once for each of its lanes."""
    is_one = [opcode.startswith("SYNCS.ARRIVE") and "A1T0" in opcode for opcode in trace.static.opcode]
    return np.array([*is_one, False])


def n_mbarriers(event_table: np.ndarray) -> int:
    """Number of distinct mbarriers of a CTA."""
    return int(event_table[:, E_MBARRIER].max(initial=-1)) + 1


def _number_mbarriers(table: np.ndarray, offsets: np.ndarray) -> None:
    known = np.unique(offsets[offsets >= 0])
    table[:, E_MBARRIER] = np.where(offsets >= 0, np.searchsorted(known, offsets), NONE)


def shared_costs(trace: KernelTrace, hw: HardwareConfig) -> tuple[np.ndarray, np.ndarray]:
    """Wavefronts and bank conflicts of the shared side of each event, int64 [n_events] each."""
    return _shared_costs(trace, EventUse(trace), hw)


def _shared_costs(trace: KernelTrace, use: EventUse, hw: HardwareConfig) -> tuple[np.ndarray, np.ndarray]:
    wavefronts = np.zeros(len(trace.events), np.int64)
    conflicts = np.zeros(len(trace.events), np.int64)
    for base, kind in _SHARED_KINDS.items():
        rows = np.flatnonzero(use.base == base)
        if not len(rows):
            continue
        pattern = (trace.events.shared_pattern if base == "LDGSTS" else trace.events.pattern)[rows]
        keep = pattern >= 0
        rows, pattern = rows[keep], pattern[keep]
        width = use.width[rows]
        if kind in _MATRIX_KINDS:
            width = np.maximum(width // BYTES_PER_MATRIX_LANE, 1)
        shapes, inverse = np.unique(np.stack([pattern, width], 1), axis=0, return_inverse=True)
        if not len(shapes):
            continue
        cost = shared_wavefronts_batch(kind, shapes[:, 1], trace.lane_patterns[shapes[:, 0]], *bank_rules(hw))
        wavefronts[rows] = np.asarray(cost.wavefronts)[inverse.ravel()]
        conflicts[rows] = np.asarray(cost.bank_conflicts)[inverse.ravel()]
    return wavefronts, conflicts


def _lower_global(table: np.ndarray, trace: KernelTrace, use: EventUse, hw: HardwareConfig) -> dict[str, np.ndarray]:
    """Line tables of every (pattern, width) that a global access uses, at every misalignment that occurs."""
    l1 = hw.execution_sections().l1
    line_bytes = l1.line_bytes
    shared_bases = [base for base in _SHARED_KINDS if base != "LDGSTS"]
    rows = np.flatnonzero((trace.events.pattern >= 0) & ~np.isin(use.base, shared_bases) & (use.base != ""))
    shapes, inverse = np.unique(np.stack([trace.events.pattern[rows], use.width[rows]], 1), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    table[rows, E_PATTERN] = inverse
    shifts, slots = _misalignments(trace, rows, line_bytes)
    if not len(shapes):
        return {
            "variant_start": np.zeros(2, np.int64),
            "line_offset": np.zeros(1, np.int32),
            "line_mask": np.zeros(1, np.uint8),
            "misalignment_slot": slots,
        }
    patterns = np.repeat(trace.lane_patterns[shapes[:, 0]], len(shifts), axis=0)
    widths = np.repeat(shapes[:, 1], len(shifts))
    lines = global_lines(widths, patterns, np.tile(shifts, len(shapes)), l1.sector_bytes, line_bytes)
    data = _data_passes(trace, shapes, hw)
    table[rows, E_WAVEFRONTS] = np.maximum(table[rows, E_WAVEFRONTS], data[inverse])
    _count_same_address(table, trace, use, rows, shapes, inverse)
    return {
        "variant_start": np.asarray(lines.start, np.int64),
        "line_offset": np.asarray(lines.line_offset, np.int32),
        "line_mask": np.asarray(lines.sector_mask, np.uint8),
        "misalignment_slot": slots,
    }


def _misalignments(trace: KernelTrace, rows: np.ndarray, line_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct distances of CTA origins from a line boundary, and their slot by distance (last entry: how many)."""
    columns = np.unique(trace.events.base[rows, 0])
    columns = columns[columns >= 0]
    origin = np.unique(trace.events.address[rows] % line_bytes) if len(rows) else np.zeros(1, np.int64)
    shifts = origin
    if len(columns):
        moved = np.unique(trace.cta_base[:, columns] % line_bytes)
        shifts = np.unique((origin[:, None] + np.append(moved, 0)[None, :]) % line_bytes)
    slots = np.zeros(line_bytes + 1, np.int64)
    slots[shifts] = np.arange(len(shifts))
    slots[line_bytes] = len(shifts)
    return shifts, slots


def _data_passes(trace: KernelTrace, shapes: np.ndarray, hw: HardwareConfig) -> np.ndarray:
    """Passes through the L1's data banks, which are those of shared memory (measured: N-way strides cost N)."""
    patterns = trace.lane_patterns[shapes[:, 0]]
    return np.asarray(
        l1_data_wavefronts(np.clip(shapes[:, 1], 1, 16), patterns, hw.shared_memory.n_banks, hw.shared_memory.bank_width_bytes)
    )


def _count_same_address(
    table: np.ndarray, trace: KernelTrace, use: EventUse, rows: np.ndarray, shapes: np.ndarray, inverse: np.ndarray
) -> None:
    """For atomics, E_COUNT is the largest number of lanes on one address."""
    atomic = np.isin(use.base[rows], _ATOMIC_BASES)
    if not atomic.any():
        return
    most = np.zeros(len(shapes), np.int64)
    for i, pattern in enumerate(trace.lane_patterns[shapes[:, 0]]):
        offsets = pattern[pattern >= 0]
        most[i] = np.unique(offsets, return_counts=True)[1].max(initial=1)
    table[rows[atomic], E_COUNT] = most[inverse[atomic]]


def plain_copy_maps(trace: KernelTrace) -> tuple[tuple[TensorMap, ...], np.ndarray]:
    """Bulk copies without a tensor map, as maps of one dimension: (maps beyond the trace's, map of each event or NONE)."""
    use = EventUse(trace)
    plain = np.isin(use.base, _PLAIN_BULK) & (trace.events.tensor < 0)
    sizes = np.unique(trace.events.count[plain])
    maps = tuple(TensorMap(f"{size} bytes", 1, (1 << 48,), (), (int(size),), 0, 0) for size in sizes)
    number = len(trace.tensor_maps) + np.searchsorted(sizes, trace.events.count)
    return maps, np.where(plain, number, NONE)


def lower_tensors(trace: KernelTrace, timing: Timing) -> np.ndarray:
    """Tensor maps, int64 [n, TENSOR_SIZE]; a row's time includes the fill rate of its bytes."""
    maps = trace.tensor_maps + plain_copy_maps(trace)[0]
    table = np.zeros((max(1, len(maps)), TENSOR_SIZE), np.int64)
    for row, tensor in zip(table, maps, strict=False):
        n = len(tensor.shape)
        row[T_ADDRESS] = tensor.address
        row[T_ELEMENT] = tensor.element_bytes
        row[T_DIMENSIONS] = n
        row[T_ROW] = ticks(_row_cycles(tensor, timing) * tensor.row_share)
        row[T_WAVEFRONTS] = ticks(
            tensor.box[0]
            * tensor.element_bytes
            / timing.tensor_async.operand_bytes_per_cycle
            * timing.shared.fill_wavefront_cycles
            * tensor.row_share
        )
        row[T_PROMOTION] = tensor.l2_promotion_bytes
        row[T_SHAPE : T_SHAPE + n] = tensor.shape
        row[T_STRIDE + 1 : T_STRIDE + n] = tensor.strides_bytes[: n - 1]
        row[T_BOX : T_BOX + n] = tensor.box
    return table


def _row_cycles(tensor: TensorMap, timing: Timing) -> float:
    bulk = timing.bulk
    row_bytes = tensor.box[0] * tensor.element_bytes
    misaligned = any(stride % bulk.aligned_pitch_bytes for stride in tensor.strides_bytes)
    rate = bulk.full_line_row_cycles if row_bytes > LANES * 2 else bulk.row_cycles
    if misaligned:
        rate = bulk.misaligned_row_cycles
    return max(rate, row_bytes / bulk.fill_bytes_per_cycle)
