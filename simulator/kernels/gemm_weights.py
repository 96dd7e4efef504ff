"""B stored narrow with scales: tiles lie one after another, each its packed elements and then their scales, as prepared
beforehand in the order in which warps take them; warps convert their fragments in registers and multiply by 16 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.gemm_layout import CHUNK_BYTES, LANE
from simulator.kernels.gemm_multiply import WarpMultiply
from simulator.kernels.gemm_operands import LARGEST_BOX, Box, Chunks, Operands, copy_events
from simulator.kernels.gemm_operands import allocate as allocate_plain
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.scaled_formats import SCALED, make_scales, register_loads, unpack
from simulator.kernels.writer import Block, CtaClass, KernelWriter

STORED_ROW_BYTES = 128
"""Tiles are copied as rows of one line each."""


class StoredOperands(Operands):
    """A as in any product; B by stored tiles."""

    def copy_events(self, cta: CtaClass, work: Work, unit: int, first: int) -> list[list[np.ndarray]]:
        design = self.design
        a = tuple(box for box in self.boxes if box.along == "m")
        found = [[rows] for rows in copy_events(replace(self, boxes=a), cta, work, unit, first)]
        stage = (first + np.arange(work.k_steps[unit])) % design.stages
        tile, moves = self._tiles(work, unit)
        rows_per_tile = design.b_bytes // STORED_ROW_BYTES
        key = cta.difference(moves * rows_per_tile)
        for box in self.boxes[len(a) :]:
            rows = cta.events(
                tensor=box.tensor,
                shared_address=stage * design.stage_bytes + box.offset,
                count=box.n_bytes,
                mbarrier=self.full(stage),
                coordinate=(0, tile * rows_per_tile + box.row),
                moves=(0, key),
            )
            found.append([rows])
        return found

    def _tiles(self, work: Work, unit: int) -> tuple[np.ndarray, np.ndarray]:
        """(stored tile of every step, int64 [k_steps], for the first member; that of the first step, for all members)."""
        per_column = -(-self.design.k // self.design.tile.k)
        first = work.n[unit] // self.design.tile.n * per_column + work.k[unit]
        return first[0] + np.arange(work.k_steps[unit]), first

    def chunks(
        self, kernel: KernelWriter, cta: CtaClass, work: Work, unit: int, name: str, row: np.ndarray, byte: np.ndarray
    ) -> Chunks:
        if name == "a":
            return super().chunks(kernel, cta, work, unit, name, row, byte)
        tile, moves = self._tiles(work, unit)
        n_bytes = self.design.b_bytes
        place = int(row[0]) * CHUNK_BYTES + LANE * CHUNK_BYTES
        inside = place < n_bytes
        pattern = kernel.pattern(np.where(inside, LANE * CHUNK_BYTES, -1))
        return Chunks(
            pattern=np.full(len(tile), pattern),
            address=self.b + tile * n_bytes + place[0],
            lanes=np.full(len(tile), int(inside.sum())),
            base=cta.difference(moves * n_bytes),
        )


def allocate(design: ProductDesign, kernel: KernelWriter) -> Operands:
    """Buffers of A, stored B and C; tensor maps where they are loaded in bulk."""
    plain = allocate_plain(design, kernel)
    if design.loads != "tma":
        return StoredOperands(design, plain.a, plain.b, plain.c)
    rows_per_tile = design.b_bytes // STORED_ROW_BYTES
    rows = max(r for r in range(1, min(rows_per_tile, LARGEST_BOX) + 1) if rows_per_tile % r == 0)
    all_rows = design.stored_b_bytes(design.n * design.k) // STORED_ROW_BYTES
    tensor = kernel.tensor_map("b", 1, (STORED_ROW_BYTES, all_rows), (STORED_ROW_BYTES, rows), 0, plain.b)
    boxes = [
        Box(tensor, "n", 0, row, design.a_bytes + row * STORED_ROW_BYTES, rows * STORED_ROW_BYTES)
        for row in range(0, rows_per_tile, rows)
    ]
    return StoredOperands(design, plain.a, plain.b, plain.c, (*(box for box in plain.boxes if box.along == "m"), *boxes))


class StoredMultiply(WarpMultiply):
    """Multiply-adds of single warps whose B fragments are converted in registers."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter) -> None:
        super().__init__(design, kernel)
        self.stored = SCALED[str(design.weights)]
        self.steps_per_scale = max(1, self.stored.block // design.format.warp_shape[2])
        self.loads = register_loads(self.n_n * self.stored.bits // 2)
        """A lane holds four elements of each 8x16 fragment."""
        self._scales: list[Value] = []
        self.scale_loads = register_loads(self.n_n)

    def load_b(self, block: Block, values: list[Value], k: int) -> None:
        """Load the packed fragments of step ``k``, and scales where a block of elements begins; convert."""
        packed, scales = Value("packed", sum(self.loads) // 4), [Value(f"scale{n}") for n in range(self.n_n)]
        for i, width in enumerate(self.loads):
            block.op(f"LDS.{8 * width}", [packed], [], slot=f"ldb{k}.{i}", width=width)
        if k % self.steps_per_scale == 0:
            raw = Value("raw scales", sum(self.scale_loads) // 4)
            for i, width in enumerate(self.scale_loads):
                block.op(f"LDS.{8 * width}", [raw], [], slot=f"lds{k}.{i}", width=width)
            make_scales(block, self.stored, raw, scales)
            self._scales = scales
        unpack(block, self.stored, packed, self._scales, values)

    def b_events(self, cta: CtaClass, column: int, k: int) -> dict[str, np.ndarray]:
        """A warp's fragments lie together, step by step: lanes read neighbouring words; four lanes share a scale."""
        design = self.design
        found: dict[str, np.ndarray] = {}
        bits_of_column = design.tile.k * self.stored.bits
        fragments = design.a_bytes + column * bits_of_column // 8 + k * self.n_n * self.stored.bits * 16
        scales = design.a_bytes + design.tile.n * bits_of_column // 8 + column * (design.tile.k // self.stored.block)
        at = 0
        for i, width in enumerate(self.loads):
            place = fragments + at * LANE.size
            found[f"ldb{k}.{i}"] = cta.events(pattern=self.kernel.pattern(LANE * width), shared_address=place // 128 * 128)
            at += width
        if k % self.steps_per_scale == 0:
            at = 0
            for i, width in enumerate(self.scale_loads):
                place = scales + k // self.steps_per_scale * self.n_n * 8 + at * 8
                pattern = self.kernel.pattern(LANE // 4 * width)
                found[f"lds{k}.{i}"] = cta.events(pattern=pattern, shared_address=place // 128 * 128)
                at += width
        return found
