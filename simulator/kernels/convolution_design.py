"""Convolutions that nobody has written yet, as matrix products by tiles (implicit GEMM).

Images are NHWC, filters KRSC. A row of A is an output pixel, a column of B a filter; k runs over the channels and taps of
the filter. A is never stored: each step over k copies the pixels of a tile under one tap, for a block of channels.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from simulator.kernels.gemm_design import Dtype, ProductDesign, Section


class Plane(Section):
    """Extents along the height and width of an image."""

    height: int = Field(ge=1, le=1 << 16)
    width: int = Field(ge=1, le=1 << 16)


class Padding(Section):
    """Zeros around an image, on both sides of each dimension."""

    height: int = Field(ge=0, le=1 << 12)
    width: int = Field(ge=0, le=1 << 12)


def _both(value: Any) -> Any:
    """One number stands for both dimensions; text is height x width."""
    if isinstance(value, str) and re.fullmatch(r"\d+x\d+", value):
        height, width = value.split("x")
        return {"height": int(height), "width": int(width)}
    return {"height": value, "width": value} if isinstance(value, int) else value


Pair = Annotated[Plane, BeforeValidator(_both)]
"""1, 1x2 or {height: 1, width: 2}"""


class ConvolutionExtents(Section):
    """The problem. ``image``, ``filter``: height x width in pixels; ``stride``, ``padding``, ``dilation``: in pixels."""

    kind: Literal["convolution"] = "convolution"
    batch: int = Field(ge=1, le=1 << 16)
    image: Pair
    channels: int = Field(ge=1, le=1 << 16)
    filters: int = Field(ge=1, le=1 << 16)
    filter: Pair
    stride: Pair = Plane(height=1, width=1)
    padding: Annotated[Padding, BeforeValidator(_both)] = Padding(height=0, width=0)
    dilation: Pair = Plane(height=1, width=1)

    @property
    def output(self) -> tuple[int, int]:
        """Rows and columns of the result; at most 0 where the filter is larger than the padded image."""
        return tuple(  # type: ignore[return-value]
            (size + 2 * pad - self.span[axis]) // step + 1
            for axis, (size, pad, step) in enumerate(
                (
                    (self.image.height, self.padding.height, self.stride.height),
                    (self.image.width, self.padding.width, self.stride.width),
                )
            )
        )

    @property
    def span(self) -> tuple[int, int]:
        """Rows and columns of the image between a filter's first and last tap, both included."""
        return (self.filter.height - 1) * self.dilation.height + 1, (self.filter.width - 1) * self.dilation.width + 1

    @property
    def taps(self) -> int:
        return self.filter.height * self.filter.width

    @property
    def is_product(self) -> bool:
        """Whether A is the image as it lies in memory: one tap that sees every pixel once."""
        steps = (self.stride.height, self.stride.width, self.padding.height, self.padding.width)
        return self.taps == 1 and steps == (1, 1, 0, 0)


class ConvolutionDesign(ProductDesign, ConvolutionExtents):
    """A forward convolution: m output pixels, n filters, k channels under every tap. Each tap's channels are whole steps
    of ``tile.k`` (the last of them may reach beyond the channels, and brings zeros)."""

    multicast: Literal["none", "b"] = "none"
    stream_k: Literal[False] = False
    dtype: Dtype = "bf16"
    weights: None = None
    a_from: Literal["shared"] = "shared"
    stages: int = Field(default=3, ge=2, le=32, description="Buffers of A and B in shared memory.")

    @property
    def problem(self) -> str:
        """Images and filters, in words."""
        image = f"{self.batch}x{self.image.height}x{self.image.width}x{self.channels}"
        return f"{image} by {self.filters} {self.filter.height}x{self.filter.width} filters"

    @property
    def m(self) -> int:
        """Output pixels."""
        rows, columns = self.output
        return self.batch * rows * columns

    @property
    def n(self) -> int:
        return self.filters

    @property
    def k(self) -> int:
        """Channels and taps, with each tap's channels in whole steps."""
        return self.channels if self.taps == 1 else self.taps * math.ceil(self.channels / self.tile.k) * self.tile.k
