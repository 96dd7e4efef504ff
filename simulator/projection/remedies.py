"""What a piece of advice would change, as an edited trace or program: replayed, it says what the advice is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.lower.events import EventUse
from simulator.sm.inputs import CYCLE, T_BOX, T_DIMENSIONS, T_ELEMENT, T_ROW, Program
from simulator.trace.kernel_trace import LANES, KernelTrace, Stream


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


def with_whole_boxes(program: Program, trace: KernelTrace, hw: HardwareConfig) -> Program:
    """Bulk copies limited by their bytes alone, as those of boxes with full rows are."""
    timing = hw.execution_sections().timing
    tensor = program.tensor.copy()
    row_bytes = tensor[:, T_BOX] * tensor[:, T_ELEMENT]
    tensor[:, T_ROW] = np.minimum(tensor[:, T_ROW], np.rint(row_bytes / timing.bulk.fill_bytes_per_cycle * CYCLE))
    return program._replace(tensor=tensor)


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
