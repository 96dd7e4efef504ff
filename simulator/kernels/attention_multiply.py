"""The two products of a step: scores from Q and K, and P times V onto O; by warpgroups or by single warps."""

from __future__ import annotations

import numpy as np

from simulator.kernels.attention_design import WARP_MMA_ROWS, AttentionDesign
from simulator.kernels.attention_softmax import Softmax
from simulator.kernels.code_fragments import scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import LARGEST_MMA_COLUMNS
from simulator.kernels.gemm_layout import CHUNK_BYTES, LANE, matrix_rows, operand_offset
from simulator.kernels.writer import Block, CtaClass, KernelWriter

Places = tuple[np.ndarray, np.ndarray]
"""Shared offsets of the blocks of K and of V, int64 [steps] each."""
SCALAR_BETWEEN = 1
"""Descriptor arithmetic behind a multiply-add of a warpgroup (compiled attention loops: 0.9 to 1.1)."""


class WarpgroupProducts:
    """Asynchronous multiply-adds of four warps: Q and K from shared memory, P from registers, V from shared memory."""

    is_asynchronous = True

    def __init__(self, design: AttentionDesign, softmax: Softmax) -> None:
        self.design, self.softmax = design, softmax

    def scores(self, block: Block) -> None:
        """Issue and commit S = Q K^T."""
        columns = min(self.design.block_n, LARGEST_MMA_COLUMNS)
        block.op("WARPGROUP.ARRIVE")
        n_k = max(1, self.design.head_dim // self.design.format.async_k)
        for i in range(self.design.sets):
            written = [v for row in self.softmax.scores[2 * i : 2 * i + 2] for v in row]
            for k in range(n_k):
                self._multiply(block, columns, written, written if k else [], 1, i == self.design.sets - 1 and k == n_k - 1)

    def output(self, block: Block) -> None:
        """Issue and commit O += P V."""
        columns = min(self.design.head_dim, LARGEST_MMA_COLUMNS)
        block.op("WARPGROUP.ARRIVE")
        n_k = max(1, self.design.block_n // self.design.format.async_k)
        part = len(self.softmax.packed) // self.design.sets
        for i in range(self.design.sets):
            written = [v for row in self.softmax.output[2 * i : 2 * i + 2] for v in row]
            for k in range(n_k):
                a = self.softmax.packed[i * part + 4 * k : i * part + 4 * k + 4]
                self._multiply(block, columns, written, [*written, *a], 0, i == self.design.sets - 1 and k == n_k - 1)

    def _multiply(self, block: Block, columns: int, written: list[Value], read: list[Value], shared: int, commits: bool) -> None:
        mnemonic = str(self.design.format.async_mnemonic).format(n=columns)
        argument = (columns, self.design.format.async_k * self.design.format.n_bytes, shared, int(commits))
        text = f"{mnemonic} {written[0].name}, {'gdesc' if shared else read[-1].name}, gdesc{', gsb0' if commits else ''}"
        block.op(mnemonic, written, read, argument=argument, text=text)
        scalar_work(block, SCALAR_BETWEEN)

    def wait_scores(self, block: Block, others: int = 0) -> None:
        """Until at most ``others`` groups are under way; P's registers were read by an older one."""
        block.op("WARPGROUP.DEPBAR.LE", [], [] if others else self.softmax.packed, argument=(others, -1))

    def wait_output(self, block: Block) -> None:
        block.op("WARPGROUP.DEPBAR.LE", [], self.softmax.packed, argument=(0, -1))

    def events(self, cta: CtaClass, kernel: KernelWriter, warp: int, places: Places) -> dict[str, np.ndarray]:
        """None: descriptors name the operands."""
        return {}


class WarpProducts:
    """Each warp multiplies its own rows, 16x8 pieces at a time, from fragments loaded by LDSM."""

    is_asynchronous = False

    def __init__(self, design: AttentionDesign, softmax: Softmax) -> None:
        self.design, self.softmax = design, softmax
        self.n_k = max(1, design.head_dim // 16)
        self.n_keys = max(1, design.block_n // 8)
        pairs = range(max(1, self.n_keys // 2))
        self._fragments = [
            ([Value(f"q{s}.{i}", 4) for i in range(design.sets)], [Value(f"k{s}.{n}", 4) for n in pairs]) for s in (0, 1)
        ]
        self._values = [[Value(f"v{s}.{n}", 4) for n in range(max(1, design.head_dim // 16))] for s in (0, 1)]

    def scores(self, block: Block) -> None:
        """Fragments of the next k are loaded under the multiply-adds of this one."""
        self._load_scores(block, 0)
        for k in range(self.n_k):
            if k + 1 < self.n_k:
                self._load_scores(block, k + 1)
            q, b = self._fragments[k % 2]
            for n in range(self.n_keys):
                for i, a in enumerate(q):
                    self._multiply(block, self.softmax.scores, i, n, [a, b[n // 2]], is_first=k == 0)

    def _load_scores(self, block: Block, k: int) -> None:
        q, b = self._fragments[k % 2]
        for i, value in enumerate(q):
            block.op("LDSM.16.M88.4", [value], [], slot=f"ldq{k}.{i}", width=CHUNK_BYTES)
        for n, value in enumerate(b):
            block.op("LDSM.16.M88.4", [value], [], slot=f"ldk{k}.{2 * n}", width=CHUNK_BYTES)

    def output(self, block: Block) -> None:
        """As ``scores``, with V transposed by the load."""
        part = len(self.softmax.packed) // self.design.sets
        n_k = max(1, self.design.block_n // 16)
        self._load_output(block, 0)
        for k in range(n_k):
            if k + 1 < n_k:
                self._load_output(block, k + 1)
            for n in range(max(1, self.design.head_dim // 8)):
                for i in range(self.design.sets):
                    a = self.softmax.packed[i * part + 4 * k : i * part + 4 * k + 4]
                    self._multiply(block, self.softmax.output, i, n, [*a, self._values[k % 2][n // 2]], is_first=False)

    def _load_output(self, block: Block, k: int) -> None:
        for n, value in enumerate(self._values[k % 2]):
            block.op("LDSM.16.MT88.4", [value], [], slot=f"ldv{k}.{2 * n}", width=CHUNK_BYTES)

    def _multiply(self, block: Block, rows: list[list[Value]], i: int, n: int, read: list[Value], is_first: bool) -> None:
        part = [value for row in rows[2 * i : 2 * i + 2] for value in row[2 * n : 2 * n + 2]]
        argument = (*self.design.format.warp_shape, 8 * self.design.format.n_bytes)
        text = f"{self.design.format.warp_mnemonic} {part[0].name}, {read[0].name}, {read[-1].name}"
        block.op(str(self.design.format.warp_mnemonic), part, read if is_first else [*read, *part], argument=argument, text=text)

    def wait_scores(self, block: Block, others: int = 0) -> None:
        """None: results are waited for by their registers."""

    def wait_output(self, block: Block) -> None:
        """None."""

    def events(self, cta: CtaClass, kernel: KernelWriter, warp: int, places: Places) -> dict[str, np.ndarray]:
        """Fragment loads by slot; ``places``: where the blocks of K and V of each step begin in shared memory."""
        design = self.design
        k_at, v_at = places
        found: dict[str, np.ndarray] = {}
        for k in range(self.n_k):
            for i in range(design.sets):
                row = warp * design.rows_per_warp + i * WARP_MMA_ROWS
                offsets = matrix_rows(design, row, 32 * k, design.block_m, 4, is_b=False)
                found[f"ldq{k}.{i}"] = cta.events(pattern=kernel.pattern(offsets))
            for n in range(0, self.n_keys, 2):
                offsets = matrix_rows(design, 8 * n, 32 * k, design.block_n, 4, is_b=True)
                found[f"ldk{k}.{n}"] = cta.events(pattern=kernel.pattern(offsets), shared_address=k_at)
        for k in range(max(1, design.block_n // 16)):
            for n in range(0, max(1, design.head_dim // 8), 2):
                columns = 16 * n + LANE // 16 * CHUNK_BYTES
                offsets = operand_offset(design, 16 * k + LANE % 16, columns, design.block_n)
                found[f"ldv{k}.{n}"] = cta.events(pattern=kernel.pattern(offsets), shared_address=v_at)
        return found


Products = WarpgroupProducts | WarpProducts


def products_of(design: AttentionDesign, softmax: Softmax) -> Products:
    """The way of multiplying that the design asks for."""
    return WarpgroupProducts(design, softmax) if design.method == "wgmma" else WarpProducts(design, softmax)

