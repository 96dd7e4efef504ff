"""Attention with specialised warps: one thread fills rings of K and V by bulk copies, consumer warpgroups multiply and take
the softmax of a step under the multiply-adds of the step before; they may take turns at the tensor cores."""

from __future__ import annotations

import numpy as np

from simulator.isa.effects import GROUP_WARPS
from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_epilogue import Epilogue
from simulator.kernels.attention_multiply import WarpgroupProducts
from simulator.kernels.attention_operands import Operands, kv_head, q_head
from simulator.kernels.attention_softmax import Softmax
from simulator.kernels.attention_tiles import Work
from simulator.kernels.code_fragments import await_phase, begin_role, divide, read_launch, scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_feeds import Slots
from simulator.kernels.gemm_specialized import GROUP_THREADS, TURN_BARRIER
from simulator.kernels.ring import Ring
from simulator.kernels.writer import Block, CtaClass, KernelWriter

SCALAR_STEP = 16
"""Scalar instructions of a step beside its multiply-adds: stage numbers, phases, descriptors."""
SCALAR_PER_COPY = 6


class SpecializedKernel:
    """Code and execution. Warps 0 .. ``design.warps`` - 1 multiply, the producer warps come behind them."""

    def __init__(self, design: AttentionDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.kernel, self.operands = design, kernel, operands
        self.moves_registers = design.producer_warps == GROUP_WARPS
        self.n_boxes = len(operands.boxes(design.block_n))
        self.start = self._start(kernel.block("start"))
        self.producer_start = begin_role(kernel.block("producer start"), self.moves_registers, "USETMAXREG.DEALLOC.CTAPOOL")
        self.load_q = kernel.block("load q")
        self._copies(self.load_q, "q", len(operands.boxes(design.block_m)))
        self.fill = {name: self._fill(kernel.block(f"fill {name}"), name) for name in ("k", "v")}
        self.fill_both = self._fill(self._fill(kernel.block("fill k and v", loop=True), "k"), "v")
        self.consumer_start = begin_role(kernel.block("consumer start"), self.moves_registers, "USETMAXREG.TRY_ALLOC.CTAPOOL")
        self.softmax = Softmax(design)
        self.products = WarpgroupProducts(design, self.softmax)
        self.softmax.reset(self.consumer_start)
        self._wait(self.consumer_start, "wait_q")
        self.prime = kernel.block("prime turns")
        self._hand_over(self.prime)
        masks = [False, True] if design.masks == "edges" else [True]
        if design.overlaps:
            self.first = {m: self._first(kernel.block(f"first step, mask {m}"), m) for m in masks}
        loop = self._overlapped if design.overlaps else self._in_turn
        self.loops = {m: loop(kernel.block(f"loop, mask {m}", loop=True), m) for m in masks}
        self.last = kernel.block("last output")
        if design.overlaps:
            self._output(self.last)
        self.epilogue = Epilogue(design, kernel, operands, self.softmax, stores_alone=True)
        self.end = kernel.block("end")
        self.end.op("EXIT")

    def _start(self, block: Block) -> Block:
        thread = read_launch(block)
        divide(block, Value("head"), thread)
        scalar_work(block, 16)
        for name in ("k", "v"):
            for stage in range(self.design.stages):
                block.op("SYNCS.EXCH.64", [], [Value("full", kind="UR")], slot=f"full_{name}{stage}")
                block.op("SYNCS.EXCH.64", [], [Value("empty", kind="UR")], slot=f"empty_{name}{stage}")
        block.op("SYNCS.EXCH.64", [], [Value("full", kind="UR")], slot="full_q")
        block.op("MEMBAR.ALL.CTA")
        block.op("FENCE.VIEW.ASYNC.S", [Value("fence")])
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar")
        scalar_work(block, 10)
        return block

    def _wait(self, block: Block, slot: str) -> None:
        await_phase(block, Value("P1", kind="P"), slot)

    def _copies(self, block: Block, name: str, n_boxes: int) -> None:
        block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot=f"expect_{name}")
        for i in range(n_boxes):
            scalar_work(block, SCALAR_PER_COPY)
            block.op("UTMALDG.3D", [], [Value(f"UR{8 * i + 8}", kind="UR")], slot=f"copy_{name}{i}")

    def _fill(self, block: Block, name: str) -> Block:
        """One stage: wait until it is empty, announce its bytes, copy."""
        self._wait(block, f"free_{name}")
        self._copies(block, name, self.n_boxes)
        return block

    def _hand_over(self, block: Block) -> None:
        if self.design.ping_pong:
            for other in range(self.design.warpgroups - 1):
                block.op("BAR.ARV", slot=f"hand{other}")

    def _scores(self, block: Block) -> None:
        """Scores of a step, and nothing else meanwhile."""
        self._wait(block, "wait_k")
        scalar_work(block, SCALAR_STEP)
        self.products.scores(block)
        self.products.wait_scores(block)
        block.op("SYNCS.ARRIVE.TRANS64.A1T0", slot="release_k")

    def _first(self, block: Block, is_masked: bool) -> Block:
        self._scores(block)
        self.softmax.exponentials(block, is_masked)
        self.softmax.fragments(block, is_first=True)
        return block

    def _overlapped(self, block: Block, is_masked: bool) -> Block:
        """Scores of this step, output of the one before, softmax under the latter."""
        self._wait(block, "wait_k")
        scalar_work(block, SCALAR_STEP)
        if self.design.ping_pong:
            block.op("BAR.SYNC.DEFER_BLOCKING", slot="turn")
        self.products.scores(block)
        self._wait(block, "wait_v")
        self.products.output(block)
        self._hand_over(block)
        self.products.wait_scores(block, others=1)
        block.op("SYNCS.ARRIVE.TRANS64.A1T0", slot="release_k")
        self.softmax.exponentials(block, is_masked)
        self.products.wait_output(block)
        block.op("SYNCS.ARRIVE.TRANS64.A1T0", slot="release_v")
        self.softmax.fragments(block)
        block.op("BRA", [], [], guard=Value("P1", kind="P"))
        return block

    def _in_turn(self, block: Block, is_masked: bool) -> Block:
        """Scores, softmax and output of a step one after another."""
        self._scores(block)
        self.softmax.scores_to_fragments(block, is_masked)
        self._output(block)
        block.op("BRA", [], [], guard=Value("P1", kind="P"))
        return block

    def _output(self, block: Block) -> None:
        self._wait(block, "wait_v")
        self.products.output(block)
        self.products.wait_output(block)
        block.op("SYNCS.ARRIVE.TRANS64.A1T0", slot="release_v")

    def run(self, cta: CtaClass, work: Work) -> None:
        """What every warp of a class executes."""
        if work.steps:
            self._start_all(cta)
            self._produce(cta, work)
            slots = self._ring_slots(cta, work.steps)
            for number in range(self.design.warps):
                self._consume(cta, work, number, slots)
        for warp in cta.warps:
            warp.run(self.end)

    def _start_all(self, cta: CtaClass) -> None:
        design, q_ring = self.design, self.operands.q_ring
        stage = np.arange(design.stages)
        events: Slots = {"full_q": cta.events(mbarrier=q_ring.full(0), count=1)[0], "bar": cta.events(count=0)[0]}
        for name, ring in zip("kv", self.operands.rings, strict=True):
            full = cta.events(mbarrier=ring.full(stage), count=1)
            empty = cta.events(mbarrier=ring.empty(stage), count=design.warpgroups)
            events |= {f"full_{name}{s}": full[s] for s in stage} | {f"empty_{name}{s}": empty[s] for s in stage}
        inits = [name for name in events if name != "bar"]
        for number, warp in enumerate(cta.warps):
            warp.run(self.start, 1, events, dict.fromkeys(inits, int(number == 0)))

    def _produce(self, cta: CtaClass, work: Work) -> None:
        operands, steps = self.operands, work.steps
        for warp in cta.warps[self.design.warps :]:
            warp.run(self.producer_start)
        warp, head = cta.warps[self.design.warps], kv_head(self.design, work)
        q = operands.box_events(cta, "q", q_head(self.design, work), work.row, 1, operands.q_ring, 0)
        warp.run(self.load_q, 1, *self._announced(cta, operands.q_ring, "q", 1, q))
        fills = {}
        for name, ring, place in zip("kv", operands.rings, (operands.k_at, operands.v_at), strict=True):
            copies = operands.box_events(cta, name, head, work.first_key, steps, ring, place)
            events, active = self._announced(cta, ring, name, steps, copies)
            fills[name] = events | {f"free_{name}": ring.freed(cta, 0, steps)}, active
        (k, k_active), (v, v_active) = fills["k"], fills["v"]
        warp.run(self.fill["k"], 1, {slot: rows[:1] for slot, rows in k.items()}, k_active)
        both = {slot: rows[1:] for slot, rows in k.items()} | {slot: rows[:-1] for slot, rows in v.items()}
        warp.run(self.fill_both, steps - 1, both, k_active | v_active)
        warp.run(self.fill["v"], 1, {slot: rows[-1:] for slot, rows in v.items()}, v_active)

    def _announced(self, cta: CtaClass, ring: Ring, name: str, steps: int, copies: list[np.ndarray]) -> tuple[Slots, Slots]:
        """(events, active lanes) of the copies of a ring and of the announcement of their bytes."""
        events = {f"expect_{name}": ring.filled(cta, 0, steps)[1]} | {f"copy_{name}{i}": rows for i, rows in enumerate(copies)}
        return events, dict.fromkeys(events, 1)

    def _ring_slots(self, cta: CtaClass, steps: int) -> dict[str, np.ndarray]:
        """Waits for and releases of the stages of K and V: event rows int32 [steps] by slot; the wait for Q."""
        slots = {"wait_q": self.operands.q_ring.filled(cta, 0, 1)[0]}
        for name, ring in zip("kv", self.operands.rings, strict=True):
            slots |= {f"wait_{name}": ring.filled(cta, 0, steps)[0], f"release_{name}": ring.released(cta, 0, steps)}
        return slots

    def _consume(self, cta: CtaClass, work: Work, number: int, slots: dict[str, np.ndarray]) -> None:
        warp, steps = cta.warps[number], work.steps
        leads = int(number % GROUP_WARPS == 0)
        warp.run(self.consumer_start, 1, {"wait_q": slots["wait_q"]})
        k = [name for name in slots if name.endswith("k")]
        v = [name for name in slots if name.endswith("v")]
        released = {"release_k": leads, "release_v": leads}
        unmasked = 0 if self.design.masks == "every_step" else steps - work.masked
        if not self.design.overlaps:
            for is_masked, begin, end in ((False, 0, unmasked), (True, unmasked, steps)):
                if end > begin:
                    events = {name: slots[name][begin:end] for name in (*k, *v)}
                    warp.run(self.loops[is_masked], end - begin, events, released)
        else:
            self._prime(cta, number, steps)
            warp.run(self.first[unmasked == 0], 1, {name: slots[name][:1] for name in k}, {"release_k": leads})
            for is_masked, begin, end in ((False, 1, unmasked), (True, max(1, unmasked), steps)):
                if end > begin:
                    events = {n: slots[n][begin:end] for n in k} | {n: slots[n][begin - 1 : end - 1] for n in v}
                    turns, active = self._turns(cta, number, np.arange(begin, end) == steps - 1)
                    warp.run(self.loops[is_masked], end - begin, events | turns, released | active)
            warp.run(self.last, 1, {name: slots[name][-1:] for name in v}, {"release_v": leads})
        self.epilogue.run(cta, work, number)

    def _others(self, group: int) -> list[int]:
        """The other warpgroups, the next one first."""
        n = self.design.warpgroups
        return [(group + i) % n for i in range(1, n)]

    def _arrivals(self, cta: CtaClass, group: int) -> Slots:
        """Arrivals at the barriers of the other warpgroups, at which all but the owner arrive and the owner waits."""
        count = self.design.warpgroups * GROUP_THREADS
        barriers = [TURN_BARRIER + other for other in self._others(group)]
        return {f"hand{i}": cta.events(parity=barrier, count=count)[0] for i, barrier in enumerate(barriers)}

    def _prime(self, cta: CtaClass, number: int, steps: int) -> None:
        """Before the first turn, each warpgroup lets those in front of it go first."""
        group = number // GROUP_WARPS
        if self.design.ping_pong and steps > 1:
            first = {f"hand{i}": 32 * int(other < group) for i, other in enumerate(self._others(group))}
            cta.warps[number].run(self.prime, 1, self._arrivals(cta, group), first)

    def _turns(self, cta: CtaClass, number: int, is_last: np.ndarray) -> tuple[Slots, Slots]:
        """(events, active lanes) of the turns of some steps; after its last turn a warpgroup lets only those behind it go."""
        if not self.design.ping_pong:
            return {}, {}
        group = number // GROUP_WARPS
        turn = cta.events(parity=TURN_BARRIER + group, count=self.design.warpgroups * GROUP_THREADS)[0]
        active = {f"hand{i}": 32 * (~is_last | (other > group)) for i, other in enumerate(self._others(group))}
        return {"turn": turn} | self._arrivals(cta, group), active


def build(design: AttentionDesign, kernel: KernelWriter, operands: Operands, works: list[Work]) -> None:
    """Write the whole kernel."""
    code = SpecializedKernel(design, kernel, operands)
    for work in works:
        code.run(kernel.cta_class(work.members), work)
