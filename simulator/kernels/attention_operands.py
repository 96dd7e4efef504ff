"""Where Q, K, V and O lie, in global and in shared memory, and the copies between the two."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from simulator.kernels.attention_design import PARTIAL_BYTES, AttentionDesign
from simulator.kernels.attention_tiles import Work
from simulator.kernels.gemm_layout import CHUNK_BYTES, LANE, operand_offset
from simulator.kernels.gemm_operands import LARGEST_BOX
from simulator.kernels.ring import BARRIER_BYTES, Ring
from simulator.kernels.writer import CtaClass, KernelWriter

PAGE_ENTRY_BYTES = 4


@dataclass(frozen=True)
class Operands:
    """Addresses and tensor maps (bulk copies) of a design's operands."""

    design: AttentionDesign
    kernel: KernelWriter
    q: int
    k: int
    v: int
    o: int
    row_sums: int
    page_table: int
    _results: dict[int, int] = field(default_factory=dict)

    @property
    def k_at(self) -> int:
        """Shared offset of K's stages."""
        return self.design.q_bytes

    @property
    def v_at(self) -> int:
        return self.design.q_bytes + self.design.stages * self.design.kv_bytes

    @property
    def q_ring(self) -> Ring:
        """The single barrier that the block of Q completes."""
        return Ring(1, self.design.q_bytes, self.design.q_bytes + 2 * self.design.stages * self.design.kv_bytes)

    @property
    def joint_ring(self) -> Ring:
        """One ring of stages that hold K and V."""
        return Ring(self.design.stages, 2 * self.design.kv_bytes, self.q_ring.barriers + BARRIER_BYTES)

    @property
    def rings(self) -> tuple[Ring, Ring]:
        """Rings of K and of V with barriers of their own."""
        stages, first = self.design.stages, self.q_ring.barriers + BARRIER_BYTES
        each = 2 * stages * BARRIER_BYTES
        return Ring(stages, self.design.kv_bytes, first), Ring(stages, self.design.kv_bytes, first + each)

    @cached_property
    def tensors(self) -> dict[str, int]:
        """Tensor maps of Q, K and V: (elements, rows, heads of all sequences), boxes one swizzle span wide."""
        design = self.design
        found = {}
        for name, address, rows, heads, block in (
            ("q", self.q, design.rows, design.block_heads, design.block_m),
            ("k", self.k, design.keys, design.kv_heads, design.block_n),
            ("v", self.v, design.keys, design.kv_heads, design.block_n),
        ):
            shape = (design.head_dim, rows, heads * design.batch)
            box = (box_columns(design), min(block, LARGEST_BOX), 1)
            found[name] = self.kernel.tensor_map(name, design.format.n_bytes, shape, box, design.swizzle, address)
        return found

    def result_tensor(self, rows: int) -> int:
        """Tensor map of O for boxes of ``rows``."""
        if rows not in self._results:
            design = self.design
            shape = (design.head_dim, design.rows, design.block_heads * design.batch)
            box = (box_columns(design), min(rows, LARGEST_BOX), 1)
            self._results[rows] = self.kernel.tensor_map("o", design.format.n_bytes, shape, box, design.swizzle, self.o)
        return self._results[rows]

    def boxes(self, block: int) -> list[tuple[int, int]]:
        """(column, row) of the bulk copies of a block of so many rows."""
        columns = range(0, self.design.head_dim, box_columns(self.design))
        return [(column, row) for column in columns for row in range(0, block, min(block, LARGEST_BOX))]

    def box_events(
        self, cta: CtaClass, name: str, head: np.ndarray, row: np.ndarray, steps: int, ring: Ring, place: int
    ) -> list[np.ndarray]:
        """Event rows int32 [steps] of each box of blocks of Q, K or V. ``head``, ``row`` int64 [n]: by member; ``place``:
        shared offset of the ring's first stage."""
        design = self.design
        block = design.block_m if name == "q" else design.block_n
        n_bytes = block * design.row_bytes
        step = np.arange(steps)
        stage = step % ring.stages
        moves = (0, cta.difference(row), cta.difference(head))
        found = []
        for column, inner in self.boxes(block):
            offset = column * design.format.n_bytes * block + inner * box_columns(design) * design.format.n_bytes
            found.append(
                cta.events(
                    tensor=self.tensors[name],
                    shared_address=place + stage * n_bytes + offset,
                    count=min(block, LARGEST_BOX) * box_columns(design) * design.format.n_bytes,
                    mbarrier=ring.full(stage),
                    coordinate=(column, row[0] + step * block + inner, head[0]),
                    moves=moves,
                )
            )
        return found


def box_columns(design: AttentionDesign) -> int:
    """Elements of a row of a box."""
    return min(design.row_bytes, design.swizzle or CHUNK_BYTES) // design.format.n_bytes


