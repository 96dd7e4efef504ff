"""Streaming designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

from typing import Any

from simulator.kernels import elementwise, transpose
from simulator.kernels.legality import updated
from simulator.kernels.sampling import Extent
from simulator.kernels.streaming_design import StreamingDesign
from simulator.kernels.vectors import FEWEST_REGISTERS
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace, Launch


def build(design: StreamingDesign, instruction_set: str, extent: Extent | None = None) -> KernelTrace:
    """The kernel that a compiler would make of ``design``; ``extent``: how many turns of a grid-stride loop it does."""
    kernel = _written(design, instruction_set, extent)
    return kernel.trace(_registers(kernel))


def _written(design: StreamingDesign, instruction_set: str, extent: Extent | None) -> KernelWriter:
    launch = Launch((design.n_ctas, 1, 1), (design.threads, 1, 1), (1, 1, 1), design.smem_bytes)
    kernel = KernelWriter(f"{design.operation}_{design.dtype}", instruction_set, launch)
    if design.operation == "transpose":
        transpose.build(design, kernel)
    else:
        elementwise.build(design, kernel, extent)
    return kernel


def _registers(kernel: KernelWriter) -> int:
    return max(FEWEST_REGISTERS, kernel.live_registers())


def extent_of(design: StreamingDesign) -> Extent:
    """Turns of the busiest CTA."""
    return Extent(1, -(-design.turns // design.n_ctas))


def launched_on(design: StreamingDesign, n_sms: int, ctas_per_sm: int) -> StreamingDesign:
    """A grid-stride launch takes all the CTAs that the chip holds, unless the design says how many."""
    if design.ctas is not None or design.loop != "grid_stride":
        return design
    return design.model_copy(update={"ctas": max(1, n_sms * ctas_per_sm)})


def resources(design: StreamingDesign) -> tuple[int, int, int]:
    """(registers per thread, threads, bytes of shared memory) of a CTA, from the code alone."""
    kernel = KernelWriter("resources", "", Launch((1, 1, 1), (design.threads, 1, 1)))
    kind = transpose.TransposeKernel if design.operation == "transpose" else elementwise.ElementwiseKernel
    kind(design, kernel)
    return _registers(kernel), design.threads, design.smem_bytes


def neighbours(design: StreamingDesign) -> list[tuple[str, StreamingDesign]]:
    """Single-step changes of a design, with what changes in words: first what usually is worth most."""
    changes = _transpose_changes(design) if design.operation == "transpose" else _linear_changes(design)
    found = []
    for what, update in changes:
        try:
            other = updated(design, update)
        except ValueError:
            continue
        if other != design:
            found.append((what, other))
    return found  # type: ignore[return-value]


def _vector_changes(design: StreamingDesign) -> list[tuple[str, dict[str, Any]]]:
    access = design.access_bytes
    wider = [(f"{access * 2}-byte vectors", {"vector_bytes": access * 2})] if access < 16 else []
    return wider + ([(f"{access // 2}-byte vectors", {"vector_bytes": access // 2})] if access > design.n_bytes else [])


def _transpose_changes(design: StreamingDesign) -> list[tuple[str, dict[str, Any]]]:
    layouts = [name for name in ("xor", "padded", "shared", "plain") if name != design.layout]
    if design.layout in ("xor", "padded"):
        layouts = [name for name in layouts if name in ("xor", "padded")]
    tile = design.block
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"layout {name}", {"layout": name, "padding_bytes": None, "gather": None}) for name in layouts
    ]
    square = tile.model_dump()
    return [
        *changes[:2],
        ("tile x 2 each way", {"tile": {name: n * 2 for name, n in square.items()}}),
        *_vector_changes(design),
        ("warps x 2", {"warps": design.warps * 2}),
        ("warps / 2", {"warps": design.warps // 2}),
        ("tile / 2 each way", {"tile": {name: n // 2 for name, n in square.items()}}),
        (f"walk {'columns' if design.walk == 'rows' else 'rows'}", {"walk": "columns" if design.walk == "rows" else "rows"}),
        *changes[2:],
    ]


def _linear_changes(design: StreamingDesign) -> list[tuple[str, dict[str, Any]]]:
    other_loop = "one_tile" if design.loop == "grid_stride" else "grid_stride"
    return [
        *_vector_changes(design)[:1],
        ("unroll x 2", {"unroll": design.unroll * 2}),
        (f"loop {other_loop}", {"loop": other_loop, "ctas": None}),
        ("warps x 2", {"warps": design.warps * 2}),
        ("warps / 2", {"warps": design.warps // 2}),
        ("unroll / 2", {"unroll": design.unroll // 2}),
        *_vector_changes(design)[1:],
    ]


def flops(design: StreamingDesign) -> float:
    """Operations of all elements; summing several inputs counts as fused multiply-adds do, once each."""
    fma = max(design.fma_per_element, design.inputs - 1)
    return float(design.n_elements * (fma + design.alu_per_element + design.mufu_per_element))


def least_bytes(design: StreamingDesign) -> float:
    """Every input read once and the result written once."""
    return float(design.n_elements * (design.inputs * design.n_bytes + design.n_result_bytes))
