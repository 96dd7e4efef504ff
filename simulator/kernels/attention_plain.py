"""Attention whose warps all load and multiply: scores, softmax and output of a step in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_epilogue import Epilogue
from simulator.kernels.attention_feeds import feed_of
from simulator.kernels.attention_multiply import products_of
from simulator.kernels.attention_operands import Operands
from simulator.kernels.attention_softmax import Softmax
from simulator.kernels.attention_tiles import Work
from simulator.kernels.code_fragments import divide, hold, read_launch, scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.writer import Block, CtaClass, KernelWriter

SCALAR_STEP = 34
"""Scalar instructions of a step beside copies and multiply-adds (compiled Triton loops)."""
HELD_REGISTERS = 16
"""Registers per thread for indices and addresses throughout (as GEMM loops of the same compiler hold)."""


class PlainKernel:
    """Code and execution."""

    def __init__(self, design: AttentionDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.kernel = design, kernel
        self.feed = feed_of(design, kernel, operands)
        self.operands = operands
        positions = design.thread_rows * design.index_bits // 32 if design.causal else 0
        held_registers = HELD_REGISTERS + self.feed.n_offsets + positions
        self.softmax = Softmax(design, is_tight=design.matrix_registers + held_registers > design.max_registers)
        self.products = products_of(design, self.softmax)
        self.start = kernel.block("start")
        thread = read_launch(self.start)
        if design.group > 1 or design.split_kv > 1:
            divide(self.start, Value("head"), thread)
        held = hold(self.start, "held", held_registers)
        scalar_work(self.start, 60)
        self.feed.start(self.start)
        self.fill = kernel.block("fill")
        self.feed.fill(self.fill)
        self.first = kernel.block("first")
        self.softmax.reset(self.first)
        self.await_q = kernel.block("await q")
        self.feed.await_q(self.await_q)
        masked = design.masks == "every_step" or design.causal or design.keys % design.block_n > 0
        self.loops: dict[bool, Block] = {}
        if design.masks == "edges":
            self.loops[False] = self._loop(kernel.block("loop", loop=True), is_masked=False)
        if masked:
            self.loops[True] = self._loop(kernel.block("loop with mask", loop=True), is_masked=True)
        self.drain = kernel.block("drain")
        self.products.wait_output(self.drain)
        self.epilogue = Epilogue(design, kernel, operands, self.softmax, stores_alone=False)
        self.end = kernel.block("end")
        self.end.op("EXIT", [], [held])

    def _loop(self, block: Block, is_masked: bool) -> Block:
        self.feed.before_scores(block)
        scalar_work(block, SCALAR_STEP)
        self.products.scores(block)
        self.products.wait_scores(block)
        self.feed.before_output(block)
        self.softmax.scores_to_fragments(block, is_masked)
        self.products.output(block)
        if self.design.stages == 1:
            self.products.wait_output(block)
        self.feed.after_output(block)
        self.softmax.finish_step(block)
        block.op("UIADD3")
        block.op("BRA", [], [], guard=Value("P1", kind="P"))
        return block

    def run(self, cta: CtaClass, work: Work) -> None:
        """What every warp of a class executes."""
        stage = np.arange(work.steps) % self.design.stages * self.design.kv_bytes
        places = self.operands.k_at + stage, self.operands.v_at + stage
        unmasked = 0 if self.design.masks == "every_step" else work.steps - work.masked
        for number, warp in enumerate(cta.warps):
            if work.steps:
                plan = self.feed.plan(cta, work, number)
                starts = {name: rows for name, rows in plan.start[0].items() if name in self.start.slots}
                warp.run(self.start, 1, starts, plan.start[1])
                warp.run(self.fill, min(self.feed.ahead, work.steps), *plan.fill)
                warp.run(self.first)
                waits = {name: rows for name, rows in plan.start[0].items() if name in self.await_q.slots}
                if len(self.await_q):
                    warp.run(self.await_q, 1, waits)
                events = plan.steps[0] | self.products.events(cta, self.kernel, number, places)
                for is_masked, begin, end in ((False, 0, unmasked), (True, unmasked, work.steps)):
                    if end > begin:
                        own, on = (
                            {name: part(rows, work.steps, begin, end) for name, rows in slots.items()}
                            for slots in (events, plan.steps[1])
                        )
                        warp.run(self.loops[is_masked], end - begin, own, on)
                if len(self.drain):
                    warp.run(self.drain)
                self.epilogue.run(cta, work, number)
            warp.run(self.end)


def part(rows: Any, steps: int, begin: int, end: int) -> Any:
    """Those of some steps; what is one for all steps remains."""
    return rows[begin:end] if np.ndim(rows) == 1 and len(rows) == steps else rows


def build(design: AttentionDesign, kernel: KernelWriter, operands: Operands, works: list[Work]) -> None:
    """Write the whole kernel."""
    code = PlainKernel(design, kernel, operands)
    for work in works:
        code.run(kernel.cta_class(work.members), work)
