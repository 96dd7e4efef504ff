"""Matrix products that nobody has written yet: C[m, n] = A[m, k] B[n, k]^T, by tiles; a GEMM is one as it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.scaled_formats import SCALED

Extent = Annotated[int, Field(ge=1, le=1 << 22)]
MMA_ROWS = 64
"""Rows of a warpgroup's multiply-add."""
LARGEST_MMA_COLUMNS = 256
BOX_ALIGNMENT = 1024
ACCUMULATOR_BYTES = 4
STORE_BOX_COLUMNS_BYTES = 128
REGISTERS_BESIDE = 24
"""Registers that a loop needs beside its accumulators, at least."""


@dataclass(frozen=True)
class Format:
    """An operand format: bytes of an element, of an element of the result by default, mnemonics of the multiply-adds
    (asynchronous by warpgroup; by warp, with its m, n, k) and k of one asynchronous multiply-add."""

    n_bytes: int
    result: str
    async_mnemonic: str | None
    warp_mnemonic: str | None
    warp_shape: tuple[int, int, int]

    @property
    def async_k(self) -> int:
        """An asynchronous multiply-add takes 32 bytes of each row."""
        return 32 // self.n_bytes


FORMATS = {
    "bf16": Format(2, "bf16", "HGMMA.64x{n}x16.F32.BF16", "HMMA.16816.F32.BF16", (16, 8, 16)),
    "fp16": Format(2, "fp16", "HGMMA.64x{n}x16.F32", "HMMA.16816.F32", (16, 8, 16)),
    "fp8_e4m3": Format(1, "bf16", "QGMMA.64x{n}x32.F32.E4M3.E4M3", "QMMA.16832.F32.E4M3.E4M3", (16, 8, 32)),
    "fp8_e5m2": Format(1, "bf16", "QGMMA.64x{n}x32.F32.E5M2.E5M2", "QMMA.16832.F32.E5M2.E5M2", (16, 8, 32)),
    "int8": Format(1, "int32", "IGMMA.64x{n}x32.S8.S8", "IMMA.16832.S8.S8", (16, 8, 32)),
    "tf32": Format(4, "fp32", "HGMMA.64x{n}x8.F32.TF32", "HMMA.1688.F32.TF32", (16, 8, 8)),
    "fp32": Format(4, "fp32", None, None, (1, 1, 1)),
}
RESULT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "int32": 4}
Scaled = Literal["mxfp8", "mxfp6", "mxfp4", "nvfp4"]
Dtype = Literal["bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int8", "tf32", "fp32"]


