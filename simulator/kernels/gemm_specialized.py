"""GEMM with specialised warps: one thread fills a ring of stages by bulk copies, warpgroups empty it by multiply-adds."""

from __future__ import annotations

import numpy as np

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.code_fragments import await_phase, begin_role, divide, read_launch, scalar_work, zero
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import REGISTERS_BESIDE, ProductDesign
from simulator.kernels.gemm_epilogue_specialized import SpecializedEpilogue
from simulator.kernels.gemm_multiply import multiply_adds, operand_events
from simulator.kernels.gemm_operands import Operands, copy_slots, ring_events, write_copies
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.writer import Block, CtaClass, KernelWriter, Warp

SCALAR_BEFORE = 12
SCALAR_BEHIND = 16
"""Descriptor arithmetic of a step around its multiply-adds (compiled code: about 12 instructions for each of them)."""
TURN_BARRIER = 4
"""Named barriers 4 and 5 hand the tensor cores from one warpgroup to the other."""
GROUP_THREADS = 32 * GROUP_WARPS


class SpecializedKernel:
    """Code and execution. Warps 0 .. ``design.warps`` - 1 multiply, the producer warps come behind them."""

    def __init__(self, design: ProductDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.kernel, self.operands = design, kernel, operands
        self.moves_registers = design.producer_warps == GROUP_WARPS
        self.takes_turns = design.schedule == "ping_pong"
        self.start = self._start(kernel.block("start"))
        self.producer_start = begin_role(kernel.block("producer start"), self.moves_registers, "USETMAXREG.DEALLOC.CTAPOOL")
        self.producer_tile = kernel.block("producer's next tile")
        divide(self.producer_tile, Value("tile"), Value("tile"))
        divide(self.producer_tile, Value("tile"), Value("tile"))
        self.fill = self._fill(kernel.block("fill", loop=True))
        self.consumer_start = begin_role(kernel.block("consumer start"), self.moves_registers, "USETMAXREG.TRY_ALLOC.CTAPOOL")
        self.accumulators = Value("acc", design.accumulators)
        self.tile = self._tile(kernel.block("next tile"))
        self.turn = kernel.block("turn")
        self.turn.op("BAR.SYNC.DEFER_BLOCKING", slot="turn")
        self.loop = self._loop(kernel.block("loop", loop=True))
        self.hand_over = kernel.block("hand over")
        self.hand_over.op("BAR.ARV", slot="turn")
        self.drain = kernel.block("drain")
        self.drain.op("WARPGROUP.DEPBAR.LE", argument=(0, -1))
        self.drain.op("SYNCS.ARRIVE.TRANS64.A1T0", slot="release")
        self.epilogue = SpecializedEpilogue(design, kernel, operands, self.accumulators)
        self.end = self._end(kernel.block("end"))

    def _start(self, block: Block) -> Block:
        read_launch(block)
        block.op("BRA")
        scalar_work(block, 12)
        for stage in range(self.design.stages):
            block.op("SYNCS.EXCH.64", [], [Value("full", kind="UR")], slot=f"full{stage}")
            block.op("SYNCS.EXCH.64", [], [Value("empty", kind="UR")], slot=f"empty{stage}")
        block.op("MEMBAR.ALL.CTA")
        block.op("FENCE.VIEW.ASYNC.S", [Value("fence")])
        scalar_work(block, 12)
        if self.design.cluster > 1:
            block.op("UCGABAR_ARV")
            block.op("UCGABAR_WAIT")
        else:
            block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar")
        scalar_work(block, 10)
        return block

    def _fill(self, block: Block) -> Block:
        """One stage: wait until it is empty, announce its bytes, copy."""
        free = Value("P0", kind="P")
        index, rows = Value("index"), Value("rows")
        block.op("VIADD", [index], [index])
        block.op("ISETP.NE.AND", [free], [index])
        block.op("SEL", [rows], [index, free])
        block.op("LOP3.LUT", [rows], [rows])
        block.op("IMAD", [rows], [rows])
        block.op("SHF.L.U32", [rows], [rows])
        await_phase(block, free, "wait", [rows])
        block.op("SYNCS.ARRIVE.TRANS64", [], [index], slot="expect")
        scalar_work(block, 8)
        for i in range(len(self.operands.boxes)):
            block.op("IADD3", [rows], [rows])
            block.op("R2UR", [], [rows])
            block.op("PLOP3.LUT", [free], [])
            block.op("ELECT", [free], [])
            block.ops("R2UR", 4, [], [rows])
            block.op("PLOP3.LUT", [free], [free])
            write_copies(block, self.operands, i)
            block.op("BRA.U.ANY", [], [], guard=free)
        return block

    def _tile(self, block: Block) -> Block:
        tile = Value("tile")
        divide(block, tile, tile)
        divide(block, tile, tile)
        zero(block, Value("zero", 2))
        return block

    def _loop(self, block: Block) -> Block:
        ready = Value("P1", kind="P")
        scalar_work(block, 3)
        await_phase(block, ready, "wait")
        scalar_work(block, SCALAR_BEFORE)
        multiply_adds(block, self.design, self.accumulators, self.design.waits_each, SCALAR_BEHIND, between=SCALAR_BEHIND)
        block.op("WARPGROUP.DEPBAR.LE", argument=(self.steps_in_flight, -1))
        block.op("SYNCS.ARRIVE.TRANS64.A1T0", slot="release")
        block.op("ISETP.NE.AND", [ready], [])
        block.op("BRA", [], [], guard=ready)
        return block

    @property
    def steps_in_flight(self) -> int:
        """Steps whose multiply-adds still run when the next one waits for its stage: their stages are not free yet."""
        return min(1, self.design.stages - 1)

    def _end(self, block: Block) -> Block:
        block.op("DEPBAR.LE", argument=(0, 0), text="DEPBAR.LE SB0, 0x0")
        if self.design.cluster > 1:
            block.op("UCGABAR_ARV")
            block.op("UCGABAR_WAIT")
        block.op("EXIT")
        return block

    def run(self, cta: CtaClass, work: Work) -> None:
        """What every warp of a class executes."""
        first = np.concatenate([[0], np.cumsum(work.k_steps)])
        self._start_all(cta)
        self._produce(cta, work, first)
        waits = [ring_events(self.operands, cta, int(at), steps)[0] for at, steps in zip(first, work.k_steps, strict=False)]
        releases = [self._release_events(cta, int(at), steps) for at, steps in zip(first, work.k_steps, strict=False)]
        for number in range(self.design.warps):
            self._consume(cta, work, number, waits, releases)
        for warp in cta.warps:
            warp.run(self.end)

    def _start_all(self, cta: CtaClass) -> None:
        design = self.design
        stage = np.arange(design.stages)
        readers = (1 if self.takes_turns else design.warpgroups) * (design.cluster if design.multicast != "none" else 1)
        full = cta.events(mbarrier=self.operands.full(stage), count=1)
        empty = cta.events(mbarrier=self.operands.empty(stage), count=readers)
        events = {f"full{s}": full[s] for s in stage} | {f"empty{s}": empty[s] for s in stage}
        if design.cluster == 1:
            events["bar"] = cta.events(count=0)[0]
        for number, warp in enumerate(cta.warps):
            leads = int(number == 0)
            warp.run(self.start, 1, events, {f"{kind}{s}": leads for s in stage for kind in ("full", "empty")})

    def _release_events(self, cta: CtaClass, first: int, steps: int) -> np.ndarray:
        peers = self.design.cluster if self.design.multicast != "none" else 1
        return self.operands.ring.released(cta, first, steps, peers)

    def _produce(self, cta: CtaClass, work: Work, first: np.ndarray) -> None:
        for number in range(self.design.warps, self.design.n_warps):
            warp = cta.warps[number]
            warp.run(self.producer_start)
            if number > self.design.warps:
                continue
            for unit, steps in enumerate(work.k_steps):
                free = self.operands.ring.freed(cta, int(first[unit]), steps)
                _, expect = ring_events(self.operands, cta, int(first[unit]), steps)
                copies = copy_slots(self.operands, cta, work, unit, int(first[unit]))
                warp.run(self.producer_tile)
                warp.run(
                    self.fill,
                    steps,
                    {"wait": free, "expect": expect, **copies},
                    dict.fromkeys(["expect", *copies], 1),
                )

    def _consume(self, cta: CtaClass, work: Work, number: int, waits: list[np.ndarray], releases: list[np.ndarray]) -> None:
        warp, group = cta.warps[number], number // GROUP_WARPS
        leads = int(number % GROUP_WARPS == 0)
        operands = operand_events(self.design, self.kernel, cta, number)
        warp.run(self.consumer_start)
        if self.takes_turns and group == 1:
            self._turn(cta, warp, self.hand_over, 0)
        for unit, steps in enumerate(work.k_steps):
            if self.takes_turns and unit % 2 != group:
                continue
            warp.run(self.tile)
            if self.takes_turns:
                self._turn(cta, warp, self.turn, group)
            released = np.arange(steps) - self.steps_in_flight
            in_loop = (released >= 0) & (released < steps - 1)
            warp.run(
                self.loop,
                steps,
                {"wait": waits[unit], "release": releases[unit][np.maximum(released, 0)], **operands},
                {"release": leads * in_loop},
            )
            if self.takes_turns and unit + 1 < len(work.k_steps):
                self._turn(cta, warp, self.hand_over, 1 - group)
            warp.run(self.drain, 1, {"release": releases[unit][-1]}, {"release": leads})
            self.epilogue.run(cta, work, unit, number)

    def _turn(self, cta: CtaClass, warp: Warp, block: Block, group: int) -> None:
        event = cta.events(parity=TURN_BARRIER + group, count=2 * GROUP_THREADS)
        warp.run(block, 1, {"turn": event})


def build(design: ProductDesign, kernel: KernelWriter, operands: Operands, works: list[Work]) -> None:
    """Write the whole kernel."""
    code = SpecializedKernel(design, kernel, operands)
    for work in works:
        code.run(kernel.cta_class(work.members), work)


def launch_registers(design: ProductDesign, live: int) -> int:
    """Registers per thread at launch: the mean of what the roles keep, where warpgroups move registers; else every warp,
    the producer's too, has what a multiplying one needs."""
    if design.producer_warps != GROUP_WARPS:
        return max(live, design.accumulators + REGISTERS_BESIDE)
    consumer, producer = role_registers(design)
    return (consumer * design.warpgroups + producer) // (design.warpgroups + 1) // 8 * 8


def role_registers(design: ProductDesign) -> tuple[int, int]:
    """(consumer, producer) registers per thread after the move."""
    usual = {1: (208, 40), 2: (232, 40), 3: (160, 32)}
    consumer, producer = usual.get(design.warpgroups, (128, 24))
    return design.consumer_registers or consumer, design.producer_registers or producer
