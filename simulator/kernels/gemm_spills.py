"""Accumulators that do not fit: a compiler keeps them in local memory and exchanges them around the multiply-adds."""

from __future__ import annotations

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import MMA_ROWS, ProductDesign
from simulator.kernels.writer import Block, CtaClass, KernelWriter

PAIR_BYTES = 8
"""Accumulators move in pairs (frames of compiled kernels: 624 bytes for 39 registers over the limit, 752 for 47)."""


class Spills:
    """Before each 64 rows' multiply-adds, the other rows' spilled accumulators are stored and their own loaded."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter) -> None:
        self.n = design.spilled
        self.sets = max(1, design.rows_per_warpgroup // MMA_ROWS) if design.method == "wgmma" else 1
        kernel.local_bytes = self.n * self.sets * PAIR_BYTES

    def exchange(self, block: Block, number: int) -> None:
        """Append the exchange before the multiply-adds of set ``number``."""
        stored, loaded = Value("stored", 0), Value("loaded", 0)
        for i in range(self.n):
            block.op("STL.64", [], [stored], slot=f"stl{number}.{i}", width=PAIR_BYTES)
        for i in range(self.n):
            block.op("LDL.64", [loaded], [], slot=f"ldl{number}.{i}", width=PAIR_BYTES)
        if self.n:
            block.op("MOV", [], [loaded])

    def events(self, cta: CtaClass) -> dict[str, np.ndarray]:
        """Places in the thread's frame, by slot: each set has its own."""
        if not self.n:
            return {}
        rows = cta.events(address=np.arange(self.n * self.sets) * PAIR_BYTES).reshape(self.sets, self.n)
        found = {}
        for number in range(self.sets):
            for i in range(self.n):
                found[f"ldl{number}.{i}"] = rows[number, i]
                found[f"stl{number}.{i}"] = rows[(number - 1) % self.sets, i]
        return found
