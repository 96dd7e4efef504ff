"""Kernels that move every element once: copies, element-wise chains, transposes."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator.kernels.gemm_design import Section
from simulator.kernels.vectors import FORMATS, ElementFormat, ElementType, widest_vector

Count = Annotated[int, Field(ge=1, le=1 << 34)]
VectorBytes = Literal[1, 2, 4, 8, 16]
SWIZZLED_BYTES = 128
"""Swizzles permute within the 128 bytes of all banks."""

TRANSPOSE: dict[str, Any] = {"tile": {"rows": 32, "columns": 32}, "layout": "xor"}
"""What a transpose has unless it is said."""


class MatrixTile(Section):
    """What a CTA transposes at once, in elements of the input."""

    rows: int = Field(ge=1, le=1024)
    columns: int = Field(ge=1, le=1024)


class StreamingDesign(Section):
    """``elements``: of a copy or element-wise kernel; ``rows``, ``columns``: of a transpose's input. Sizes in bytes."""

    kind: Literal["streaming"] = "streaming"
    operation: Literal["copy", "elementwise", "transpose"] = "copy"
    elements: Count | None = None
    rows: Count | None = None
    columns: Count | None = None
    dtype: ElementType = "fp32"
    result: ElementType | None = Field(default=None, description="Default: as dtype.")
    inputs: int = Field(default=1, ge=1, le=8, description="Arrays that an element-wise kernel reads.")
    fma_per_element: int = Field(default=0, ge=0, le=256, description="Adds, multiplies and fused multiply-adds.")
    alu_per_element: int = Field(default=0, ge=0, le=256, description="Comparisons, minima, selections.")
    mufu_per_element: int = Field(default=0, ge=0, le=64, description="Reciprocals, exponentials, square roots, ...")
    warps: int = Field(default=8, ge=1, le=32)
    vector_bytes: VectorBytes | None = Field(default=None, description="Of a lane's load; default: the widest that is aligned.")
    unroll: int = Field(default=1, ge=1, le=64, description="Vectors of each array and thread.")
    in_flight: int | None = Field(default=None, ge=1, le=64, description="Of these, under way at once; default: all.")
    loop: Literal["one_tile", "grid_stride"] = "one_tile"
    ctas: int | None = Field(default=None, ge=1, description="CTAs of a grid-stride loop; default: all that fit.")
    masked: bool = Field(default=True, description="Compare every vector with the end, as compilers do for any length.")
    tile: MatrixTile | None = Field(default=None, description="Of a transpose; default: 32x32.")
    layout: Literal["plain", "shared", "padded", "xor"] | None = Field(
        default=None,
        description="A transpose's tile: no shared memory, rows as they are, rows padded, columns XORed with rows (default).",
    )
    padding_bytes: int | None = Field(default=None, ge=1, le=128, description="Of layout padded; default: one bank.")
    gather: Literal["scalar", "matrix"] | None = Field(
        default=None, description="Columns of a tile by single loads, or (16 bits) by transposing matrix loads."
    )
    coalesced: Literal["reads", "writes"] = Field(default="reads", description="Which side of a plain transpose.")
    walk: Literal["rows", "columns"] = Field(default="rows", description="What neighbouring CTAs of a transpose differ in.")

    @model_validator(mode="before")
    @classmethod
    def _transposed(cls, values: Any) -> Any:
        """A transpose has a tile and a layout."""
        if isinstance(values, dict) and values.get("operation") == "transpose":
            return {**values, **{name: usual for name, usual in TRANSPOSE.items() if values.get(name) is None}}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> StreamingDesign:
        if self.operation == "transpose":
            if self.rows is None or self.columns is None or self.elements is not None:
                raise ValueError("operation transpose takes rows and columns, not elements")
            if self.inputs > 1 or self.arithmetic or self.loop != "one_tile" or self.n_result_bytes != self.n_bytes:
                raise ValueError("operation transpose has one input, one tile per CTA, no arithmetic and no conversion")
            if self.unroll > 1 or self.in_flight is not None:
                raise ValueError("operation transpose has no unroll or in_flight: its tile says how much a thread moves")
        elif self.elements is None or self.rows is not None or self.columns is not None:
            raise ValueError(f"operation {self.operation} takes elements (rows and columns go with operation transpose)")
        elif self.tile or self.layout or self.gather:
            raise ValueError(f"operation {self.operation} has no tile, layout or gather: they go with operation transpose")
        if self.operation == "copy" and (self.inputs > 1 or self.arithmetic):
            raise ValueError("operation copy has one input and no arithmetic; operation elementwise has both")
        if self.ctas is not None and self.loop != "grid_stride":
            raise ValueError("ctas goes with loop grid_stride")
        if self.padding_bytes is not None and self.layout != "padded":
            raise ValueError("padding_bytes goes with layout padded")
        return self

    @property
    def block(self) -> MatrixTile:
        """The tile of a transpose."""
        assert self.tile is not None
        return self.tile

    @property
    def title(self) -> str:
        """The design in a line."""
        what = f"{self.elements} {self.dtype}"
        if self.operation == "transpose":
            what = f"{self.rows}x{self.columns} {self.dtype} tile {self.block.rows}x{self.block.columns} layout {self.layout}"
        return f"{self.operation} {what} warps {self.warps}"

    @property
    def format(self) -> ElementFormat:
        return FORMATS[self.dtype]

    @property
    def result_format(self) -> ElementFormat:
        return FORMATS[self.result or self.dtype]

    @property
    def n_bytes(self) -> int:
        return self.format.n_bytes

    @property
    def n_result_bytes(self) -> int:
        return self.result_format.n_bytes

    @property
    def arithmetic(self) -> int:
        """Operations per element."""
        return self.fma_per_element + self.alu_per_element + self.mufu_per_element

    @property
    def converts(self) -> bool:
        """Whether elements pass through fp32."""
        return bool(self.arithmetic) or self.inputs > 1 or self.result_format is not self.format

    @property
    def n_elements(self) -> int:
        return self.elements if self.elements is not None else (self.rows or 0) * (self.columns or 0)

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def vector(self) -> int:
        """Elements of a lane's access."""
        return max(1, self.access_bytes // self.n_bytes)

    @property
    def access_bytes(self) -> int:
        """``vector_bytes``, or the widest aligned access that still gives every thread some of the tile."""
        if self.vector_bytes is not None:
            return self.vector_bytes
        if self.operation != "transpose":
            return widest_vector(self.n_elements * self.n_bytes)
        if self.layout == "plain":
            return self.n_bytes
        share = self.block.rows * self.block.columns * self.n_bytes // self.threads
        sides = math.gcd((self.rows or 1) * self.n_bytes, (self.columns or 1) * self.n_bytes)
        tile = math.gcd(self.block.rows * self.n_bytes, self.block.columns * self.n_bytes)
        return max(self.n_bytes, widest_vector(math.gcd(sides, tile), 1 << (min(16, max(1, share)).bit_length() - 1)))

    @property
    def tile_elements(self) -> int:
        """Elements of a CTA and loop turn of a copy or element-wise kernel."""
        return self.threads * self.vector * self.unroll

    @property
    def is_matrix(self) -> bool:
        """Whether columns are gathered by transposing matrix loads: the default where a tile has whole ones."""
        if self.gather is not None:
            return self.gather == "matrix"
        whole = self.n_bytes == 2 and self.access_bytes == 16 and self.block.rows % 32 == 0 and self.block.columns % 8 == 0
        return whole and self.layout in ("shared", "xor")

    @property
    def pitch_bytes(self) -> int:
        """From row to row of the tile in shared memory."""
        padding = (self.padding_bytes or 4) if self.layout == "padded" else 0
        return self.block.columns * self.n_bytes + padding

    @property
    def smem_bytes(self) -> int:
        if self.operation != "transpose" or self.layout == "plain":
            return 0
        return self.block.rows * self.pitch_bytes

    @property
    def turns(self) -> int:
        """Tiles of the launch."""
        if self.operation == "transpose":
            return math.ceil((self.rows or 1) / self.block.rows) * math.ceil((self.columns or 1) / self.block.columns)
        return math.ceil(self.n_elements / self.tile_elements)

    @property
    def n_ctas(self) -> int:
        return min(self.ctas or self.turns, self.turns) if self.loop == "grid_stride" else self.turns
