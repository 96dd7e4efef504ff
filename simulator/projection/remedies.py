"""What a piece of advice would change, as an edited trace or program: replayed, it says what the advice is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import LINE_BYTES
from simulator.lower.events import EventUse
from simulator.sm.inputs import CYCLE, T_BOX, T_DIMENSIONS, T_ELEMENT, T_ROW, Program
from simulator.trace.kernel_trace import LANES, KernelTrace, Stream, TensorMap


def without_rows(trace: KernelTrace, rows: np.ndarray) -> KernelTrace:
    """The trace without the instructions of some static rows (bool [n_static]); a warp keeps its last instruction."""

    def kept(stream: Stream) -> Stream:
        keep = ~rows[stream.instruction]
        keep[-1:] = True
        return Stream(stream.instruction[keep], stream.active[keep], stream.event[keep])

    return replace(trace, streams=tuple(tuple(map(kept, warps)) for warps in trace.streams))


def with_dense_accesses(trace: KernelTrace, scattered: np.ndarray) -> KernelTrace:
    """Global accesses of some events (bool [n_events]) as if their lanes were next to each other."""
    use = EventUse(trace)
    patterns = [*trace.lane_patterns]
    numbers: dict[tuple[int, int], int] = {}
    pattern = trace.events.pattern.copy()
    for event in np.flatnonzero(scattered):
        n_lanes = int((trace.lane_patterns[pattern[event]] >= 0).sum())
        shape = (n_lanes, max(1, int(use.width[event])))
        if shape not in numbers:
            numbers[shape] = len(patterns)
            lanes = np.arange(LANES) * shape[1]
            patterns.append(np.where(np.arange(LANES) < n_lanes, lanes, -1))
        pattern[event] = numbers[shape]
    lane_patterns = np.array(patterns, np.int32).reshape(-1, LANES)
    return replace(trace, events=replace(trace.events, pattern=pattern), lane_patterns=lane_patterns)


def with_longer_rows(trace: KernelTrace) -> KernelTrace:
    """Bulk copies of the same bytes whose boxes have rows of a whole line: as many neighbouring rows as fit one are one, in
    the box and in memory. A map whose rows fill a line, or do not come in such numbers, stays as it is."""
    factors = np.array([_rows_in_a_line(box) for box in trace.tensor_maps], np.int64)
    maps = tuple(_merged(box, int(factor)) for box, factor in zip(trace.tensor_maps, factors, strict=True))
    events = trace.events
    factor = np.where(events.tensor >= 0, factors[events.tensor], 1) if len(factors) else np.ones(len(events), np.int64)
    coordinate, base = events.coordinate.copy(), events.base.copy()
    coordinate[:, 0] *= factor
    coordinate[:, 1] //= factor
    columns = list(trace.cta_base.T)
    for event in np.flatnonzero(factor > 1):
        for dimension, scaled in ((0, lambda moved, f: moved * f), (1, lambda moved, f: moved // f)):
            if base[event, dimension] >= 0:
                columns.append(scaled(trace.cta_base[:, base[event, dimension]], factor[event]))
                base[event, dimension] = len(columns) - 1
    return replace(
        trace,
        tensor_maps=maps,
        events=replace(events, coordinate=coordinate, base=base),
        cta_base=np.stack(columns, axis=1) if columns else trace.cta_base,
    )


def _rows_in_a_line(box: TensorMap) -> int:
    """How many rows of a box fill a line together, 1 where their number does not divide."""
    row_bytes = box.box[0] * box.element_bytes
    factor = LINE_BYTES // row_bytes
    return factor if len(box.box) > 1 and factor > 1 and LINE_BYTES % row_bytes == 0 and box.box[1] % factor == 0 else 1


def _merged(box: TensorMap, factor: int) -> TensorMap:
    if factor == 1:
        return box
    return replace(
        box,
        shape=(box.shape[0] * factor, -(-box.shape[1] // factor), *box.shape[2:]),
        strides_bytes=(box.strides_bytes[0] * factor, *box.strides_bytes[1:]),
        box=(box.box[0] * factor, box.box[1] // factor, *box.box[2:]),
    )


def narrow_rows(program: Program, hw: HardwareConfig) -> np.ndarray:
    """How much longer than their bytes would need the bulk-copy engine takes for each tensor map's rows (1: not longer)."""
    timing = hw.execution_sections().timing
    row_bytes = program.tensor[:, T_BOX] * program.tensor[:, T_ELEMENT]
    needed = np.maximum(row_bytes / timing.bulk.fill_bytes_per_cycle * CYCLE, 1)
    used = program.tensor[:, T_DIMENSIONS] > 0
    return np.where(used, program.tensor[:, T_ROW] / needed, 1.0)


def rasters(trace: KernelTrace) -> Iterator[tuple[str, KernelTrace]]:
    """The launch with its CTAs in other orders: columns first, and in groups of rows; nothing if the grid has no two axes.

    The axes are the two address differences (``cta_base`` columns) that tell all CTAs apart with the fewest values.
    """
    axes = _axes(trace)
    if axes is None:
        return
    row, column = axes
    orders = {"columns first": np.lexsort((row, column)), "rows first": np.lexsort((column, row))}
    for group in (4, 8, 16):
        orders[f"groups of {group} rows"] = np.lexsort((row % group, column, row // group))
    for name, order in orders.items():
        if not (order == np.arange(len(order))).all():
            yield name, replace(trace, cta_class=trace.cta_class[order], cta_base=trace.cta_base[order])


def _axes(trace: KernelTrace) -> tuple[np.ndarray, np.ndarray] | None:
    ranks = [np.unique(column, return_inverse=True)[1].ravel() for column in trace.cta_base.T]
    ranks = [rank for rank in ranks if rank.max(initial=0) > 0]
    n = trace.launch.n_ctas
    for a, first in enumerate(ranks):
        for second in ranks[a + 1 :]:
            n_first, n_second = int(first.max()) + 1, int(second.max()) + 1
            if n_first * n_second == n and len(np.unique(first * n_second + second)) == n:
                return first, second
    return None
