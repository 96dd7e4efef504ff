"""Reductions of a matrix: to one number, to one number a row, to one number a column."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from simulator.kernels.gemm_design import Section
from simulator.kernels.lane_reduction import GroupReduction
from simulator.kernels.streaming_design import Count, VectorBytes
from simulator.kernels.vectors import FORMATS, REGISTER_BYTES, ElementFormat, ElementType, widest_vector


class ReductionDesign(Section):
    """``axis`` all: CTAs stride over the whole matrix and combine by ``finish``; row: a CTA reduces a row; column: a CTA
    reduces the columns of one warp's width, its warps take rows in turn."""

    kind: Literal["reduction"] = "reduction"
    rows: Count = 1
    columns: Count
    axis: Literal["all", "row", "column"] = "row"
    operation: Literal["sum", "max"] = "sum"
    dtype: ElementType = "fp32"
    warps: int = Field(default=8, ge=1, le=32)
    vector_bytes: VectorBytes | None = Field(default=None, description="Of a lane's load; default: the widest that is aligned.")
    unroll: int = Field(default=4, ge=1, le=32, description="Vectors of a thread and loop turn.")
    in_flight: int | None = Field(default=None, ge=1, le=32, description="Of these, under way at once; default: all.")
    loop: Literal["one_tile", "grid_stride"] = Field(default="grid_stride", description="Of axis all.")
    ctas: int | None = Field(default=None, ge=1, description="CTAs of a grid-stride loop; default: all that fit.")
    splits: int = Field(default=1, ge=1, le=1024, description="Parts of the rows of axis column, each a CTA of its own.")
    finish: Literal["atomic", "two_stage"] = Field(
        default="atomic", description="CTAs add to the result, or leave partial results to a second launch."
    )
    masked: bool = Field(default=True, description="Compare every vector with the end, as compilers do for any length.")

    @model_validator(mode="after")
    def _consistent(self) -> ReductionDesign:
        if self.axis != "all" and (self.ctas is not None or self.loop != "grid_stride"):
            raise ValueError("loop and ctas go with axis all")
        if self.axis != "column" and self.splits > 1:
            raise ValueError("splits goes with axis column")
        if self.loop == "one_tile" and self.ctas is not None:
            raise ValueError("ctas goes with loop grid_stride")
        return self

    @property
    def title(self) -> str:
        """The design in a line."""
        how = "of all of" if self.axis == "all" else f"by {self.axis} of"
        return f"{self.operation} {how} {self.rows}x{self.columns} {self.dtype} warps {self.warps}"

    @property
    def format(self) -> ElementFormat:
        return FORMATS[self.dtype]

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def group(self) -> GroupReduction:
        return GroupReduction(self.warps)

    @property
    def length(self) -> int:
        """Contiguous elements that CTAs of axis all or row go through."""
        return self.rows * self.columns if self.axis == "all" else self.columns

    @property
    def access_bytes(self) -> int:
        return self.vector_bytes or widest_vector((self.length if self.axis == "all" else self.columns) * self.format.n_bytes)

    @property
    def vector(self) -> int:
        """Elements of a lane's access."""
        return max(1, self.access_bytes // self.format.n_bytes)

    @property
    def step(self) -> int:
        """Elements (axis column: rows) of a CTA and loop turn."""
        return self.unroll * (self.warps if self.axis == "column" else self.threads * self.vector)

    @property
    def tile_columns(self) -> int:
        """Columns of a CTA of axis column."""
        return 32 * self.vector

    @property
    def split_rows(self) -> int:
        return math.ceil(self.rows / self.splits)

    @property
    def tiles(self) -> int:
        """Loop turns of axis all, of all CTAs."""
        return math.ceil(self.length / self.step)

    @property
    def n_ctas(self) -> int:
        if self.axis == "row":
            return self.rows
        if self.axis == "column":
            return math.ceil(self.columns / self.tile_columns) * self.splits
        return min(self.ctas or self.tiles, self.tiles) if self.loop == "grid_stride" else self.tiles

    @property
    def turns(self) -> int:
        """Loop turns of the busiest CTA."""
        if self.axis == "all":
            return math.ceil(self.tiles / self.n_ctas)
        return math.ceil((self.split_rows if self.axis == "column" else self.columns) / self.step)

    @property
    def n_results(self) -> int:
        """Numbers that the launch leaves: partial results count."""
        is_partial = self.finish == "two_stage"
        if self.axis == "all":
            return self.n_ctas if is_partial else 1
        if self.axis == "row":
            return self.rows
        return self.columns * (self.splits if is_partial else 1)

    @property
    def is_added(self) -> bool:
        """Whether several CTAs add to one result."""
        return self.finish == "atomic" and (self.axis == "all" or self.splits > 1) and self.n_ctas > 1

    @property
    def smem_bytes(self) -> int:
        if self.axis == "column":
            return self.warps * self.tile_columns * REGISTER_BYTES if self.warps > 1 else 0
        return self.group.smem_bytes
