"""Accumulators that do not fit: a compiler keeps them in local memory and exchanges them around the multiply-adds."""

from __future__ import annotations

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.writer import Block, CtaClass, KernelWriter

WORKING_REGISTERS = 46
"""Registers beside the accumulators that a loop with spills keeps (compiled Triton kernels: 94 exchanges for 256
accumulators, in two halves: 256 + 46 = 255 + 47)."""


def spilled_registers(design: GemmDesign) -> int:
    """Registers per thread beyond the limit."""
    return max(0, design.accumulators + WORKING_REGISTERS - design.max_registers) if design.accumulators > 0 else 0


class Spills:
    """Exchanges of spilled accumulators in the loop: each 64 rows' set is stored and the other's loaded."""

    def __init__(self, design: GemmDesign, kernel: KernelWriter) -> None:
        sets = max(1, design.rows_per_warpgroup // 64) if design.method == "wgmma" else 1
        over = spilled_registers(design) if design.accumulators + 24 > design.max_registers else 0
        self.n = over * max(1, sets)
        kernel.local_bytes = over * 4

    def swap(self, block: Block) -> None:
        """Append the exchanges of a step."""
        stored, loaded = Value("stored", 0), Value("loaded", 0)
        for i in range(self.n):
            block.op("STL", [], [stored], slot=f"stl{i}", width=4)
        for i in range(self.n):
            block.op("LDL", [loaded], [], slot=f"ldl{i}", width=4)
        if self.n:
            block.op("MOV", [], [loaded])

    def events(self, cta: CtaClass, warp: int) -> dict[str, np.ndarray]:
        """Places in the thread's frame, by slot."""
        if not self.n:
            return {}
        rows = cta.events(address=np.arange(self.n) * 4)
        return {f"{kind}{i}": rows[i] for i in range(self.n) for kind in ("stl", "ldl")}
