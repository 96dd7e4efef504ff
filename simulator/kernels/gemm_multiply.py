"""What the warps do with a stage: warpgroup multiply-adds, multiply-adds of single warps, or fused multiply-adds."""

from __future__ import annotations

import numpy as np

from simulator.kernels.code_fragments import scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.gemm_fragments import Fragments, warpgroup_fragments
from simulator.kernels.gemm_layout import LANE, matrix_rows
from simulator.kernels.gemm_spills import Spills
from simulator.kernels.writer import Block, CtaClass, KernelWriter

SCALAR_BEFORE = 14
"""Scalar instructions of a step before its first multiply-add (compiled Triton loops have 12 to 16)."""
SCALAR_BETWEEN = 42
"""And behind it, under the multiply-adds: next stage, predicates and descriptors of the next copies."""


def multiply_adds(
    block: Block,
    design: ProductDesign,
    accumulators: Value,
    waits_each: bool,
    scalar: int,
    between: int = 2,
    spills: Spills | None = None,
) -> None:
    """The multiply-adds of a step, with ``scalar`` instructions behind the first and ``between`` behind each other one.

    Commits one group, or one for each, which is waited for.
    """
    mnemonic = str(design.format.async_mnemonic).format(n=design.mma_columns)
    a_is_shared = int(design.a_from == "shared")
    k_bytes = design.format.async_k * design.format.n_bytes
    n = design.mmas_per_step
    fragment = Value("a", 4)
    sets = spills.sets if spills is not None and spills.n else 1
    for i in range(n):
        if spills is not None and i % (n // sets) == 0:
            spills.exchange(block, i // (n // sets))
        if not a_is_shared and i % max(1, design.tile.n // design.mma_columns) == 0:
            block.op("LDSM.16.M88.4", [fragment], [], slot=f"a{i}", width=16)
        if i == 0 or waits_each:
            block.op("WARPGROUP.ARRIVE")
        reads = [accumulators] if a_is_shared else [accumulators, fragment]
        commits = int(waits_each or i == n - 1)
        block.op(mnemonic, [accumulators], reads, argument=(design.mma_columns, k_bytes, a_is_shared, commits))
        if i == 0:
            scalar_work(block, scalar)
        elif i < n - 1 or waits_each:
            scalar_work(block, between)
        if waits_each:
            block.op("WARPGROUP.DEPBAR.LE", argument=(0, -1))


def operand_events(design: ProductDesign, kernel: KernelWriter, cta: CtaClass, warp: int) -> dict[str, np.ndarray]:
    """Loads of A fragments for warpgroup multiply-adds that take A from registers, by slot."""
    if design.a_from == "shared":
        return {}
    found = {}
    row = (0 if design.schedule == "ping_pong" else warp // 4 * design.rows_per_warpgroup) + warp % 4 * 16
    for i in range(0, design.mmas_per_step, max(1, design.tile.n // design.mma_columns)):
        offsets = matrix_rows(design, row, i * 32 % design.row_bytes, design.tile.m, 4, is_b=False)
        found[f"a{i}"] = cta.events(pattern=kernel.pattern(offsets))
    return found


class WarpgroupMultiply:
    """Asynchronous multiply-adds of four warps."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        self.accumulators = Value("acc", design.accumulators)
        self.fragments = [warpgroup_fragments(design, w) for w in range(design.warps)]

    def step(self, block: Block, n_scalar: int, spills: Spills) -> None:
        design = self.design
        scalar_work(block, SCALAR_BEFORE)
        multiply_adds(block, design, self.accumulators, design.waits_each, n_scalar, spills=spills)
        if not design.waits_each:
            block.op("WARPGROUP.DEPBAR.LE", argument=(1 if design.stages > 1 else 0, -1))

    def events(self, cta: CtaClass, warp: int) -> dict[str, np.ndarray]:
        return operand_events(self.design, self.kernel, cta, warp)


class WarpMultiply:
    """Each warp multiplies 16x8 pieces of its own part of the tile, from fragments loaded by LDSM."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        self.warps_m, self.warps_n = design.warp_grid
        shape = design.format.warp_shape
        self.n_m = max(1, design.tile.m // (shape[0] * self.warps_m))
        self.n_n = max(1, design.tile.n // (shape[1] * self.warps_n))
        self.n_k = max(1, design.tile.k // shape[2])
        self.accumulators = Value("acc", 4 * self.n_m * self.n_n)
        self.fragments = [self._fragments(w) for w in range(design.warps)]
        self._parts = [[Value(f"acc{m}.{n}", 4) for n in range(self.n_n)] for m in range(self.n_m)]

    def _origin(self, warp: int) -> tuple[int, int]:
        return warp % self.warps_m * self.n_m * 16, warp // self.warps_m * self.n_n * 8

    def _fragments(self, warp: int) -> Fragments:
        row, column = self._origin(warp)
        grid = [(row + 16 * m + half, column + 8 * n) for m in range(self.n_m) for n in range(self.n_n) for half in (0, 8)]
        return Fragments(np.array([g[0] for g in grid]), np.array([g[1] for g in grid]))

    def step(self, block: Block, n_scalar: int, spills: Spills) -> None:
        """Fragments of the next k are loaded under the multiply-adds of this one."""
        spills.exchange(block, 0)
        scalar_work(block, n_scalar // 2)
        sets = [
            ([Value(f"a{s}.{m}", 4) for m in range(self.n_m)], [Value(f"b{s}.{n}", 2) for n in range(self.n_n)]) for s in (0, 1)
        ]
        self._load(block, sets[0], 0)
        for k in range(self.n_k):
            if k + 1 < self.n_k:
                self._load(block, sets[(k + 1) % 2], k + 1)
            a, b = sets[k % 2]
            for m in range(self.n_m):
                for n in range(self.n_n):
                    part = self._parts[m][n]
                    argument = (*self.design.format.warp_shape, 8 * self.design.format.n_bytes)
                    block.op(str(self.design.format.warp_mnemonic), [part], [a[m], b[n], part], argument=argument)
        scalar_work(block, n_scalar - n_scalar // 2)

    def _load(self, block: Block, values: tuple[list[Value], list[Value]], k: int) -> None:
        a, b = values
        for m, value in enumerate(a):
            block.op("LDSM.16.M88.4", [value], [], slot=f"lda{k}.{m}", width=16)
        self.load_b(block, b, k)

    def load_b(self, block: Block, values: list[Value], k: int) -> None:
        """Load the fragments of B of step ``k``."""
        for n in range(0, self.n_n, 2):
            pair = values[n : n + 2]
            block.op(f"LDSM.16.M88.{2 * len(pair)}", pair, [], slot=f"ldb{k}.{n}", width=8 * len(pair))

    def events(self, cta: CtaClass, warp: int) -> dict[str, np.ndarray]:
        """Fragment loads of a step, by slot (every stage has the same layout)."""
        design = self.design
        row, column = self._origin(warp)
        found: dict[str, np.ndarray] = {}
        for k in range(self.n_k):
            for m in range(self.n_m):
                offsets = matrix_rows(design, row + 16 * m, 32 * k, design.tile.m, 4, is_b=False)
                found[f"lda{k}.{m}"] = cta.events(pattern=self.kernel.pattern(offsets))
            found |= self.b_events(cta, column, k)
        return found

    def b_events(self, cta: CtaClass, column: int, k: int) -> dict[str, np.ndarray]:
        """Fragment loads of B of step ``k``, by slot, for a warp whose part begins at ``column``."""
        design = self.design
        found: dict[str, np.ndarray] = {}
        for n in range(0, self.n_n, 2):
            pieces = min(2, self.n_n - n)
            offsets = matrix_rows(design, column + 8 * n, 32 * k, design.tile.n, 2 * pieces, is_b=True)
            found[f"ldb{k}.{n}"] = cta.events(pattern=self.kernel.pattern(offsets), shared_address=design.a_bytes)
        return found


class ScalarMultiply:
    """Each thread multiplies a square of 8x8 elements (two halves along each side), from rows of k in shared memory, as the
    tiles lie where A and B are stored k by k."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        self.edge_m, self.edge_n = design.thread_tile
        self.accumulators = Value("acc", self.edge_m * self.edge_n)
        self.fragments = [self._fragments(w) for w in range(design.warps)]
        self._parts = [[Value(f"acc{m}.{n}") for n in range(self.edge_n)] for m in range(self.edge_m)]

    def _lanes(self, warp: int) -> tuple[np.ndarray, np.ndarray]:
        """First row and column of each thread of a warp: 4x8 threads."""
        across = max(1, self.design.tile.n // (8 * self.edge_n))
        down = warp // across
        return (down * 4 + LANE // 8) * self.edge_m, (warp % across * 8 + LANE % 8) * self.edge_n

    def _fragments(self, warp: int) -> Fragments:
        row, column = self._lanes(warp)
        n = self.edge_m * self.edge_n // 2
        return Fragments(np.full(n, int(row[0])), np.full(n, int(column[0])))

    def step(self, block: Block, n_scalar: int, spills: Spills) -> None:
        spills.exchange(block, 0)
        scalar_work(block, n_scalar)
        sets = [(Value(f"a{s}", self.edge_m), Value(f"b{s}", self.edge_n)) for s in (0, 1)]
        for k in range(self.design.tile.k):
            a, b = sets[k % 2]
            for name, value, edge in (("a", a, self.edge_m), ("b", b, self.edge_n)):
                for i in range(-(-edge // 4)):
                    block.op("LDS.128", [value], [], slot=f"ld{name}{k}.{i}", width=16)
            for m in range(self.edge_m):
                for n in range(self.edge_n):
                    block.op("FFMA", [self._parts[m][n]], [a, b, self._parts[m][n]])

    def events(self, cta: CtaClass, warp: int) -> dict[str, np.ndarray]:
        """Shared memory holds k rows of the tile's rows (A) and columns (B)."""
        row, column = self._lanes(warp)
        found: dict[str, np.ndarray] = {}
        for name, places, extent, edge, start in (
            ("a", row, self.design.tile.m, self.edge_m, 0),
            ("b", column, self.design.tile.n, self.edge_n, self.design.a_bytes),
        ):
            n_pieces = -(-edge // 4)
            lane = (places - places[0]) // edge
            for i in range(n_pieces):
                # neighbouring threads read neighbouring pieces of 16 bytes: a thread's own lie a warp's width apart
                pattern = self.kernel.pattern(places[0] * 4 + (i * (lane[-1] + 1) + lane) * 16)
                rows = cta.events(
                    pattern=pattern,
                    shared_address=start + np.arange(self.design.tile.k) * (extent * 4 + self.design.padding_bytes),
                )
                found |= {f"ld{name}{k}.{i}": rows[k] for k in range(self.design.tile.k)}
        return found
