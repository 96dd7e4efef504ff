"""GEMM whose warps all multiply: fill the ring, then each step waits for a stage, multiplies, and refills the one before."""

from __future__ import annotations

from simulator.kernels.code_fragments import divide, hold, read_launch, scalar_work, zero
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.gemm_epilogue import Epilogue
from simulator.kernels.gemm_feeds import feed_of, stages_ahead
from simulator.kernels.gemm_multiply import SCALAR_BETWEEN, ScalarMultiply, WarpgroupMultiply, WarpMultiply
from simulator.kernels.gemm_operands import Operands
from simulator.kernels.gemm_spills import Spills
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.gemm_weights import StoredMultiply
from simulator.kernels.writer import CtaClass, KernelWriter

SCALAR_PER_STEP = {"tma": SCALAR_BETWEEN, "cp_async": 14}
"""Scalar instructions under the multiply-adds of a step: bulk copies need descriptors and elected lanes."""
HELD_REGISTERS = 16
"""Registers per thread beside accumulators and operands (compiled Triton loops: accumulators begin at R24)."""


def multiply_of(design: ProductDesign, kernel: KernelWriter) -> WarpgroupMultiply | WarpMultiply | ScalarMultiply:
    """The way of multiplying that the design asks for."""
    by_warp = StoredMultiply if design.weights else WarpMultiply
    kinds: dict[str, type] = {"wgmma": WarpgroupMultiply, "mma_sync": by_warp, "ffma": ScalarMultiply}
    found: WarpgroupMultiply | WarpMultiply | ScalarMultiply = kinds[design.method](design, kernel)
    return found


class PlainKernel:
    """Code and execution."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design = design
        self.feed = feed_of(design, kernel, operands)
        self.multiply = multiply_of(design, kernel)
        self.spills = Spills(design, kernel)
        self.start = kernel.block("start")
        thread, tile = read_launch(self.start), Value("tile")
        divide(self.start, tile, thread)
        divide(self.start, tile, tile)
        held = hold(self.start, "held", HELD_REGISTERS)
        self.feed.start(self.start)
        scalar_work(self.start, 20)
        self.fill = kernel.block("fill")
        self.feed.fill(self.fill)
        self.tile = kernel.block("next tile")
        zero(self.tile, self.multiply.accumulators)
        self.loop = kernel.block("loop", loop=True)
        self.feed.wait(self.loop)
        self.multiply.step(self.loop, SCALAR_PER_STEP[design.loads], self.spills)
        self.feed.refill(self.loop)
        self.loop.op("UIADD3")
        self.loop.op("BRA", [], [], guard=Value("P1", kind="P"))
        self.epilogue = Epilogue(design, kernel, operands, self.multiply.accumulators, self.multiply.fragments)
        self.end = kernel.block("end")
        self.end.op("EXIT", [], [held])

    def run(self, cta: CtaClass, work: Work) -> None:
        """What every warp of a class executes."""
        start_events, start_active = self.feed.start_events(cta)
        for warp, active in zip(cta.warps, start_active, strict=True):
            warp.run(self.start, 1, start_events, active)
        first = 0
        operands = [self.multiply.events(cta, number) | self.spills.events(cta) for number in range(len(cta.warps))]
        for unit, steps in enumerate(work.k_steps):
            plans = self.feed.plan(cta, work, unit, first)
            for number, (warp, plan) in enumerate(zip(cta.warps, plans, strict=True)):
                warp.run(self.fill, stages_ahead(self.design, steps), *plan.fill)
                warp.run(self.tile)
                warp.run(self.loop, steps, plan.loop[0] | operands[number], plan.loop[1])
                self.epilogue.run(cta, work, unit, number)
            first += steps
        for warp in cta.warps:
            warp.run(self.end)


def build(design: ProductDesign, kernel: KernelWriter, operands: Operands, works: list[Work]) -> None:
    """Write the whole kernel."""
    code = PlainKernel(design, kernel, operands)
    for work in works:
        code.run(kernel.cta_class(work.members), work)
