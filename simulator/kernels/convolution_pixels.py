"""Which pixels of the image the output pixels of a tile need under each tap, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simulator.kernels.convolution_design import ConvolutionDesign, ConvolutionExtents


@dataclass(frozen=True)
class TapRange:
    """One tap along one dimension: the outputs ``first`` .. ``first + n`` - 1 see the image, from its pixel ``pixel`` on;
    ``shift``: pixel of output 0, negative in the padding."""

    first: int
    n: int
    pixel: int
    shift: int


def tap_ranges(extent: int, n_outputs: int, taps: int, stride: int, padding: int, dilation: int) -> list[TapRange]:
    """Every tap of a filter along a dimension of ``extent`` pixels."""
    found = []
    for tap in range(taps):
        shift = tap * dilation - padding
        first = max(0, math.ceil(-shift / stride))
        last = min(n_outputs - 1, (extent - 1 - shift) // stride)
        found.append(TapRange(first, max(0, last - first + 1), first * stride + shift, shift))
    return found


def taps_of(design: ConvolutionExtents) -> tuple[list[TapRange], list[TapRange]]:
    """Taps along the height and along the width."""
    d = design
    rows, columns = d.output
    return (
        tap_ranges(d.image.height, rows, d.filter.height, d.stride.height, d.padding.height, d.dilation.height),
        tap_ranges(d.image.width, columns, d.filter.width, d.stride.width, d.padding.width, d.dilation.width),
    )


def pixels_read(design: ConvolutionExtents) -> int:
    """Pixels that the taps read in all, each as often as a tap sees it; zeros of the padding are not read."""
    down, across = taps_of(design)
    return design.batch * sum(tap.n for tap in down) * sum(tap.n for tap in across)


def pixels_needed(design: ConvolutionExtents) -> int:
    """Distinct pixels of the images that any tap reads."""
    down, across = taps_of(design)
    rows = {tap.pixel + i * design.stride.height for tap in down for i in range(tap.n)}
    columns = {tap.pixel + i * design.stride.width for tap in across for i in range(tap.n)}
    return design.batch * len(rows) * len(columns)


@dataclass(frozen=True)
class Segments:
    """The pixels of tiles by rows of the result: segment j of a tile lies in row ``row`` [n_tiles] of image ``image`` and
    starts at column ``column``; columns left of 0 and right of the row's end belong to other segments."""

    image: np.ndarray
    row: np.ndarray
    column: np.ndarray


def segment_width(design: ConvolutionDesign) -> int:
    """Columns of a segment's box: a row of the result, or the tile's pixels if that is less."""
    return min(design.output[1], design.tile.m)


def n_segments(design: ConvolutionDesign) -> int:
    """Rows of the result that a tile touches at most: tiles start at multiples of the tile's pixels."""
    width = design.output[1]
    latest = width - math.gcd(width, design.tile.m)
    return math.ceil((latest + design.tile.m) / width)


def segments_of(design: ConvolutionDesign, first_pixel: np.ndarray) -> list[Segments]:
    """Segments of tiles that start at ``first_pixel`` [n_tiles]. The first starts in the tile's first column and is cut by
    the row's end; each other one is placed so that it ends with the tile or with the row, and is cut by the row's start
    (what would reach further belongs to no tile: empty ones lie wholly left of the row)."""
    height, width = design.output
    box = segment_width(design)
    first_row, start = first_pixel // width, first_pixel % width
    found = []
    for j in range(n_segments(design)):
        left = design.tile.m - (j * width - start)
        column = start if j == 0 else np.clip(left, 0, width) - box
        found.append(Segments((first_row + j) // height, (first_row + j) % height, column))
    return found


def tile_kinds(design: ConvolutionDesign, first_pixel: np.ndarray, most: int) -> np.ndarray:
    """Number of the kind of each tile: tiles of a kind read pixels in the same pattern, with the same zeros. Above ``most``
    kinds, tiles take that of a neighbouring start.

    int64 of the shape of ``first_pixel``."""
    height, width = design.output
    start, tile = np.unique(first_pixel % (height * width), return_inverse=True)
    pixel = start[:, None] + np.arange(design.tile.m)
    image, row, column = pixel // (height * width), pixel // width % height, pixel % width
    place = (image * design.image.height + row * design.stride.height) * design.image.width + column * design.stride.width
    marks = [place - place[:, :1]]
    for taps, at in zip(taps_of(design), (row, column), strict=True):
        seen = np.stack([(at >= t.first) & (at < t.first + t.n) for t in taps])
        marks.append((seen.astype(np.int64) << np.arange(len(taps))[:, None, None]).sum(axis=0))
    rows = np.ascontiguousarray(np.concatenate(marks, axis=1))
    void = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, kind = np.unique(void, return_index=True, return_inverse=True)
    if len(first) > most:
        kind = np.arange(len(start)) * most // len(start)
    found: np.ndarray = kind[tile].reshape(first_pixel.shape)
    return found
