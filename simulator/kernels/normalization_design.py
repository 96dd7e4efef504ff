"""Row normalizations: layer norm, RMS norm and softmax of a matrix of ``rows`` by ``columns``."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from simulator.kernels.gemm_design import Section
from simulator.kernels.lane_reduction import GroupReduction
from simulator.kernels.streaming_design import Count, VectorBytes
from simulator.kernels.vectors import FORMATS, ElementFormat, ElementType, widest_vector

NormKind = Literal["layer_norm", "rms_norm", "softmax"]


class NormalizationDesign(Section):
    """A row is held in registers (``passes`` 1), or read again in blocks of ``block`` columns: statistics and result
    (``passes`` 2; softmax: with a running maximum), or each statistic in its own pass (3)."""

    kind: NormKind
    rows: Count
    columns: Count
    dtype: ElementType = "bf16"
    result: ElementType | None = Field(default=None, description="Default: as dtype.")
    weights: Literal["none", "scale", "scale_shift"] | None = Field(
        default=None, description="Per column. Default: scale_shift for layer norm, scale for RMS norm."
    )
    warps: int = Field(default=4, ge=1, le=32)
    rows_per_cta: int = Field(default=1, ge=1, le=32, description="Rows at once: the warps of a CTA share them.")
    passes: Literal[1, 2, 3] = 1
    block: int | None = Field(default=None, ge=1, description="Columns of a loop turn; default: one vector a thread.")
    vector_bytes: VectorBytes | None = Field(default=None, description="Of a lane's load; default: the widest that is aligned.")
    persistent: bool = False
    ctas: int | None = Field(default=None, ge=1, description="CTAs of a persistent launch; default: all that fit.")
    masked: bool = Field(default=True, description="Compare every vector with the row's end, as for any length.")
    full_range: bool = Field(
        default=True, description="Exponentials, roots and quotients right for denormal numbers, as compiled by default."
    )
    max_registers: int = Field(default=255, ge=24, le=255)

    @model_validator(mode="after")
    def _consistent(self) -> NormalizationDesign:
        if self.warps % self.rows_per_cta:
            raise ValueError(f"rows_per_cta {self.rows_per_cta} does not divide warps {self.warps}: rows share them equally")
        if self.kind == "softmax" and self.weights not in (None, "none"):
            raise ValueError("softmax has no weights")
        if self.kind == "rms_norm" and self.passes == 3:
            raise ValueError("rms_norm has one statistic: passes 1 or 2")
        if self.block is not None and self.passes == 1:
            raise ValueError("block goes with passes 2 or 3: with passes 1 a row is held whole")
        if self.ctas is not None and not self.persistent:
            raise ValueError("ctas goes with persistent")
        return self

    @property
    def title(self) -> str:
        """The design in a line."""
        how = "rows in registers" if self.passes == 1 else f"{self.passes} passes"
        return f"{self.kind} {self.rows}x{self.columns} {self.dtype}, {how}, warps {self.warps}"

    @property
    def format(self) -> ElementFormat:
        return FORMATS[self.dtype]

    @property
    def result_format(self) -> ElementFormat:
        return FORMATS[self.result or self.dtype]

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def row_threads(self) -> int:
        """Threads that share a row."""
        return self.threads // self.rows_per_cta

    @property
    def group(self) -> GroupReduction:
        """How a row's threads reduce."""
        return GroupReduction(self.warps // self.rows_per_cta, self.rows_per_cta)

    @property
    def access_bytes(self) -> int:
        """``vector_bytes``, or the widest aligned access that still gives every thread of a row some of it."""
        if self.vector_bytes is not None:
            return self.vector_bytes
        share = max(1, self.columns // self.row_threads) * self.format.n_bytes
        most = 1 << (min(16, share).bit_length() - 1)
        return max(self.format.n_bytes, widest_vector(self.columns * self.format.n_bytes, most))

    @property
    def vector(self) -> int:
        """Elements of a lane's access."""
        return max(1, self.access_bytes // self.format.n_bytes)

    @property
    def span(self) -> int:
        """Columns that one vector of every thread of a row covers."""
        return self.row_threads * self.vector

    @property
    def vectors(self) -> int:
        """Vectors of a thread at once: of a row, or of a loop turn."""
        return math.ceil((self.columns if self.passes == 1 else self.block or self.span) / self.span)

    @property
    def turns(self) -> int:
        """Loop turns of a pass."""
        return 1 if self.passes == 1 else math.ceil(self.columns / (self.vectors * self.span))

    @property
    def weight_arrays(self) -> int:
        usual = {"layer_norm": "scale_shift", "rms_norm": "scale", "softmax": "none"}[self.kind]
        return ("none", "scale", "scale_shift").index(self.weights or usual)

    @property
    def row_groups(self) -> int:
        return math.ceil(self.rows / self.rows_per_cta)

    @property
    def n_ctas(self) -> int:
        return min(self.ctas or self.row_groups, self.row_groups) if self.persistent else self.row_groups

    @property
    def smem_bytes(self) -> int:
        return self.group.smem_bytes
