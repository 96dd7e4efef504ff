"""GEMM by asynchronous warpgroup multiply-adds fed by tensor bulk copies; every warp multiplies, one thread also copies."""

from __future__ import annotations

import numpy as np

from simulator.kernels.code_fragments import divide, read_launch, scalar_work, zero
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.gemm_epilogue import Epilogue
from simulator.kernels.gemm_operands import Operands, copy_events, ring_events
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.writer import Block, CtaClass, KernelWriter

SCALAR_BEFORE = 14
"""Scalar instructions of a step before its first multiply-add (compiled Triton loops have 12 to 16)."""
SCALAR_BETWEEN = 34
"""And behind it, under the multiply-adds: next stage, predicates and descriptors of the next copies."""


def multiply_adds(block: Block, design: GemmDesign, accumulators: Value, waits_each: bool, scalar: int) -> None:
    """The multiply-adds of a step; ``scalar`` instructions are spread behind the first. Commits one group, or waits for each."""
    mnemonic = str(design.format.async_mnemonic).format(n=design.mma_columns)
    a_is_shared = int(design.a_from == "shared")
    n = design.mmas_per_step
    fragment = Value("a", 4)
    for i in range(n):
        if not a_is_shared and i % max(1, design.tile.n // design.mma_columns) == 0:
            block.op("LDSM.16.M88.4", [fragment], [], slot=f"a{i}", width=16)
        if i == 0 or waits_each:
            block.op("WARPGROUP.ARRIVE")
        commits = waits_each or i == n - 1
        reads = [accumulators] if a_is_shared else [accumulators, fragment]
        block.op(
            mnemonic,
            [accumulators],
            reads,
            argument=(design.mma_columns, design.format.async_k * design.format.n_bytes, a_is_shared, int(commits)),
        )
        if i == 0:
            scalar_work(block, scalar)
        elif i < n - 1 or waits_each:
            scalar_work(block, 2)
        if waits_each:
            block.op("WARPGROUP.DEPBAR.LE", argument=(0, -1))


class PlainLoop:
    """Code and execution of the kernel without specialised warps."""

    def __init__(self, design: GemmDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.operands = design, operands
        self.accumulators = Value("acc", design.accumulators)
        self.ready = Value("P0", kind="P")
        self.start = self._start(kernel.block("start"))
        self.first_copies = self._first_copies(kernel.block("first copies"))
        self.unit = kernel.block("next tile")
        zero(self.unit, self.accumulators)
        self.loop = self._loop(kernel.block("loop", loop=True))
        self.epilogue = Epilogue(design, kernel, operands, self.accumulators)
        self.end = kernel.block("end")
        self.end.op("EXIT")

    def _start(self, block: Block) -> Block:
        thread = read_launch(block)
        tile = Value("tile")
        divide(block, tile, thread)
        divide(block, tile, tile)
        for stage in range(self.design.stages):
            scalar_work(block, 3)
            block.op("SYNCS.EXCH.64", [], [tile], slot=f"init{stage}")
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar{stage}")
        scalar_work(block, 20)
        return block

    def _first_copies(self, block: Block) -> Block:
        """One stage of the first fill."""
        expected = Value("bytes")
        block.op("IMAD.MOV.U32", [expected], [])
        block.op("SYNCS.ARRIVE.TRANS64", [], [expected], slot="expect")
        self._copies(block)
        return block

    def _copies(self, block: Block) -> None:
        for i in range(len(self.operands.boxes)):
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar{i}")
            block.op("UTMALDG.2D", [], [Value(f"UR{8 * i + 8}", kind="UR")], slot=f"copy{i}")

    def _loop(self, block: Block) -> Block:
        design = self.design
        block.op("UIADD3")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_in")
        scalar_work(block, 6)
        block.op("SYNCS.PHASECHK.TRANS64.TRYWAIT", [self.ready], [], slot="wait")
        block.op("BRA", [], [], guard=self.ready)
        scalar_work(block, SCALAR_BEFORE)
        multiply_adds(block, design, self.accumulators, design.waits_each, SCALAR_BETWEEN)
        if not design.waits_each:
            block.op("WARPGROUP.DEPBAR.LE", argument=(1 if design.stages > 1 else 0, -1))
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_expect")
        block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot="expect")
        self._copies(block)
        block.op("UIADD3")
        block.op("BRA", [], [], guard=Value("P1", kind="P"))
        return block

    def run(self, cta: CtaClass, work: Work) -> None:
        """What every warp of a class executes."""
        design = self.design
        everyone = cta.events(count=0)[0]
        inits = cta.events(mbarrier=self.operands.full(np.arange(design.stages)), count=1)
        first = 0
        plans = []
        for unit, steps in enumerate(work.k_steps):
            wait, expect = ring_events(self.operands, cta, first, steps)
            plans.append((steps, wait, expect, copy_events(self.operands, cta, work, unit, first)))
            first += steps
        for number, warp in enumerate(cta.warps):
            leads = number == 0
            warp.run(
                self.start,
                1,
                {**{f"init{s}": inits[s] for s in range(design.stages)}, **{f"bar{s}": everyone for s in range(design.stages)}},
                {f"init{s}": int(leads) for s in range(design.stages)},
            )
            for unit, (steps, wait, expect, copies) in enumerate(plans):
                self._run_unit(warp, leads, steps, wait, expect, copies, everyone)
                self.epilogue.run(cta, work, unit, number)
            warp.run(self.end)

    def _run_unit(self, warp, leads, steps, wait, expect, copies, everyone) -> None:  # type: ignore[no-untyped-def]
        """One tile: fill the ring, then every step refills the stage of the step before it."""
        ahead = min(max(self.design.stages - 1, 1), steps)
        bars = {f"bar{i}": everyone for i in range(len(copies))}
        warp.run(
            self.first_copies,
            ahead,
            {"expect": expect[:ahead], **bars, **{f"copy{i}": c[:ahead] for i, c in enumerate(copies)}},
            {"expect": int(leads), **{f"copy{i}": int(leads) for i in range(len(copies))}},
        )
        warp.run(self.unit)
        on = int(leads) * (np.arange(steps) + ahead < steps)
        place = np.minimum(np.arange(steps) + ahead, steps - 1)
        warp.run(
            self.loop,
            steps,
            {
                "wait": wait,
                "bar_in": everyone,
                "bar_expect": everyone,
                "expect": expect[place],
                **bars,
                **{f"copy{i}": c[place] for i, c in enumerate(copies)},
            },
            {"expect": on, **{f"copy{i}": on for i in range(len(copies))}},
        )


def build(design: GemmDesign, kernel: KernelWriter, operands: Operands, works: list[Work]) -> None:
    """Write the whole kernel."""
    code = PlainLoop(design, kernel, operands)
    for work in works:
        code.run(kernel.cta_class(work.members), work)
