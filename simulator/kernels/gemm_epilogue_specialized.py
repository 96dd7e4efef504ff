"""The end of a tile where warpgroups work alone: 64 rows and one store box of columns at a time, two boxes in turn."""

from __future__ import annotations

import numpy as np

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.code_fragments import scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import MMA_ROWS, STORE_BOX_COLUMNS_BYTES, ProductDesign
from simulator.kernels.gemm_fragments import (
    LANE,
    MATRICES,
    bias_events,
    direct_events,
    finish_elements,
    matrix_store_pattern,
    stage_fragments,
    store_box,
    store_direct,
    warpgroup_fragments,
)
from simulator.kernels.gemm_operands import Operands
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.writer import Block, CtaClass, KernelWriter


class SpecializedEpilogue:
    """Code and execution of a consumer warp's epilogue."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter, operands: Operands, accumulators: Value) -> None:
        self.design, self.kernel, self.operands = design, kernel, operands
        self.fragments = [warpgroup_fragments(design, w) for w in range(design.warps)]
        self.bias = kernel.buffer("bias", design.n * 4) if design.bias else 0
        self.is_added = design.split_k > 1 or design.stream_k
        self.is_bulk = design.epilogue != "direct" and not self.is_added
        n = len(self.fragments[0])
        self.finish = kernel.block("finish")
        finish_elements(self.finish, design, n, accumulators)
        scalar_work(self.finish, 12)
        self.block = kernel.block("store")
        if self.is_bulk:
            self.tensor, self.columns = store_box(design, kernel, operands, MMA_ROWS)
            self._box(self.block, accumulators)
        else:
            store_direct(self.block, design, n, accumulators, self.is_added)

    @property
    def boxes(self) -> list[tuple[int, int]]:
        """(row, column) of a warpgroup's store boxes within its part of the tile."""
        rows = range(0, self.design.rows_per_warpgroup, MMA_ROWS)
        return [(row, column) for row in rows for column in range(0, self.design.tile.n, self.columns)]

    def _box(self, block: Block, accumulators: Value) -> None:
        """Wait for the box before the last, write 64 rows, store them."""
        address = Value("place")
        n = self.columns // 4
        block.op("DEPBAR.LE", argument=(1, 0), text="DEPBAR.LE SB0, 0x1")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_free")
        block.op("LOP3.LUT", [address], [])
        stage_fragments(block, self.design, n, accumulators, address)
        block.op("MEMBAR.ALL.CTA")
        block.op("FENCE.VIEW.ASYNC.S", [Value("fence")])
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_full")
        block.op("BRA")
        scalar_work(block, 8)
        block.op("UTMASTG.2D", [], [Value("UR12", kind="UR")], slot="store")
        block.op("UTMACMDFLUSH")

    def run(self, cta: CtaClass, work: Work, unit: int, number: int) -> None:
        """Warp ``number`` of the consumers finishes a unit."""
        warp, fragments = cta.warps[number], self.fragments[number]
        warp.run(self.finish, 1, bias_events(self.design, self.kernel, cta, work, unit, fragments.columns, self.bias))
        if not self.is_bulk:
            events, active = direct_events(self.operands, self.kernel, cta, work, unit, fragments)
            warp.run(self.block, 1, events, active)
            return
        group, leads = number // GROUP_WARPS, int(number % GROUP_WARPS == 0)
        boxes = self.boxes
        n = len(boxes)
        barrier = cta.events(parity=1 + group, count=32 * GROUP_WARPS)[0]
        rows = np.array([r for r, _ in boxes]) + (
            0 if self.design.schedule == "ping_pong" else group * self.design.rows_per_warpgroup
        )
        columns = np.array([c for _, c in boxes])
        place = self.operands.ring_bytes + (group * 2 + np.arange(n) % 2) * MMA_ROWS * STORE_BOX_COLUMNS_BYTES
        store = cta.events(
            tensor=self.tensor,
            shared_address=place,
            coordinate=(work.n[unit, 0] + columns, work.m[unit, 0] + rows),
            moves=(cta.difference(work.n[unit]), cta.difference(work.m[unit])),
        )
        warp.run(
            self.block,
            n,
            {"bar_free": barrier, "bar_full": barrier, "store": store, **self._stages(cta, number, place)},
            {"store": leads},
        )

    def _stages(self, cta: CtaClass, number: int, place: np.ndarray) -> dict[str, np.ndarray]:
        pitch = self.columns * self.design.result_bytes
        row = number % GROUP_WARPS * 16 * pitch
        if self.design.result_bytes == 2:
            pattern = matrix_store_pattern(self.kernel, pitch)
            n = -(-self.columns // 4 // MATRICES)
            return {f"stage{i}": cta.events(pattern=pattern, shared_address=place + row) for i in range(n)}
        pattern = self.kernel.pattern((LANE // 4 * 128 + LANE % 4 * 8) ^ (LANE // 4 % 8 * 16))
        return {f"stage{i}": cta.events(pattern=pattern, shared_address=place + row) for i in range(self.columns // 4)}
