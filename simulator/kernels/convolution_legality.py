"""The limits of convolution designs: those of the matrix product, of the problem, and of im2col boxes."""

from __future__ import annotations

from typing import Any

from simulator.hw.config import HardwareConfig
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.gemm_legality import check_product, check_rows, with_dependents
from simulator.kernels.legality import Violation

LOWEST_CORNER, HIGHEST_CORNER = -128, 127
"""Corners of the box that an im2col copy moves over an image with two spatial dimensions, in pixels from the image's own
corners (cuTensorMapEncodeIm2col: 8-bit values)."""
LARGEST_OFFSET = 255
"""Of a tap within the filter, in pixels (im2col offsets of cp.async.bulk.tensor with two spatial dimensions: 8 bits)."""
LARGEST_STRIDE = 8
"""Of an im2col box in the image (element strides of a tensor map)."""


def check_convolution(design: ConvolutionDesign, hw: HardwareConfig) -> list[Violation]:
    """Every limit that ``design`` breaks on ``hw``."""
    found = _filter_fits(design)
    if found:
        return found
    found = check_product(design, hw)
    how = "bulk copies need pixels" if design.loads == "tma" else "16-byte copies need pixels"
    found += check_rows("channels", design.channels, design.format.n_bytes, how)
    if design.loads == "tma" and not design.is_product:
        found += with_dependents(_im2col(design))
    return found


def _filter_fits(design: ConvolutionDesign) -> list[Violation]:
    found = []
    for axis, name in enumerate(("height", "width")):
        if design.output[axis] >= 1:
            continue
        pad = getattr(design.padding, name)
        size = getattr(design.image, name) + 2 * pad
        span = design.span[axis]
        needed = pad + -(-(span - size) // 2)
        found.append(
            Violation(
                "filter",
                f"the filter spans {span} pixels of {name}, the padded image has {size}",
                span,
                size,
                f"padding {name} {needed}",
                {f"padding.{name}": needed},
            )
        )
    return found


def _im2col(design: ConvolutionDesign) -> list[Violation]:
    found = []
    change: tuple[str, dict[str, Any]] = ("loads cp_async", {"loads": "cp_async", "epilogue": "staged"})
    for axis, name in enumerate(("height", "width")):
        pad, reach = getattr(design.padding, name), design.span[axis] - 1
        stride = getattr(design.stride, name)
        corner = f"padding {name} {pad} puts a corner of an im2col box at"
        for what, value, least, most in (
            (corner, -pad, LOWEST_CORNER, HIGHEST_CORNER),
            (corner, pad - reach, LOWEST_CORNER, HIGHEST_CORNER),
            (f"the filter's last tap along its {name} has the offset", reach, 0, LARGEST_OFFSET),
            (f"stride {name} is", stride, 1, LARGEST_STRIDE),
        ):
            limit = most if value > most else least
            if not least <= value <= most:
                message = f"{what} {value}, the limit of bulk copies in im2col mode is {limit}"
                found.append(Violation("im2col", message, value, limit, *change))
    return found
