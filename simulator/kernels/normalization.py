"""Normalization designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

import numpy as np

from simulator.kernels.cta_classes import classes_of
from simulator.kernels.legality import Change, variants
from simulator.kernels.normalization_design import NormalizationDesign
from simulator.kernels.normalization_kernel import HeldRow
from simulator.kernels.normalization_passes import PassesRow
from simulator.kernels.sampling import Extent
from simulator.kernels.vectors import FEWEST_REGISTERS
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace, Launch

OPERATIONS = {"layer_norm": 5, "rms_norm": 3, "softmax": 5}
"""Per element, weights aside. Layer norm: sum, difference, square, sum of squares, scale; RMS norm: square, sum, scale;
softmax: maximum, difference, exponential, sum, scale."""


def _code(design: NormalizationDesign, kernel: KernelWriter) -> HeldRow | PassesRow:
    return HeldRow(design, kernel) if design.passes == 1 else PassesRow(design, kernel)


def build(design: NormalizationDesign, instruction_set: str, extent: Extent | None = None) -> KernelTrace:
    """The kernel that a compiler would make of ``design``; ``extent``: how many rows of a CTA and turns of a row it does."""
    launch = Launch((design.n_ctas, 1, 1), (design.threads, 1, 1), (1, 1, 1), design.smem_bytes)
    kernel = KernelWriter(f"{design.kind}_{design.dtype}", instruction_set, launch)
    code = _code(design, kernel)
    whole = extent or extent_of(design)
    ctas = np.arange(design.n_ctas)
    own = ctas + np.arange(whole.units)[:, None] * design.n_ctas
    n_rows = np.clip(design.rows - own * design.rows_per_cta, 0, design.rows_per_cta)
    for kind, members in classes_of(n_rows):
        code.run(kernel.cta_class(members), members, int((kind > 0).sum()), whole.steps)
    return kernel.trace(_registers(design, kernel))


def _registers(design: NormalizationDesign, kernel: KernelWriter) -> int:
    return max(FEWEST_REGISTERS, kernel.live_registers())


def extent_of(design: NormalizationDesign) -> Extent:
    """Rows of the busiest CTA one after another, and turns of a pass."""
    return Extent(-(-design.row_groups // design.n_ctas), design.turns)


def launched_on(design: NormalizationDesign, n_sms: int, ctas_per_sm: int) -> NormalizationDesign:
    """A persistent launch takes all the CTAs that the chip holds, unless the design says how many."""
    if design.ctas is not None or not design.persistent:
        return design
    return design.model_copy(update={"ctas": max(1, n_sms * ctas_per_sm)})


def resources(design: NormalizationDesign) -> tuple[int, int, int]:
    """(registers per thread, threads, bytes of shared memory) of a CTA, from the code alone."""
    kernel = KernelWriter("resources", "", Launch((1, 1, 1), (design.threads, 1, 1)))
    _code(design, kernel)
    return _registers(design, kernel), design.threads, design.smem_bytes


def code_of_row(design: NormalizationDesign) -> tuple[int, int, int]:
    """(registers per thread, instructions of a warp for a row outside the loops of its passes, in one turn of each of them)."""
    kernel = KernelWriter("row", "", Launch((1, 1, 1), (design.threads, 1, 1)))
    code = _code(design, kernel)
    inside = sum(len(block.instructions) for block in code.loops)
    return _registers(design, kernel), sum(len(block.instructions) for block in code.body) - inside, inside


def neighbours(design: NormalizationDesign) -> list[tuple[str, NormalizationDesign]]:
    """Single-step changes of a design, with what changes in words: first what usually is worth most."""
    access = design.access_bytes
    looped = design.passes > 1
    changes: list[Change | None] = [
        ("row held in registers", {"passes": 1, "block": None}) if looped else None,
        ("2 passes", {"passes": 2}) if design.passes == 3 else None,
        ("warps x 2", {"warps": design.warps * 2}),
        ("warps / 2", {"warps": design.warps // 2}),
        ("not persistent" if design.persistent else "persistent", {"persistent": not design.persistent, "ctas": None}),
        (f"{access * 2}-byte vectors", {"vector_bytes": access * 2}),
        ("rows per CTA x 2, warps x 2", {"rows_per_cta": design.rows_per_cta * 2, "warps": design.warps * 2}),
        ("rows per CTA / 2, warps / 2", {"rows_per_cta": design.rows_per_cta // 2, "warps": design.warps // 2}),
        ("block x 2", {"block": design.vectors * design.span * 2}) if looped else None,
        ("block / 2", {"block": design.vectors * design.span // 2}) if looped and design.vectors > 1 else None,
        (f"{access // 2}-byte vectors", {"vector_bytes": access // 2}) if access > design.format.n_bytes else None,
        ("2 passes", {"passes": 2}) if not looped else None,
        ("denormals flushed", {"full_range": False}) if design.full_range else None,
        ("no bounds checks", {"masked": False}) if design.masked else None,
    ]
    return variants(design, changes)


def flops(design: NormalizationDesign) -> float:
    """Operations of all elements."""
    return float(design.rows * design.columns * (OPERATIONS[design.kind] + design.weight_arrays))


def least_bytes(design: NormalizationDesign) -> float:
    """Every row and weight read once, every result written once."""
    one = design.format.n_bytes
    moved = design.rows * (one + design.result_format.n_bytes) + design.weight_arrays * one
    return float(design.columns * moved)