def allocate(design: AttentionDesign, kernel: KernelWriter) -> Operands:
    """Buffers of a design; K and V are padded to whole pages where they are paged."""
    row = design.row_bytes
    q_bytes = design.batch * design.heads * design.seq_q * row
    page = design.page_size or 1
    kv_bytes = design.batch * design.kv_heads * -(-design.keys // page) * page * row
    parts = design.split_kv if design.split_kv > 1 else 0
    return Operands(
        design,
        kernel,
        kernel.buffer("q", q_bytes),
        kernel.buffer("k", kv_bytes),
        kernel.buffer("v", kv_bytes),
        kernel.buffer("o", q_bytes // design.format.n_bytes * PARTIAL_BYTES * parts if parts else q_bytes),
        kernel.buffer("row_sums", parts * design.batch * design.heads * design.seq_q * PARTIAL_BYTES) if parts else 0,
        kernel.buffer("page_table", design.batch * -(-design.keys // page) * PAGE_ENTRY_BYTES) if design.page_size else 0,
    )


def q_head(design: AttentionDesign, work: Work) -> np.ndarray:
    """Head of Q among the blocks' heads of all sequences, int64 [n]."""
    return work.sequence * design.block_heads + work.head


def kv_head(design: AttentionDesign, work: Work) -> np.ndarray:
    """Head of K and V among those of all sequences, int64 [n]."""
    own = work.head if design.pack_gqa else work.head // design.group
    return work.sequence * design.kv_heads + own


@dataclass(frozen=True)
class ChunkCopy:
    """One LDGSTS of a warp: its rows within the block (the first lane's, and each lane's), bytes within a row."""

    first_row: int
    rows: np.ndarray
    bytes: np.ndarray


def chunk_copies(design: AttentionDesign, block: int, warp: int) -> list[ChunkCopy]:
    """16-byte chunks of a block that a warp copies, a row's chunks on neighbouring lanes."""
    per_row = max(1, design.row_bytes // CHUNK_BYTES)
    found = []
    for i in range(n_copies(design, block)):
        chunk = (i * design.warps + warp) * 32 + LANE
        found.append(ChunkCopy(int(chunk[0] // per_row), chunk // per_row, chunk % per_row * CHUNK_BYTES))
    return found


def n_copies(design: AttentionDesign, block: int) -> int:
    """LDGSTS of a warp for a block of so many rows."""
    return -(-block * max(1, design.row_bytes // CHUNK_BYTES) // (32 * design.warps))


def copy_events(
    operands: Operands, cta: CtaClass, work: Work, name: str, warp: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(event rows, active lanes), int [steps] each, of each of a warp's copies of blocks of Q (one step), K or V."""
    design = operands.design
    is_q = name == "q"
    block, steps = (design.block_m, 1) if is_q else (design.block_n, work.steps)
    step = np.arange(steps)
    valid = np.full(steps, work.valid_rows if is_q else block)
    if not is_q:
        valid[-1] = min(block, work.valid_keys) if work.valid_keys else block
    place = 0 if is_q else (operands.k_at if name == "k" else operands.v_at)
    shared_at = place + step % (1 if is_q else design.stages) * block * design.row_bytes
    found = []
    for copy in chunk_copies(design, block, warp):
        offsets = (copy.rows - copy.first_row) * design.row_bytes + copy.bytes
        inside = copy.rows < block
        shared = operands.kernel.pattern(operand_offset(design, copy.rows, copy.bytes, block))
        whole = operands.kernel.pattern(np.where(inside, offsets, -1))
        last = inside & (copy.rows < valid[-1])
        cut = operands.kernel.pattern(np.where(last, offsets, -1)) if last.any() else whole
        is_cut = (valid < block) & ~np.all(last == inside)
        address, differences = _addresses(operands, work, name, step * block + copy.first_row)
        rows = cta.events(
            pattern=np.where(is_cut, cut, whole),
            address=address,
            shared_address=shared_at,
            shared_pattern=shared,
            base=cta.difference(differences),
        )
        found.append((rows, np.where(is_cut, int(last.sum()), int(inside.sum()))))
    return found


def _addresses(operands: Operands, work: Work, name: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(global addresses int64 [steps] of ``rows`` of the representative, int64 [n] differences of the members)."""
    design = operands.design
    if name == "q":
        start = q_head(design, work) * design.rows + work.row
        return operands.q + (start[0] + rows) * design.row_bytes, start * design.row_bytes
    base = operands.k if name == "k" else operands.v
    if design.page_size is None:
        start = kv_head(design, work) * design.keys + work.first_key
        return base + (start[0] + rows) * design.row_bytes, start * design.row_bytes
    # pages go to the sequences in turn, as they grow side by side
    page = design.page_size
    head = kv_head(design, work) % design.kv_heads
    key = work.first_key[0] + rows
    number = (key // page * design.batch + work.sequence[0]) * design.kv_heads + head[0]
    start = ((work.first_key // page * design.batch + work.sequence) * design.kv_heads + head) * page
    return base + (number * page + key % page) * design.row_bytes, start * design.row_bytes


