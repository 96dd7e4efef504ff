"""The end of a tile: bias and activation, conversion, and C's way to memory."""

from __future__ import annotations

import numpy as np

from simulator.kernels.code_fragments import scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.gemm_fragments import (
    LANE,
    MATRICES,
    Fragments,
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
from simulator.kernels.writer import Block, CtaClass, KernelWriter, Warp

WIDE_BYTES = 16


class Epilogue:
    """Code and execution of the epilogue of warps that all multiply; ``fragments`` of each warp."""

    def __init__(
        self,
        design: ProductDesign,
        kernel: KernelWriter,
        operands: Operands,
        accumulators: Value,
        fragments: list[Fragments] | None = None,
    ) -> None:
        self.design, self.kernel, self.operands = design, kernel, operands
        self.fragments = fragments or [warpgroup_fragments(design, w) for w in range(design.warps)]
        self.bias = kernel.buffer("bias", design.n * 4) if design.bias else 0
        self.is_added = design.split_k > 1 or design.stream_k
        self.way = "direct" if self.is_added else design.epilogue
        n = len(self.fragments[0])
        block = kernel.block("epilogue")
        block.op("WARPGROUP.DEPBAR.LE", argument=(0, -1)) if design.method == "wgmma" else None
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_first")
        finish_elements(block, design, n, accumulators)
        if self.way == "tma":
            self.tensor, self.columns = store_box(design, kernel, operands, min(design.tile.m, 256))
            self._bulk(block, n, accumulators)
        elif self.way == "staged":
            self._staged(block, n, accumulators)
        else:
            store_direct(block, design, n, accumulators, self.is_added)
        self.block = block

    def _stage(self, block: Block, n: int, accumulators: Value) -> None:
        address = Value("place")
        scalar_work(block, 12)
        block.op("LOP3.LUT", [address], [])
        stage_fragments(block, self.design, n, accumulators, address)

    def _bulk(self, block: Block, n: int, accumulators: Value) -> None:
        self._stage(block, n, accumulators)
        block.op("MEMBAR.ALL.CTA")
        block.op("FENCE.VIEW.ASYNC.S", [Value("fence")])
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_staged")
        for i in range(self._boxes_per_warp()):
            block.op("UTMASTG.2D", [], [Value("UR12", kind="UR")], slot=f"store{i}")
        block.op("UTMACMDFLUSH")
        block.op("DEPBAR.LE", argument=(0, 0), text="DEPBAR.LE SB0, 0x0")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_stored")

    def _staged(self, block: Block, n: int, accumulators: Value) -> None:
        self._stage(block, n, accumulators)
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_staged")
        value, address = Value("line", 4), Value("address", 2)
        for i in range(self._lines_per_warp()):
            block.op("LDS.128", [value], [], slot=f"load{i}", width=WIDE_BYTES)
            block.op("IMAD.WIDE", [address], [])
            block.op("STG.E.128", [], [address, value], slot=f"store{i}", width=WIDE_BYTES)
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_stored")

    def _boxes(self) -> list[tuple[int, int]]:
        """(row, column) of every store box of the tile."""
        rows = min(self.design.tile.m, 256)
        return [(r, c) for c in range(0, self.design.tile.n, self.columns) for r in range(0, self.design.tile.m, rows)]

    def _boxes_per_warp(self) -> int:
        return -(-len(self._boxes()) // self.design.warps)

    def _lines_per_warp(self) -> int:
        tile = self.design.tile
        return max(1, tile.m * tile.n * self.design.result_bytes // (WIDE_BYTES * 32 * self.design.warps))

    def run(self, cta: CtaClass, work: Work, unit: int, number: int) -> None:
        """Warp ``number`` finishes a unit."""
        if number >= len(self.fragments):
            return
        fragments = self.fragments[number]
        bar = cta.events(count=0)[0]
        events: dict[str, np.ndarray] = {"bar_first": bar}
        active: dict[str, int] = {}
        events |= bias_events(self.design, self.kernel, cta, work, unit, fragments.columns, self.bias)
        if self.way == "direct":
            stores, active = direct_events(self.operands, self.kernel, cta, work, unit, fragments)
            events |= stores
        else:
            events |= self._stage_events(cta, fragments) | {"bar_staged": bar, "bar_stored": bar}
            if self.way == "tma":
                self._box_events(cta, work, unit, number, events, active)
            else:
                self._line_events(cta, work, unit, number, events, active)
        warp: Warp = cta.warps[number]
        warp.run(self.block, 1, events, active)

    def _stage_events(self, cta: CtaClass, fragments: Fragments) -> dict[str, np.ndarray]:
        design = self.design
        if design.result_bytes == 2:
            pitch = min(design.tile.n * 2, 128)
            pattern = matrix_store_pattern(self.kernel, pitch)
            groups = range(0, len(fragments), MATRICES)
            rows, columns = fragments.rows[::MATRICES], fragments.columns[::MATRICES]
            places = columns * 2 // pitch * pitch * design.tile.m + rows * pitch
            numbers = cta.events(pattern=pattern, shared_address=places)
            return {f"stage{i}": numbers[i] for i in range(len(groups))}
        pattern = self.kernel.pattern((LANE // 4 * 128 + LANE % 4 * 8) ^ (LANE // 4 % 8 * 16))
        numbers = cta.events(pattern=pattern, shared_address=np.arange(len(fragments)) * 1024)
        return {f"stage{i}": numbers[i] for i in range(len(fragments))}

    def _box_events(
        self, cta: CtaClass, work: Work, unit: int, number: int, events: dict[str, np.ndarray], active: dict[str, int]
    ) -> None:
        own = self._boxes()[number :: self.design.warps]
        m_key, n_key = cta.difference(work.m[unit]), cta.difference(work.n[unit])
        for i in range(self._boxes_per_warp()):
            active[f"store{i}"] = int(i < len(own))
            if i < len(own):
                row, column = own[i]
                events[f"store{i}"] = cta.events(
                    tensor=self.tensor,
                    shared_address=column * self.design.result_bytes * self.design.tile.m,
                    coordinate=(work.n[unit, 0] + column, work.m[unit, 0] + row),
                    moves=(n_key, m_key),
                )[0]

    def _line_events(
        self, cta: CtaClass, work: Work, unit: int, number: int, events: dict[str, np.ndarray], active: dict[str, int]
    ) -> None:
        """A warp stores 512 contiguous bytes of the tile at a time, as far as the tile's rows go."""
        design = self.design
        size = design.result_bytes
        row_bytes = min(design.tile.n * size, 512)
        per_row = design.tile.n * size // row_bytes
        key = cta.difference((work.m[unit] * design.n + work.n[unit]) * size)
        origin = self.operands.c + (work.m[unit, 0] * design.n + work.n[unit, 0]) * size
        shared = self.kernel.pattern(LANE * WIDE_BYTES)
        rows_at_once = 512 // row_bytes
        row, column = LANE * WIDE_BYTES // row_bytes, LANE * WIDE_BYTES % row_bytes
        for i in range(self._lines_per_warp()):
            place = (i * design.warps + number) * rows_at_once
            first_row, first_column = (place, 0) if per_row == 1 else (place // per_row, place % per_row * row_bytes)
            on = (row + first_row < work.valid[unit][0]) & (column + first_column < work.valid[unit][1] * size)
            pattern = self.kernel.pattern(np.where(on, row * design.n * size + column, -1))
            active[f"store{i}"] = int(on.sum())
            events[f"load{i}"] = cta.events(pattern=shared, shared_address=place * 512)[0]
            events[f"store{i}"] = cta.events(
                pattern=pattern, address=origin + first_row * design.n * size + first_column, base=key
            )[0]
