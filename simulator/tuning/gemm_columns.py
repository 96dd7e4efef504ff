"""Matrix products as problems, designs as rows of integer columns, and what follows from the columns alone."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.families import FAMILIES
from simulator.kernels.gemm_design import (
    BOX_ALIGNMENT,
    FORMATS,
    MMA_ROWS,
    RESULT_BYTES,
    STORE_BOX_COLUMNS_BYTES,
    Dtype,
    Extent,
    Format,
    GemmDesign,
    ProductDesign,
    Section,
)
from simulator.kernels.gemm_specialized import role_registers
from simulator.tuning.designs import Designs

METHODS = ("wgmma", "mma_sync", "ffma")
LOADS = ("tma", "cp_async")
EPILOGUES = ("tma", "staged", "direct")
MULTICASTS = ("none", "a", "b")
TMA, STAGED, DIRECT = range(3)


class ProductProblem(Section):
    """A matrix product C[m, n] = A[m, k] B[n, k]^T, whatever m, n and k stand for. ``result``: format of C, by default that of
    the operands' family (see FORMATS). Splits of k add into C in 32 bits, so they are tried where C has 32 bits; C is then
    taken to be zero before."""

    dtype: Dtype = "bf16"
    result: Literal["bf16", "fp16", "fp32", "int32"] | None = None
    bias: bool = False
    activation: Literal["none", "relu", "gelu", "silu"] = "none"

    if TYPE_CHECKING:

        @property
        def kind(self) -> str: ...
        @property
        def m(self) -> int: ...
        @property
        def n(self) -> int: ...

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    @property
    def result_bytes(self) -> int:
        return RESULT_BYTES[self.result or self.format.result]

    @property
    def can_split(self) -> bool:
        """Partial results are added by 32-bit reductions, before bias and activation could act."""
        return self.result_bytes == 4 and not self.bias and self.activation == "none"

    @property
    @abstractmethod
    def row_elements(self) -> int:
        """Contiguous elements of A and B in memory, of which copies take parts."""

    @abstractmethod
    def k_steps(self, tile_k: np.ndarray) -> np.ndarray:
        """Steps over k of a tile, for each ``tile_k``; int64."""

    @property
    @abstractmethod
    def operand_bytes(self) -> tuple[float, float]:
        """Distinct bytes of A and of B in memory."""


class GemmProblem(ProductProblem):  # type: ignore[override]
    """A GEMM; extents in elements."""

    kind: Literal["gemm"] = "gemm"
    m: Extent
    n: Extent
    k: Extent

    @property
    def row_elements(self) -> int:
        return self.k

    def k_steps(self, tile_k: np.ndarray) -> np.ndarray:
        return -(-self.k // tile_k)

    @property
    def operand_bytes(self) -> tuple[float, float]:
        return float(self.m * self.k * self.format.n_bytes), float(self.n * self.k * self.format.n_bytes)


def design_of(problem: ProductProblem, row: dict[str, int]) -> ProductDesign:
    """The design of a row, in the model of the problem's family."""
    values: dict[str, Any] = problem.model_dump() | {
        "tile": {"m": row["tile_m"], "n": row["tile_n"], "k": row["tile_k"]},
        "schedule": "ping_pong" if row["ping_pong"] else "cooperative",
        "multiply": METHODS[row["method"]],
        "loads": LOADS[row["loads"]],
        "epilogue": EPILOGUES[row["epilogue"]],
        "multicast": MULTICASTS[row["multicast"]],
        "persistent": bool(row["persistent"]),
        "stream_k": bool(row["stream_k"]),
        "swizzle_bytes": row["swizzle"],
    }
    values |= {name: row[name] for name in ("stages", "warps", "producer_warps", "split_k", "cluster", "group_m")}
    model: type[ProductDesign] = FAMILIES[problem.kind].model  # type: ignore[assignment]
    return model.model_validate(values)


def row_of(design: ProductDesign) -> dict[str, int]:
    """The row of a design; the other way round."""
    return {
        "tile_m": design.tile.m,
        "tile_n": design.tile.n,
        "tile_k": design.tile.k,
        "ping_pong": int(design.schedule == "ping_pong"),
        "method": METHODS.index(design.method),
        "loads": LOADS.index(design.loads),
        "epilogue": EPILOGUES.index(design.epilogue),
        "multicast": MULTICASTS.index(design.multicast),
        "persistent": int(design.persistent),
        "stream_k": int(design.stream_k),
        "swizzle": design.swizzle,
        "stages": design.stages,
        "warps": design.warps,
        "producer_warps": design.producer_warps,
        "split_k": design.split_k,
        "cluster": design.cluster,
        "group_m": design.group_m,
    }


def smem_bytes(d: Designs, problem: ProductProblem) -> np.ndarray:
    """Dynamic shared memory of a CTA, as ``GemmDesign.smem_bytes``."""
    ring = d["stages"] * (d["tile_m"] + d["tile_n"]) * d["tile_k"] * problem.format.n_bytes
    special = d["producer_warps"] > 0
    barriers = np.where(d["loads"] == 0, 8 * d["stages"] * np.where(special, 2, 1), 0)
    is_staged = (d["epilogue"] != DIRECT) & (d["split_k"] == 1) & (d["stream_k"] == 0)
    boxes = d["warps"] // GROUP_WARPS * 2 * MMA_ROWS * STORE_BOX_COLUMNS_BYTES
    tile = d["tile_m"] * d["tile_n"] * problem.result_bytes
    return np.where(
        special,
        BOX_ALIGNMENT + ring + np.where(is_staged, boxes, 0) + barriers,
        np.maximum(ring, np.where(is_staged, tile, 0)) + barriers,
    )


def accumulators(d: Designs) -> np.ndarray:
    """32-bit accumulators per multiplying thread."""
    warps = np.where(d["ping_pong"] > 0, GROUP_WARPS, d["warps"])
    return -(-d["tile_m"] * d["tile_n"] // (32 * warps))


def warp_grid(d: Designs) -> tuple[np.ndarray, np.ndarray]:
    """Warps along m and n where single warps multiply, as ``GemmDesign.warp_grid``."""
    along_m, along_n = np.ones_like(d["warps"]), np.ones_like(d["warps"])
    rows, columns = np.maximum(1, d["tile_m"] // 16), np.maximum(1, d["tile_n"] // 16)
    while (open_ := along_m * along_n < d["warps"]).any():
        halves_m = (rows / along_m >= columns / along_n) & (along_m < rows)
        along_m = np.where(open_ & halves_m, 2 * along_m, along_m)
        along_n = np.where(open_ & ~halves_m, 2 * along_n, along_n)
    return along_m, along_n


def thread_tile(d: Designs) -> tuple[np.ndarray, np.ndarray]:
    """Elements of a thread along m and n where threads multiply alone, as ``GemmDesign.thread_tile``."""
    held = np.maximum(1, accumulators(d))
    edge = np.floor(np.sqrt(held)).astype(np.int64)
    along_n = np.left_shift(1, np.floor(np.log2(edge)).astype(np.int64))
    return np.maximum(1, held // along_n), along_n


def role_register_table() -> dict[int, tuple[int, int]]:
    """(consumer, producer) registers per thread by number of consumer warpgroups."""
    return {
        groups: role_registers(
            GemmDesign(m=1, n=1, k=1, warps=GROUP_WARPS * groups, producer_warps=4, tile={"m": 64 * groups, "n": 64, "k": 64})  # type: ignore[arg-type]
        )
        for groups in (1, 2, 3)
    }
