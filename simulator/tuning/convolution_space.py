"""Convolutions as problems to tune: matrix products whose A comes from the images under the filter's taps.

Space, columns and screen are those of ``gemm_space``, ``gemm_columns`` and ``gemm_model``, without what an implicit product
has not: streams of k, a single stage, tiles of A shared by a cluster.
"""

from __future__ import annotations

import numpy as np

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.convolution_design import ConvolutionDesign, ConvolutionExtents
from simulator.kernels.convolution_legality import check_convolution
from simulator.kernels.convolution_pixels import pixels_needed
from simulator.kernels.gemm_legality import COPY_ALIGNMENT
from simulator.tuning import gemm_space
from simulator.tuning.designs import Designs
from simulator.tuning.gemm_columns import LOADS, MULTICASTS, ProductProblem


class ConvolutionProblem(ProductProblem, ConvolutionExtents):  # type: ignore[override]
    """A forward convolution. ``batch``, ``channels`` and ``filters`` are its extents; image and filter tell layers apart."""

    @property
    def m(self) -> int:
        """Output pixels; at least 1, also where the filter is larger than the image."""
        rows, columns = self.output
        return self.batch * max(1, rows) * max(1, columns)

    @property
    def n(self) -> int:
        return self.filters

    @property
    def row_elements(self) -> int:
        return self.channels

    def k_steps(self, tile_k: np.ndarray) -> np.ndarray:
        """Each tap's channels are whole steps."""
        return self.taps * -(-self.channels // tile_k)

    @property
    def operand_bytes(self) -> tuple[float, float]:
        row = self.channels * self.format.n_bytes
        return float(pixels_needed(self) * row), float(self.filters * self.taps * row)


def _any_design(problem: ConvolutionProblem) -> ConvolutionDesign:
    return ConvolutionDesign.model_validate(problem.model_dump() | {"epilogue": "direct"})


def space(problem: ConvolutionProblem, hw: HardwareConfig) -> Designs:
    """Legal designs on ``hw``. UserError where the problem itself rules them out."""
    violations = {violation.rule for violation in check_convolution(_any_design(problem), hw)}
    if "filter" in violations:
        raise UserError(gemm_space.why_none(problem, hw))
    found = gemm_space.space(problem, hw)
    keep = (found["multicast"] != MULTICASTS.index("a")) & (found["stream_k"] == 0) & (found["stages"] > 1)
    if "im2col" in violations:
        keep &= found["loads"] != LOADS.index("tma")
    return found.take(keep)


def requirements(design: ConvolutionDesign) -> dict[str, int]:
    """Of which number each extent must be a multiple: channels are copied, filters are columns of the result."""
    return {"batch": 1, "channels": COPY_ALIGNMENT // design.format.n_bytes, "filters": gemm_space.column_multiple(design)}
