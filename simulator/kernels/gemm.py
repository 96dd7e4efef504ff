"""GEMM designs to traces."""

from __future__ import annotations

from simulator.errors import UserError
from simulator.kernels import gemm_wgmma
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.gemm_operands import allocate
from simulator.kernels.gemm_tiles import divide, n_ctas
from simulator.kernels.writer import KernelWriter
from simulator.trace.kernel_trace import KernelTrace, Launch


def build(design: GemmDesign, instruction_set: str) -> KernelTrace:
    """The kernel that a compiler would make of ``design`` for chips that execute ``instruction_set``."""
    grid = n_ctas(design)
    cluster = (design.cluster, 1, 1)
    launch = Launch((grid, 1, 1), (32 * design.n_warps, 1, 1), cluster, design.smem_bytes)
    kernel = KernelWriter(f"gemm_{design.method}", instruction_set, launch)
    operands = allocate(design, kernel)
    writers = {"wgmma": gemm_wgmma.build}
    if design.method not in writers:
        raise UserError(f"multiply {design.method} is not generated yet")
    writers[design.method](design, kernel, operands, divide(design))
    registers = min(kernel.live_registers(), design.max_registers)
    return kernel.trace(registers)
