"""Convolution designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simulator.kernels import convolution_operands, gemm, gemm_operands
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.convolution_pixels import n_segments, pixels_needed, tile_kinds
from simulator.kernels.gemm_operands import Operands
from simulator.kernels.gemm_tiles import Work, divide
from simulator.kernels.sampling import Extent
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace

MOST_KINDS = 64
"""Kinds of tiles that are told apart where threads compute addresses."""
KINDS_OF_A_PART = 2
"""The same in a part of the work, from which a whole is estimated: against 64 kinds, times of four layers move by
0.1 to 2.7 %, what single-step changes gain by 4.6 points at most, and the part is made 5 to 20 times as fast."""


def build(design: ConvolutionDesign, instruction_set: str, extent: Extent | None = None) -> KernelTrace:
    """The kernel that a compiler would make of ``design`` for chips that execute ``instruction_set``; ``extent``: how much
    of each CTA's work it does."""
    kinds = MOST_KINDS if extent is None else KINDS_OF_A_PART
    works = [part for work in divide(design, extent) for part in _by_code(design, work, kinds)]
    return gemm.write_product("convolution", design, instruction_set, allocate, works, _warnings(design))


def allocate(design: ConvolutionDesign, kernel: KernelWriter) -> Operands:
    """Operands of a convolution; where A is the image as it lies, those of a GEMM."""
    kind = gemm_operands if design.is_product else convolution_operands
    found: Operands = kind.allocate(design, kernel)
    return found


def resources(design: ConvolutionDesign) -> tuple[int, int, int]:
    """(registers per thread, threads, bytes of shared memory) of a CTA, from the code alone."""
    return gemm.resources(design, allocate)


def _warnings(design: ConvolutionDesign) -> tuple[str, ...]:
    if design.is_product or design.loads != "tma" or n_segments(design) == 1:
        return ()
    return (
        f"an im2col box crosses rows of the result: it is written as {n_segments(design)} bulk copies, one a row, so that "
        "bulk copy instructions are more than the compiled kernel's; pixels, bytes and times of the copy are those of the box",
    )


def _by_code(design: ConvolutionDesign, work: Work, most: int) -> list[Work]:
    """CTAs that execute the same: those of one split of k, and with the same pattern of pixels where threads compute
    addresses."""
    if design.is_product:
        return [work]
    keys = [work.k]
    if design.loads == "cp_async":
        keys.append(tile_kinds(design, work.m, most))
    _, number = np.unique(np.concatenate(keys), axis=1, return_inverse=True)
    parts = [np.flatnonzero(number.ravel() == kind) for kind in range(int(number.max()) + 1)]
    return [replace(work, members=work.members[p], m=work.m[:, p], n=work.n[:, p], k=work.k[:, p]) for p in parts]


def neighbours(design: ConvolutionDesign) -> list[tuple[str, Any]]:
    """Single-step changes of a design, with what changes in words: first what usually is worth most."""
    return list(gemm.neighbours(design))


def flops(design: ConvolutionDesign) -> float:
    """2 per multiply-add, those with zeros of the padding included, as is the custom."""
    return 2.0 * design.m * design.filters * design.channels * design.taps


def least_bytes(design: ConvolutionDesign) -> float:
    """Every pixel that a tap reads and every filter read once, every result written once."""
    element = design.format.n_bytes
    inputs = (pixels_needed(design) + design.filters * design.taps) * design.channels * element
    return float(inputs + design.m * design.n * design.result_bytes)
