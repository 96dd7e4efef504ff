"""Where the image and the filters lie, and how a stage of them is copied: im2col boxes, or chunks by computed addresses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.convolution_pixels import n_segments, segment_width, segments_of, taps_of
from simulator.kernels.gemm_layout import CHUNK_BYTES
from simulator.kernels.gemm_operands import Box, Chunks, Operands, box_shape, boxes_of, loaded_rows
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.writer import Block, CtaClass, KernelWriter


@dataclass(frozen=True)
class ConvolutionOperands(Operands):
    """A is the image under a tap; ``tap_maps``: tensor map of each tap, rows of taps one after another; ``masks``: a
    register for each copy, one bit for each row and column of taps that sees the copy's pixel."""

    convolution: ConvolutionDesign = field(kw_only=True)
    tap_maps: tuple[int, ...] = ()
    masks: Value = field(default_factory=lambda: Value("masks", 0))

    def copies_of_a_box(self, number: int) -> int:
        return n_segments(self.convolution) if self.boxes[number].along == "m" else 1

    def step_places(self, work: Work, unit: int) -> tuple[np.ndarray, np.ndarray]:
        """(tap, first channel) of each step, int64 [k_steps]: all taps of a block of channels, then the next block."""
        step = work.k[unit, 0] + np.arange(work.k_steps[unit])
        return step % self.convolution.taps, step // self.convolution.taps * self.convolution.tile.k

    def copy_events(self, cta: CtaClass, work: Work, unit: int, first: int) -> list[list[np.ndarray]]:
        design = self.convolution
        tap, channel = self.step_places(work, unit)
        stage = (first + np.arange(len(tap))) % design.stages
        found = []
        for box in self.boxes:
            common: dict[str, Any] = {"shared_address": stage * design.stage_bytes + box.offset, "mbarrier": self.full(stage)}
            if box.along == "m":
                found.append(self._segment_events(cta, work, unit, box, tap, channel + box.column, common))
                continue
            moves = (0, cta.place(f"filter{unit}", loaded_rows(design, work, unit, "n")), 0)
            place = (channel + box.column, box.row, tap)
            found.append([cta.events(tensor=box.tensor, count=box.n_bytes, **common, coordinate=place, moves=moves)])
        return found

    def _segment_events(
        self, cta: CtaClass, work: Work, unit: int, box: Box, tap: np.ndarray, channel: np.ndarray, common: dict[str, Any]
    ) -> list[np.ndarray]:
        """Copies of an im2col box: a segment each, from the first output that each tap sees on."""
        design = self.convolution
        down, across = taps_of(design)
        row = np.array([t.first for t in down])[tap // design.filter.width]
        column = np.array([t.first for t in across])[tap % design.filter.width]
        maps = np.array(self.tap_maps)[tap]
        segments = segments_of(design, work.m[unit])
        share = box.n_bytes // len(segments)
        found = []
        for j, segment in enumerate(segments):
            moves = (
                0,
                cta.place(f"column{unit}.{j}", segment.column),
                cta.place(f"row{unit}.{j}", segment.row),
                cta.place(f"image{unit}.{j}", segment.image),
            )
            count = box.n_bytes - share * (len(segments) - 1) if j == 0 else share
            found.append(cta.events(tensor=maps, count=count, **common, coordinate=(channel, -column, -row, 0), moves=moves))
        return found

    def start_addresses(self, block: Block, n_copies: int) -> None:
        """Each copy's pixel: two divisions by multiplication, its place in the image, and which taps see it."""
        pixel, place, outside = Value("pixel", 2), Value("image place"), Value("P1", kind="P")
        for _ in range(n_copies):
            for _ in range(2):
                block.op("IMAD.HI.U32", [pixel], [pixel])
                block.op("SHF.R.U32.HI", [pixel], [pixel])
                block.op("IMAD", [place], [pixel])
            block.op("IMAD", [place], [place])
            block.op("IMAD", [pixel], [pixel])
            for _ in range(self.convolution.filter.height + self.convolution.filter.width):
                block.op("IADD3", [place], [place])
                block.op("ISETP.GE.U32.AND", [outside], [place])
                block.op("LOP3.LUT", [self.masks], [self.masks], guard=outside)
            block.ops("IMAD.WIDE", 2, [pixel], [pixel, place])

    def guard_copies(self, block: Block, n_copies: int) -> list[Value | None]:
        """One bit of the mask for the tap's row, one for its column."""
        guards = [Value(f"P{i + 1}", kind="P") for i in range(n_copies)]
        bits = Value("tap bits")
        for guard in guards:
            block.op("LOP3.LUT", [bits], [self.masks])
            block.op("ISETP.EQ.U32.AND", [guard], [bits])
        return list(guards)

    def chunks(
        self, kernel: KernelWriter, cta: CtaClass, work: Work, unit: int, name: str, row: np.ndarray, byte: np.ndarray
    ) -> Chunks:
        tap, channel = self.step_places(work, unit)
        design = self.convolution
        inside = byte < (design.channels - channel[:, None]) * design.format.n_bytes
        if name == "a":
            inside &= row < work.valid[unit][0]
            return self._pixel_chunks(kernel, cta, work, unit, row, byte, inside)
        inside &= row < work.valid[unit][1]
        pitch = design.taps * design.channels * design.format.n_bytes
        offset = np.broadcast_to(row * pitch + byte, inside.shape)
        step = (tap * design.channels + channel) * design.format.n_bytes
        return _chunks(kernel, offset, inside, self.b + step, cta.place(f"filter{unit}", work.n[unit] * pitch))

    def _pixel_chunks(
        self, kernel: KernelWriter, cta: CtaClass, work: Work, unit: int, row: np.ndarray, byte: np.ndarray, inside: np.ndarray
    ) -> Chunks:
        design = self.convolution
        height, width = design.output
        pixel_bytes = design.channels * design.format.n_bytes
        tap, channel = self.step_places(work, unit)
        down, across = taps_of(design)
        pixel = work.m[unit, 0] + row
        out_row, out_column = pixel // width % height, pixel % width
        offset = (_image_place(design, pixel) - _image_place(design, work.m[unit, :1])) * pixel_bytes + byte
        step = np.zeros(len(tap), np.int64)
        for t in range(design.taps):
            y, x = down[t // design.filter.width], across[t % design.filter.width]
            sees = (out_row >= y.first) & (out_row < y.first + y.n) & (out_column >= x.first) & (out_column < x.first + x.n)
            inside[tap == t] &= sees
            step[tap == t] = (y.shift * design.image.width + x.shift) * pixel_bytes
        step += channel * design.format.n_bytes
        key = cta.place(f"pixel{unit}", _image_place(design, work.m[unit]) * pixel_bytes)
        return _chunks(kernel, np.broadcast_to(offset, inside.shape), inside, self.a + step, key)


def _image_place(design: ConvolutionDesign, pixel: np.ndarray) -> np.ndarray:
    """Pixel of the images, counted row by row, at which an output pixel's window starts but for the padding."""
    height, width = design.output
    image, row, column = pixel // (height * width), pixel // width % height, pixel % width
    found: np.ndarray = (image * design.image.height + row * design.stride.height) * design.image.width
    return found + column * design.stride.width


def _chunks(kernel: KernelWriter, offset: np.ndarray, inside: np.ndarray, step: np.ndarray, key: int) -> Chunks:
    """``offset``, ``inside``: of each step and lane; patterns start at the first lane that is inside."""
    first = np.argmax(inside, axis=1)
    start = offset[np.arange(len(offset)), first]
    lanes = np.where(inside, offset - start[:, None], -1).astype(np.int32)
    shapes, number = np.unique(lanes, axis=0, return_inverse=True)
    patterns = np.array([kernel.pattern(shape) for shape in shapes])
    return Chunks(patterns[number.ravel()], step + start, inside.sum(axis=1), key)


def allocate(design: ConvolutionDesign, kernel: KernelWriter) -> ConvolutionOperands:
    """Buffers of the images, filters and result; tensor maps of the images under each tap and of the filters."""
    element = design.format.n_bytes
    a = kernel.buffer("images", design.batch * design.image.height * design.image.width * design.channels * element)
    b = kernel.buffer("filters", design.filters * design.taps * design.channels * element)
    c = kernel.buffer("c", design.m * design.n * design.result_bytes)
    if design.loads != "tma":
        n_copies = math.ceil(design.tile.m * design.row_bytes / CHUNK_BYTES / (32 * design.warps))
        return ConvolutionOperands(design, a, b, c, convolution=design, masks=Value("masks", n_copies))
    sharers = design.cluster if design.multicast == "b" else 1
    columns, rows = box_shape(design, design.tile.n, sharers)
    pixel_bytes = design.channels * element
    filters = kernel.tensor_map(
        "filters",
        element,
        (design.channels, design.filters, design.taps),
        (columns, rows, 1),
        design.swizzle,
        b,
        strides=(design.taps * pixel_bytes, pixel_bytes),
    )
    images = [
        Box(-1, "m", column, 0, column * element * design.tile.m, design.tile.m * columns * element)
        for column in range(0, design.tile.k, columns)
    ]
    boxes = (*images, *boxes_of(design, "b", filters, design.tile.n, sharers))
    return ConvolutionOperands(design, a, b, c, boxes, convolution=design, tap_maps=_tap_maps(design, kernel, a, columns))


def _tap_maps(design: ConvolutionDesign, kernel: KernelWriter, address: int, columns: int) -> tuple[int, ...]:
    """The images as each tap sees them: channels x output columns x output rows x images, without the outputs whose
    tap lies in the padding. A box is a segment of a row; its tile's other pixels are in other boxes."""
    pixel_bytes = design.channels * design.format.n_bytes
    row_bytes = design.image.width * pixel_bytes
    strides = (design.stride.width * pixel_bytes, design.stride.height * row_bytes, design.image.height * row_bytes)
    width = segment_width(design)
    down, across = taps_of(design)
    return tuple(
        kernel.tensor_map(
            "images",
            design.format.n_bytes,
            (design.channels, x.n, y.n, design.batch),
            (columns, width, 1, 1),
            design.swizzle,
            address + y.pixel * row_bytes + x.pixel * pixel_bytes,
            strides=strides,
            row_share=design.tile.m / (n_segments(design) * width),
        )
        for y in down
        for x in across
    )
