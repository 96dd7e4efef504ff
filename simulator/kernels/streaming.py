"""Streaming designs to traces, and what the other rooms ask of the family."""

from __future__ import annotations

from simulator.kernels import elementwise, transpose
from simulator.kernels.legality import Change, variants
from simulator.kernels.sampling import Extent
from simulator.kernels.streaming_design import StreamingDesign
from simulator.kernels.vectors import FEWEST_REGISTERS, WIDEST_BYTES
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
    return variants(design, _transpose_changes(design) if design.operation == "transpose" else _linear_changes(design))


def _wider(design: StreamingDesign) -> list[Change]:
    access = design.access_bytes * 2
    return [(f"{access}-byte vectors", {"vector_bytes": access})] if access <= WIDEST_BYTES else []


def _narrower(design: StreamingDesign) -> list[Change]:
    access = design.access_bytes // 2
    return [(f"{access}-byte vectors", {"vector_bytes": access})] if access >= design.n_bytes else []


def _transpose_changes(design: StreamingDesign) -> list[Change]:
    layouts = [name for name in ("xor", "padded", "shared", "plain") if name != design.layout]
    if design.layout in ("xor", "padded"):
        layouts = [name for name in layouts if name in ("xor", "padded")]
    tile = design.block
    changes: list[Change] = [
        (f"layout {name}", {"layout": name, "padding_bytes": None, "gather": None}) for name in layouts
    ]
    square = tile.model_dump()
    return [
        *changes[:2],
        ("tile x 2 each way", {"tile": {name: n * 2 for name, n in square.items()}}),
        *_wider(design),
        ("warps x 2", {"warps": design.warps * 2}),
        ("warps / 2", {"warps": design.warps // 2}),
        *_narrower(design),
        ("tile / 2 each way", {"tile": {name: n // 2 for name, n in square.items()}}),
        (f"walk {'columns' if design.walk == 'rows' else 'rows'}", {"walk": "columns" if design.walk == "rows" else "rows"}),
        *changes[2:],
    ]


def _linear_changes(design: StreamingDesign) -> list[Change]:
    other_loop = "one_tile" if design.loop == "grid_stride" else "grid_stride"
    return [
        *_wider(design),
        ("all loads in flight", {"in_flight": None}),
        ("unroll x 2", {"unroll": design.unroll * 2}),
        (f"loop {other_loop}", {"loop": other_loop, "ctas": None}),
        ("warps x 2", {"warps": design.warps * 2}),
        ("warps / 2", {"warps": design.warps // 2}),
        ("unroll / 2", {"unroll": design.unroll // 2}),
        *_narrower(design),
    ]


def flops(design: StreamingDesign) -> float:
    """Operations of all elements; summing several inputs counts as fused multiply-adds do, once each."""
    fma = max(design.fma_per_element, design.inputs - 1)
    return float(design.n_elements * (fma + design.alu_per_element + design.mufu_per_element))


def least_bytes(design: StreamingDesign) -> float:
    """Every input read once and the result written once."""
    return float(design.n_elements * (design.inputs * design.n_bytes + design.n_result_bytes))
