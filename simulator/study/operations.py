"""Arithmetic that a kernel does, counted from its trace: multiply-adds count two, whatever the chip."""

from __future__ import annotations

import re

import numpy as np

from simulator.isa.effects import GROUP_WARPS
from simulator.trace.kernel_trace import KernelTrace, StaticTable

PER_LANE = {
    "FFMA": 2, "FADD": 1, "FMUL": 1, "HFMA2": 4, "HADD2": 2, "HMUL2": 2, "DFMA": 2, "DADD": 1, "DMUL": 1,
}  # fmt: skip
"""Floating-point operations of one lane by mnemonic."""
_SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)")


def floating_point_operations(trace: KernelTrace) -> float:
    """Floating-point (and integer MMA) operations of the whole launch; transcendental functions are not counted."""
    lane, warp = _weights(trace.static)
    per_class = np.zeros(len(trace.streams))
    for c, warps in enumerate(trace.streams):
        for stream in warps:
            active = stream.active.astype(np.float64)
            per_class[c] += (lane[stream.instruction] * active + warp[stream.instruction] * (active > 0)).sum()
    return float(per_class[trace.cta_class].sum())


def _weights(static: StaticTable) -> tuple[np.ndarray, np.ndarray]:
    """Operations per active lane and per warp of each static instruction, float64 [n_static] each."""
    lane, warp = np.zeros(len(static)), np.zeros(len(static))
    for i, opcode in enumerate(static.opcode):
        base = opcode.split(".")[0]
        shape = _SHAPE.search(opcode)
        if base.endswith("GMMA") and shape:
            warp[i] = 2 * np.prod([float(part) for part in shape.groups()]) / GROUP_WARPS
        elif base.endswith("MMA"):
            warp[i] = 2 * np.prod(static.argument[i, :3].astype(np.float64))
        else:
            lane[i] = PER_LANE.get(base, 0)
    return lane, warp
