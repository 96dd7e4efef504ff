"""Reduction designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

import numpy as np

from simulator.kernels.cta_classes import classes_of
from simulator.kernels.legality import Change, variants
from simulator.kernels.reduction_design import ReductionDesign
from simulator.kernels.reduction_kernel import ReductionKernel
from simulator.kernels.sampling import Extent
from simulator.kernels.vectors import FEWEST_REGISTERS, REGISTER_BYTES
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace, Launch


def build(design: ReductionDesign, instruction_set: str, extent: Extent | None = None) -> KernelTrace:
    """The kernel that a compiler would make of ``design``; ``extent``: how many turns of the loop it does."""
    launch = Launch((design.n_ctas, 1, 1), (design.threads, 1, 1), (1, 1, 1), design.smem_bytes)
    kernel = KernelWriter(f"{design.operation}_{design.axis}_{design.dtype}", instruction_set, launch)
    code = ReductionKernel(design, kernel)
    ctas = np.arange(design.n_ctas)
    turns = np.arange(min(design.turns, extent.steps) if extent else design.turns)[:, None]
    if design.axis == "all":
        left = design.length - (ctas + turns * design.n_ctas) * design.step
    elif design.axis == "row":
        left = np.broadcast_to(design.columns - turns * design.step, (len(turns), len(ctas)))
    else:
        rows = np.minimum(design.split_rows, design.rows - ctas % design.splits * design.split_rows)
        left = rows - turns * design.step
    limits = np.clip(left, 0, design.step)
    width = design.columns - ctas // design.splits * design.tile_columns if design.axis == "column" else design.tile_columns
    is_edge = np.broadcast_to(width < design.tile_columns, ctas.shape)
    for kind, members in classes_of(np.vstack([limits, is_edge])):
        code.run(kernel.cta_class(members), members, kind[:-1][kind[:-1] > 0])
    return kernel.trace(_registers(kernel), _warnings(design))


def _warnings(design: ReductionDesign) -> list[str]:
    is_whole = design.axis == "row" or (design.axis == "column" and design.splits == 1) or design.n_ctas == 1
    if design.finish == "atomic" or is_whole:
        return []
    second = "--axis column" if design.axis == "column" else "--axis all"
    shape = f"--rows {design.splits} --columns {design.columns}" if design.axis == "column" else f"--columns {design.n_ctas}"
    return [f"the time is that of the first launch; the second one is the design reduction {shape} {second}"]


def _registers(kernel: KernelWriter) -> int:
    return max(FEWEST_REGISTERS, kernel.live_registers())


def extent_of(design: ReductionDesign) -> Extent:
    """Turns of the busiest CTA's loop."""
    return Extent(1, design.turns)


def launched_on(design: ReductionDesign, n_sms: int, ctas_per_sm: int) -> ReductionDesign:
    """A grid-stride launch takes all the CTAs that the chip holds, unless the design says how many."""
    if design.axis != "all" or design.ctas is not None or design.loop != "grid_stride":
        return design
    return design.model_copy(update={"ctas": max(1, n_sms * ctas_per_sm)})


def resources(design: ReductionDesign) -> tuple[int, int, int]:
    """(registers per thread, threads, bytes of shared memory) of a CTA, from the code alone."""
    kernel = KernelWriter("resources", "", Launch((1, 1, 1), (design.threads, 1, 1)))
    ReductionKernel(design, kernel)
    return _registers(kernel), design.threads, design.smem_bytes


def neighbours(design: ReductionDesign) -> list[tuple[str, ReductionDesign]]:
    """Single-step changes of a design, with what changes in words: first what usually is worth most."""
    access = design.access_bytes
    is_all, is_column = design.axis == "all", design.axis == "column"
    other_loop = "one_tile" if design.loop == "grid_stride" else "grid_stride"
    other_finish = "atomic" if design.finish == "two_stage" else "two_stage"
    changes: list[Change | None] = [
        (f"{access * 2}-byte vectors", {"vector_bytes": access * 2}) if access < 16 else None,
        ("splits x 2", {"splits": design.splits * 2}) if is_column else None,
        ("all loads of a turn in flight", {"in_flight": None}) if design.in_flight not in (None, design.unroll) else None,
        ("unroll x 2", {"unroll": design.unroll * 2}),
        ("warps x 2", {"warps": design.warps * 2}),
        ("warps / 2", {"warps": design.warps // 2}),
        (f"loop {other_loop}", {"loop": other_loop, "ctas": None}) if is_all else None,
        (f"finish {other_finish}", {"finish": other_finish}) if is_all or design.splits > 1 else None,
        ("unroll / 2", {"unroll": design.unroll // 2}),
        ("splits / 2", {"splits": design.splits // 2}) if is_column else None,
        (f"{access // 2}-byte vectors", {"vector_bytes": access // 2}) if access > design.format.n_bytes else None,
        ("no bounds checks", {"masked": False}) if design.masked else None,
    ]
    return variants(design, changes)


def flops(design: ReductionDesign) -> float:
    """One operation for each element but the first of every result."""
    n_results = {"all": 1, "row": design.rows, "column": design.columns}[design.axis]
    return float(design.rows * design.columns - n_results)


def least_bytes(design: ReductionDesign) -> float:
    """Every element read once, every result written once (of ``finish`` two_stage: the partial ones)."""
    return float(design.rows * design.columns * design.format.n_bytes + design.n_results * REGISTER_BYTES)