class Section(BaseModel):
    """Every field is known and of the right type, or the design does not load."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tile(Section):
    """What a CTA computes at once, in elements."""

    m: int = Field(ge=1, le=1024)
    n: int = Field(ge=1, le=1024)
    k: int = Field(ge=1, le=1024)


class ProductDesign(Section):
    """A matrix product C[m, n] = A[m, k] B[n, k]^T by tiles, whatever m, n and k stand for. Sizes in bytes. ``warps``
    multiply; ``producer_warps`` only load (0: all warps do both)."""

    if TYPE_CHECKING:

        @property
        def m(self) -> int: ...
        @property
        def n(self) -> int: ...
        @property
        def k(self) -> int: ...

    dtype: Literal[Dtype, Scaled] = Field(default="bf16", description="Scaled ones are refused with what works in their place.")
    weights: Scaled | None = Field(default=None, description="B as it is stored: narrow, with scales; converted in registers.")
    result: Literal["bf16", "fp16", "fp32", "int32"] | None = None
    tile: Tile = Tile(m=128, n=128, k=64)
    stages: int = Field(default=3, ge=1, le=32, description="Buffers of A and B in shared memory.")
    warps: int = Field(default=4, ge=1, le=32)
    multiply: Literal["wgmma", "mma_sync", "ffma"] | None = None
    loads: Literal["tma", "cp_async"] = "tma"
    a_from: Literal["shared", "registers"] = "shared"
    producer_warps: Literal[0, 1, 4] = 0
    schedule: Literal["cooperative", "ping_pong"] = "cooperative"
    consumer_registers: int | None = Field(default=None, ge=24, le=256, multiple_of=8)
    producer_registers: int | None = Field(default=None, ge=24, le=256, multiple_of=8)
    persistent: bool = False
    persistent_ctas: int | None = Field(default=None, ge=1, description="CTAs of a persistent launch; default: all that fit.")
    split_k: int = Field(default=1, ge=1, le=256)
    stream_k: bool = False
    cluster: int = Field(default=1, ge=1, le=16, description="CTAs of a cluster, along m (multicast b) or n (multicast a).")
    multicast: Literal["none", "a", "b"] = "none"
    group_m: int = Field(default=8, ge=1, description="Tile rows that are walked together.")
    swizzle_bytes: Literal[0, 32, 64, 128] | None = Field(default=None, description="Default: the widest that a row fills.")
    padding_bytes: int = Field(default=0, ge=0, le=128, multiple_of=16)
    epilogue: Literal["direct", "staged", "tma"] = "tma"
    bias: bool = False
    activation: Literal["none", "relu", "gelu", "silu"] = "none"
    waits: Literal["group", "each"] | None = Field(
        default=None,
        description="Wait after every multiply-add group, or (each) after every single one, as compilers do at times.",
    )
    max_registers: int = Field(default=255, ge=24, le=255)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.multicast != "none" and self.cluster == 1:
            raise ValueError(f"multicast {self.multicast} needs a cluster of at least 2 CTAs (cluster is 1)")
        if self.producer_warps and (self.method != "wgmma" or self.loads != "tma"):
            raise ValueError("producer_warps need multiply wgmma and loads tma: only bulk copies have a warp of their own")
        if self.schedule == "ping_pong" and (not self.producer_warps or self.warpgroups != 2):
            raise ValueError("schedule ping_pong needs producer_warps and two consumer warpgroups (warps 8)")
        if self.stream_k and self.split_k > 1:
            raise ValueError("stream_k divides k itself: leave out split_k")
        return self

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    @property
    def method(self) -> str:
        """``multiply``, or what a compiler takes: whole warpgroups and at least 64 rows ask for wgmma."""
        if self.multiply is not None:
            return self.multiply
        if self.dtype == "fp32":
            return "ffma"
        if self.weights is not None:
            return "mma_sync"
        return "wgmma" if self.warps % GROUP_WARPS == 0 and self.tile.m >= MMA_ROWS else "mma_sync"

    @property
    def result_format(self) -> str:
        """Format of C; partial results of a split k are added in 32 bits."""
        if self.split_k > 1 or self.stream_k:
            return "fp32" if self.dtype != "int8" else "int32"
        return self.result or self.format.result

    @property
    def result_bytes(self) -> int:
        return RESULT_BYTES[self.result_format]

    @property
    def warpgroups(self) -> int:
        return max(1, self.warps // GROUP_WARPS)

    @property
    def n_warps(self) -> int:
        """Warps of a CTA. Producer warps take a whole warpgroup's place where registers are moved between warpgroups."""
        return self.warps + self.producer_warps

    @property
    def row_bytes(self) -> int:
        """A tile's row of A or B: tile.k elements."""
        return self.tile.k * self.format.n_bytes

    @property
    def swizzle(self) -> int:
        """Swizzle span in bytes; 0: none."""
        if self.swizzle_bytes is not None:
            return self.swizzle_bytes
        if self.method == "ffma" or self.padding_bytes:
            return 0
        return next((span for span in (128, 64, 32) if self.row_bytes % span == 0), 0)

    @property
    def pitch_bytes(self) -> int:
        """From row to row of an operand in shared memory, where rows are stored whole."""
        return self.row_bytes + self.padding_bytes

    @property
    def box_row_bytes(self) -> int:
        """Inner extent of a TMA box of A or B: a swizzle span, or 16 bytes without a swizzle (8x16-byte core matrices)."""
        return min(self.row_bytes, self.swizzle or 16)

    @property
    def rows_per_warpgroup(self) -> int:
        return self.tile.m if self.schedule == "ping_pong" else self.tile.m // self.warpgroups

    @property
    def mma_columns(self) -> int:
        """n of one asynchronous multiply-add."""
        return min(self.tile.n, LARGEST_MMA_COLUMNS)

    @property
    def mmas_per_step(self) -> int:
        """Asynchronous multiply-adds of a warpgroup and k step."""
        return (
            max(1, self.rows_per_warpgroup // MMA_ROWS)
            * -(-self.tile.n // self.mma_columns)
            * max(1, self.tile.k // self.format.async_k)
        )

    @property
    def accumulators(self) -> int:
        """32-bit accumulators per thread."""
        elements = self.tile.m * self.tile.n
        threads = 32 * (GROUP_WARPS if self.schedule == "ping_pong" else self.warps)
        return -(-elements // threads)

    @property
    def is_serial(self) -> bool:
        """Whether one stage of bulk copies is loaded and used in turn."""
        return self.stages == 1 and self.loads == "tma" and not self.producer_warps

    @property
    def warp_grid(self) -> tuple[int, int]:
        """Warps along m and n where single warps multiply: as Triton lays them out, the longer side is halved first."""
        along_m, along_n = 1, 1
        rows, columns = max(1, self.tile.m // 16), max(1, self.tile.n // 16)
        while along_m * along_n < self.warps:
            if rows / along_m >= columns / along_n and along_m < rows:
                along_m *= 2
            else:
                along_n *= 2
        return along_m, along_n

    @property
    def thread_tile(self) -> tuple[int, int]:
        """Elements of a thread along m and n where threads multiply alone: 4 by 8 threads a warp, warps along n first."""
        edge = math.isqrt(max(1, self.accumulators))
        along_n = 1 << max(0, edge.bit_length() - 1)
        return max(1, self.accumulators // along_n), along_n

    @property
    def spilled(self) -> int:
        """Accumulators per thread that do not fit beside the loop's other registers (compiled Triton kernels spill 39 of
        256 with bulk copies, 47 with asynchronous copies, whose pointers take registers)."""
        if self.accumulators + REGISTERS_BESIDE <= self.max_registers or self.method == "ffma":
            return 0
        return self.accumulators + (38 if self.loads == "tma" else 46) - self.max_registers

    @property
    def waits_each(self) -> bool:
        """Whether every multiply-add is waited for. Unless ``waits`` says so: what the compiler of the measured Triton
        kernels does: it serialises spilled accumulators, and two warpgroups in one
        code where the multiply-adds of a step are few or the accumulators many."""
        if self.waits is not None:
            return self.waits == "each"
        if self.producer_warps or self.stages == 1:
            return False
        if self.spilled:
            return True
        if self.warpgroups < 2:
            return False
        if self.loads == "tma":
            return self.accumulators >= 128 or self.mmas_per_step <= 4
        return self.mma_columns == LARGEST_MMA_COLUMNS

    @property
    def k_steps(self) -> int:
        """Steps over k of one work unit (all of k, or one split)."""
        return math.ceil(math.ceil(self.k / self.tile.k) / self.split_k)

    @property
    def tiles_m(self) -> int:
        return math.ceil(self.m / self.tile.m)

    @property
    def tiles_n(self) -> int:
        return math.ceil(self.n / self.tile.n)

    @property
    def a_bytes(self) -> int:
        """A's part of a stage."""
        return self.tile.m * self.pitch_bytes

    @property
    def b_bytes(self) -> int:
        return self.tile.n * self.pitch_bytes if self.weights is None else self.stored_b_bytes(self.tile.n * self.tile.k)

    def stored_b_bytes(self, n_elements: int) -> int:
        """Bytes of so many elements of B in memory, scales included."""
        return n_elements * self.format.n_bytes if self.weights is None else SCALED[self.weights].stored_bytes(n_elements)

    @property
    def stage_bytes(self) -> int:
        return self.a_bytes + self.b_bytes

    @property
    def result_tile_bytes(self) -> int:
        """Shared memory that the epilogue stages C in (specialised warps: two 64-column boxes of 64 rows a warpgroup)."""
        if self.epilogue == "direct" or self.split_k > 1 or self.stream_k:
            return 0
        if self.producer_warps:
            return self.warpgroups * 2 * MMA_ROWS * STORE_BOX_COLUMNS_BYTES
        return self.tile.m * self.tile.n * self.result_bytes

    @property
    def smem_bytes(self) -> int:
        """Dynamic shared memory of a CTA: stages (which the result of code without specialised warps reuses), barriers."""
        ring = self.stages * self.stage_bytes
        barriers = 8 * self.stages * (2 if self.producer_warps else 1) if self.loads == "tma" else 0
        if self.producer_warps:
            return BOX_ALIGNMENT + ring + self.result_tile_bytes + barriers
        return max(ring, self.result_tile_bytes) + barriers


class GemmExtents(Section):
    """The problem; extents in elements."""

    kind: Literal["gemm"] = "gemm"
    m: Extent
    n: Extent
    k: Extent


class GemmDesign(ProductDesign, GemmExtents):  # type: ignore[override]
    """A GEMM."""
