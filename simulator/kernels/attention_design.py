"""An attention forward pass that nobody has written yet: O = softmax(scale Q K^T) V, by blocks of queries and keys."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.gemm_design import BOX_ALIGNMENT, FORMATS, MMA_ROWS, Extent, Format, Section
from simulator.kernels.ring import BARRIER_BYTES

WARP_MMA_ROWS = 16
SWIZZLE_BYTES = 128
PARTIAL_BYTES = 4
"""Partial results of a split sequence are 32-bit."""
ROLE_REGISTERS = {1: (208, 56), 2: (240, 24), 3: (160, 32)}
"""(consumer, producer) registers per thread by consumer warpgroups, as published kernels move them."""


class AttentionDesign(Section):
    """Extents in elements. ``warps`` multiply; ``producer_warps`` only load (0: all warps do both)."""

    kind: Literal["attention"] = "attention"
    batch: Extent
    heads: Extent
    heads_kv: Extent | None = Field(default=None, description="Heads of K and V; default: heads.")
    seq_q: Extent
    seq_kv: Extent | None = Field(default=None, description="Default: seq_q.")
    head_dim: int = Field(default=128, ge=16, le=512)
    dtype: Literal["bf16", "fp16"] = "bf16"
    causal: bool = False
    block_m: int = Field(default=128, ge=1, le=1024, description="Rows of Q of a CTA.")
    block_n: int = Field(default=128, ge=1, le=1024, description="Keys of a step.")
    stages: int = Field(default=2, ge=1, le=32, description="Buffers of K and V in shared memory.")
    warps: int = Field(default=8, ge=1, le=32)
    producer_warps: Literal[0, 1, 4] = 0
    multiply: Literal["wgmma", "mma_sync"] | None = None
    loads: Literal["tma", "cp_async"] = "tma"
    overlap: bool | None = Field(
        default=None, description="Scores of a step are multiplied under the softmax of the one before. Default: with a producer."
    )
    ping_pong: bool = Field(default=False, description="Consumer warpgroups take turns at the tensor cores.")
    pack_gqa: bool = Field(default=False, description="A block holds the query heads of one KV head, row by row.")
    split_kv: int = Field(default=1, ge=1, le=256, description="CTAs along the keys of one block.")
    page_size: int | None = Field(default=None, ge=1, le=1 << 16, description="Keys of a page; default: K and V are dense.")
    scale: Literal["fused", "separate"] = Field(default="fused", description="Scale in the exponent's multiply-add, or before.")
    row_sums: Literal["end", "each_step"] = Field(default="end", description="When a row's sum is added over its lanes.")
    masks: Literal["edges", "every_step"] = Field(default="edges", description="Which steps carry masking instructions.")
    division: Literal["reciprocal", "full"] = Field(
        default="reciprocal", description="O over its row sums by one multiply, or with the scaling of a full-range division."
    )
    load_q: Literal["copies", "registers"] = Field(
        default="copies", description="Q goes to shared memory as K does, or through registers, before the first K."
    )
    index_bits: Literal[32, 64] = Field(default=32, description="Width of the positions that a causal mask compares.")
    order: Literal["ascending", "longest_first"] = Field(default="longest_first", description="Of causal blocks in the launch.")
    epilogue: Literal["tma", "staged"] = "tma"
    consumer_registers: int | None = Field(default=None, ge=24, le=256, multiple_of=8)
    producer_registers: int | None = Field(default=None, ge=24, le=256, multiple_of=8)
    resident_ctas: int | None = Field(default=None, ge=1, description="CTAs that run at once; default: all that fit.")
    max_registers: int = Field(default=255, ge=24, le=255)

    @model_validator(mode="after")
    def _consistent(self) -> AttentionDesign:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of heads_kv {self.kv_heads}")
        if self.producer_warps and (self.method != "wgmma" or self.loads != "tma"):
            raise ValueError("producer_warps need multiply wgmma and loads tma: only bulk copies have a warp of their own")
        if self.ping_pong and self.overlap is False:
            raise ValueError("ping_pong needs overlap: a turn is the scores of a step and the output of the one before")
        if self.load_q == "registers" and self.loads != "cp_async":
            raise ValueError("load_q registers needs loads cp_async")
        if self.overlap and not self.producer_warps:
            raise ValueError("overlap needs producer_warps")
        if self.ping_pong and (not self.producer_warps or self.warpgroups < 2):
            raise ValueError("ping_pong needs producer_warps and at least two consumer warpgroups (warps 8)")
        if self.causal and self.seq_q > self.keys:
            raise ValueError(f"causal: seq_q {self.seq_q} is more than seq_kv {self.keys}, so that some rows would see no key")
        return self

    @property
    def title(self) -> str:
        """Problem and blocks in one line."""
        heads = f"{self.heads} heads" + (f" ({self.kv_heads} of K and V)" if self.group > 1 else "")
        keys = f" x {self.keys} keys" if self.keys != self.seq_q else ""
        return (
            f"attention {self.batch} x {heads} x {self.seq_q} rows{keys} x {self.head_dim}{', causal' if self.causal else ''}, "
            f"{self.dtype}, blocks {self.block_m}x{self.block_n}, stages {self.stages}, warps {self.warps}+{self.producer_warps}"
        )

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    @property
    def kv_heads(self) -> int:
        return self.heads_kv or self.heads

    @property
    def keys(self) -> int:
        """Keys of a sequence."""
        return self.seq_kv or self.seq_q

    @property
    def group(self) -> int:
        """Query heads of a KV head."""
        return self.heads // self.kv_heads

    @property
    def method(self) -> str:
        """``multiply``, or what a compiler takes: whole warpgroups of 64 rows each ask for wgmma."""
        if self.multiply is not None:
            return self.multiply
        return "wgmma" if self.warps % GROUP_WARPS == 0 and self.block_m >= MMA_ROWS * self.warps // GROUP_WARPS else "mma_sync"

    @property
    def overlaps(self) -> bool:
        return self.producer_warps > 0 if self.overlap is None else self.overlap

    @property
    def warpgroups(self) -> int:
        return max(1, self.warps // GROUP_WARPS)

    @property
    def n_warps(self) -> int:
        return self.warps + self.producer_warps

    @property
    def rows_per_warp(self) -> int:
        return max(1, self.block_m // self.warps)

    @property
    def sets(self) -> int:
        """Multiply-add instructions along the rows of a warp (64 rows of a warpgroup, 16 of a warp)."""
        return max(1, self.rows_per_warp // WARP_MMA_ROWS)

    @property
    def thread_rows(self) -> int:
        """Rows of which a thread holds elements."""
        return 2 * self.sets

    @property
    def thread_scores(self) -> int:
        """32-bit scores per thread of a step."""
        return self.thread_rows * max(1, self.block_n // 4)

    @property
    def accumulators(self) -> int:
        """32-bit elements of O per thread."""
        return self.thread_rows * max(1, self.head_dim // 4)

    @property
    def matrix_registers(self) -> int:
        """Per thread: O, the scores of a step, and the probabilities that the multiply-adds still read."""
        return self.accumulators + self.thread_scores + self.thread_scores // 2

    @property
    def row_bytes(self) -> int:
        """Of Q, K and V."""
        return self.head_dim * self.format.n_bytes

    @property
    def swizzle(self) -> int:
        return next((span for span in (SWIZZLE_BYTES, 64, 32) if self.row_bytes % span == 0), 0)

    @property
    def pitch_bytes(self) -> int:
        return self.row_bytes

    @property
    def q_bytes(self) -> int:
        """Of a block of Q in shared memory, in which O is staged later."""
        return self.block_m * self.row_bytes

    @property
    def kv_bytes(self) -> int:
        """Of a block of K or of V."""
        return self.block_n * self.row_bytes

    @property
    def smem_bytes(self) -> int:
        """Dynamic shared memory of a CTA: Q, the rings of K and V, barriers (bulk copies)."""
        tiles = self.q_bytes + 2 * self.stages * self.kv_bytes
        if self.loads == "cp_async":
            return tiles
        n_barriers = 1 + self.stages * (4 if self.producer_warps else 1)
        return tiles + n_barriers * BARRIER_BYTES + (BOX_ALIGNMENT if self.producer_warps else 0)

    @property
    def rows(self) -> int:
        """Rows of the Q that blocks divide: with ``pack_gqa`` all query heads of a KV head."""
        return self.seq_q * (self.group if self.pack_gqa else 1)

    @property
    def block_heads(self) -> int:
        """Heads of a sequence that have blocks of their own."""
        return self.kv_heads if self.pack_gqa else self.heads

    @property
    def blocks_m(self) -> int:
        return -(-self.rows // self.block_m)

    @property
    def most_steps(self) -> int:
        """Steps of the CTA with the most keys, unsplit."""
        return -(-self.keys // self.block_n)

    @property
    def steps_per_split(self) -> int:
        return -(-self.most_steps // self.split_kv)

    @property
    def role_registers(self) -> tuple[int, int]:
        """(consumer, producer) registers per thread after they are moved."""
        consumer, producer = ROLE_REGISTERS.get(self.warpgroups, (128, 24))
        return self.consumer_registers or consumer, self.producer_registers or producer
