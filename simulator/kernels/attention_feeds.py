"""How Q, K and V get into shared memory where every warp multiplies: bulk copies, asynchronous copies, or those in turns.

A feed writes its part of a step before the scores, between scores and output, and behind the output, and gives the
events and active lanes of its slots, by warp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_operands import PAGE_ENTRY_BYTES, Operands, chunk_copies, copy_events, kv_head, n_copies, q_head
from simulator.kernels.attention_tiles import Work
from simulator.kernels.code_fragments import await_phase, scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_feeds import Slots
from simulator.kernels.gemm_layout import CHUNK_BYTES, operand_offset
from simulator.kernels.writer import Block, CtaClass, KernelWriter

POINTERS = 4
"""Pairs of registers that addresses of copies go through in turn."""


@dataclass(frozen=True)
class Plan:
    """(events, active lanes) by slot: of the start, of each step that is fetched before the loop, of the steps."""

    start: tuple[Slots, Slots]
    fill: tuple[Slots, Slots]
    steps: tuple[Slots, Slots]


class BulkFeed:
    """One thread issues bulk copies of Q and of stages of K and V; the CTA meets around each."""

    def __init__(self, design: AttentionDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.operands = design, operands
        self.ahead = design.stages - 1
        self.n_offsets = 0
        self.q_boxes = range(len(operands.boxes(design.block_m)))
        self.boxes = range(2 * len(operands.boxes(design.block_n)))

    def start(self, block: Block) -> None:
        for stage in range(self.design.stages):
            block.op("SYNCS.EXCH.64", [], [Value("init", kind="UR")], slot=f"init{stage}")
        block.op("SYNCS.EXCH.64", [], [Value("init", kind="UR")], slot="init_q")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar")
        block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot="expect_q")
        for i in self.q_boxes:
            block.op("UTMALDG.3D", [], [Value("UR8", kind="UR")], slot=f"q{i}")

    def await_q(self, block: Block) -> None:
        ready = Value("P0", kind="P")
        await_phase(block, ready, "wait_q")

    def fill(self, block: Block) -> None:
        scalar_work(block, 4)
        block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot="expect")
        for i in self.boxes:
            block.op("UTMALDG.3D", [], [Value("UR8", kind="UR")], slot=f"copy{i}")

    def before_scores(self, block: Block) -> None:
        ready = Value("P0", kind="P")
        await_phase(block, ready, "wait")

    def before_output(self, block: Block) -> None:
        """Nothing: a stage holds K and V."""

    def after_output(self, block: Block) -> None:
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar")
        self.fill(block)

    def plan(self, cta: CtaClass, work: Work, warp: int) -> Plan:
        design, operands, steps = self.design, self.operands, work.steps
        stage = np.arange(design.stages)
        leads = np.int64(warp == 0)
        ring, q_ring = operands.joint_ring, operands.q_ring
        init = cta.events(mbarrier=ring.full(stage), count=1)
        bar = cta.events(count=0)[0]
        wait_q, expect_q = (rows[0] for rows in q_ring.filled(cta, 0, 1))
        q = operands.box_events(cta, "q", q_head(design, work), work.row, 1, q_ring, 0)
        start = {f"init{s}": init[s] for s in stage} | {f"q{i}": rows[0] for i, rows in enumerate(q)}
        start |= {"init_q": cta.events(mbarrier=q_ring.full(0), count=1)[0], "bar": bar, "expect_q": expect_q, "wait_q": wait_q}
        led = dict.fromkeys([f"init{s}" for s in stage] + [f"q{i}" for i in self.q_boxes] + ["init_q", "expect_q"], leads)
        wait, expect = ring.filled(cta, 0, steps)
        head = kv_head(design, work)
        copies = operands.box_events(cta, "k", head, work.first_key, steps, ring, operands.k_at)
        copies += operands.box_events(cta, "v", head, work.first_key, steps, ring, operands.v_at)
        slots = {"expect": expect} | {f"copy{i}": rows for i, rows in enumerate(copies)}
        place, more = later(steps, self.ahead)
        own = {name: rows[place] for name, rows in slots.items()} | {"wait": wait, "bar": np.full(steps, bar)}
        return Plan(
            (start, led),
            ({name: rows[: self.ahead] for name, rows in slots.items()}, dict.fromkeys(slots, leads)),
            (own, dict.fromkeys(slots, more * leads)),
        )


class CopyFeed:
    """Every thread copies 16-byte chunks asynchronously (LDGSTS); K and V of a stage are a group each."""

    def __init__(self, design: AttentionDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.kernel, self.operands = design, kernel, operands
        self.ahead = design.stages - 1
        self.n_q, self.n_kv = n_copies(design, design.block_m), n_copies(design, design.block_n)
        self.n_offsets = 2 * self.n_kv
        """Registers that hold offsets of the thread's copies."""
        page = design.page_size
        self.n_pages = 0 if page is None else min(self.n_kv, -(-design.block_n // page))
        self._pages = [Value(f"page{i}") for i in range(self.n_pages)]

    def start(self, block: Block) -> None:
        if self.design.load_q == "copies":
            self._group(block, "q", self.n_q)
            return
        chunks, place = [Value(f"chunk{i}", 4) for i in range(self.n_q)], Value("place")
        for i, chunk in enumerate(chunks):
            pointer = Value(f"pointer{i % POINTERS}", 2)
            block.ops("CS2R", 2, [chunk])
            block.op("IMAD.WIDE", [pointer], [place])
            block.op("LDG.E.128", [chunk], [pointer], slot=f"q{i}", width=CHUNK_BYTES)
        for i, chunk in enumerate(chunks):
            block.op("STS.128", [], [place, chunk], slot=f"store_q{i}", width=CHUNK_BYTES)
        block.op("MEMBAR.ALL.CTA")

    def await_q(self, block: Block) -> None:
        """Q is older than the first stage, which the first step waits for."""

    def _group(self, block: Block, name: str, n: int) -> None:
        """The copies of a block: bound of the rows, address, copy; the group's end."""
        row, place, size = Value("row"), Value("place"), Value("size")
        is_in = Value("P2", kind="P")
        paged = self._pages if name != "q" else []
        for i in range(n):
            pointer = Value(f"pointer{i % POINTERS}", 2)
            if i < POINTERS:
                block.op("VIADD", [row], [place])
            block.op("ISETP.GE.AND", [is_in], [row])
            block.op("SEL", [size], [row, is_in])
            block.op("IMAD.WIDE", [pointer], [place, *paged[i % len(paged) : i % len(paged) + 1]] if paged else [place])
            block.op("LDGSTS.E.BYPASS.128", [], [pointer, place], slot=f"{name}{i}", width=CHUNK_BYTES)
        block.op("LDGDEPBAR")

    def _load_pages(self, block: Block) -> None:
        for i, page in enumerate(self._pages):
            block.op("LDG.E", [page], [Value("table", 2)], slot=f"page{i}", width=PAGE_ENTRY_BYTES)

    def fill(self, block: Block) -> None:
        self._load_pages(block)
        scalar_work(block, 4)
        self._group(block, "k", self.n_kv)
        self._group(block, "v", self.n_kv)

    def _wait(self, block: Block, allowed: int, slot: str) -> None:
        block.op("DEPBAR.LE", argument=(allowed, 0), text=f"DEPBAR.LE SB0, {allowed:#x}")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot=slot)

    def before_scores(self, block: Block) -> None:
        self._wait(block, 2 * max(self.design.stages - 2, 0), "bar_in")
        self._load_pages(block)

    def before_output(self, block: Block) -> None:
        """Nothing: a stage holds K and V."""

    def after_output(self, block: Block) -> None:
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_out")
        self._group(block, "k", self.n_kv)
        self._group(block, "v", self.n_kv)

    def plan(self, cta: CtaClass, work: Work, warp: int) -> Plan:
        slots, lanes = self._slots(cta, work, warp)
        q = copy_events(self.operands, cta, work, "q", warp)
        start = {f"q{i}": rows[0] for i, (rows, _) in enumerate(q)}, {f"q{i}": on[0] for i, (_, on) in enumerate(q)}
        if self.design.load_q == "registers":
            start[0].update(self._store_events(cta, warp))
        place, more = later(work.steps, self.ahead)
        bar = np.full(work.steps, cta.events(count=0)[0])
        own = {name: rows[place] for name, rows in slots.items()} | {"bar_in": bar, "bar_out": bar}
        return Plan(
            start,
            ({name: rows[: self.ahead] for name, rows in slots.items()}, {name: on[: self.ahead] for name, on in lanes.items()}),
            (own, {name: on[place] * more for name, on in lanes.items()}),
        )

    def _store_events(self, cta: CtaClass, warp: int) -> Slots:
        """Where Q is written to from registers."""
        design = self.design
        offsets = [operand_offset(design, c.rows, c.bytes, design.block_m) for c in chunk_copies(design, design.block_m, warp)]
        return {f"store_q{i}": cta.events(pattern=self.kernel.pattern(lanes))[0] for i, lanes in enumerate(offsets)}

    def _slots(self, cta: CtaClass, work: Work, warp: int) -> tuple[Slots, Slots]:
        """(event rows, active lanes), int [steps] each, by slot of the copies of K and V and of the loads of page numbers."""
        slots: Slots = {}
        lanes: Slots = {}
        for name in ("k", "v"):
            for i, (rows, on) in enumerate(copy_events(self.operands, cta, work, name, warp)):
                slots[f"{name}{i}"], lanes[f"{name}{i}"] = rows, on
        if self.n_pages:
            for i, copy in enumerate(chunk_copies(self.design, self.design.block_n, warp)[: self.n_pages]):
                slots[f"page{i}"] = self._page_events(cta, work, copy.first_row, copy.rows)
                lanes[f"page{i}"] = np.full(work.steps, int((copy.rows < self.design.block_n).sum()))
        return slots, lanes

    def _page_events(self, cta: CtaClass, work: Work, first: int, rows: np.ndarray) -> np.ndarray:
        """Loads of the numbers of the pages that hold ``rows`` [32] of the block of each step."""
        page = int(self.design.page_size or 1)
        offsets = np.where(rows < self.design.block_n, (rows - first) // page * PAGE_ENTRY_BYTES, -1)
        start = work.sequence * -(-self.design.keys // page) + work.first_key // page
        number = start[0] + (np.arange(work.steps) * self.design.block_n + first) // page
        return cta.events(
            pattern=self.kernel.pattern(offsets),
            address=self.operands.page_table + number * PAGE_ENTRY_BYTES,
            base=cta.difference(start * PAGE_ENTRY_BYTES),
        )


class AlternatingFeed(CopyFeed):
    """One buffer of K and one of V: V is fetched under the scores, the next K under softmax and output."""

    def __init__(self, design: AttentionDesign, kernel: KernelWriter, operands: Operands) -> None:
        super().__init__(design, kernel, operands)
        self.ahead = 1

    def fill(self, block: Block) -> None:
        self._load_pages(block)
        self._group(block, "k", self.n_kv)

    def before_scores(self, block: Block) -> None:
        self._wait(block, 0, "bar_in")
        self._group(block, "v", self.n_kv)
        self._load_pages(block)

    def before_output(self, block: Block) -> None:
        self._wait(block, 0, "bar_out")
        self._group(block, "k", self.n_kv)

    def after_output(self, block: Block) -> None:
        """Nothing more."""

    def plan(self, cta: CtaClass, work: Work, warp: int) -> Plan:
        slots, lanes = self._slots(cta, work, warp)
        whole = super().plan(cta, work, warp)
        now = [name for name in slots if name.startswith("v")]
        own = whole.steps[0] | {name: slots[name] for name in now}
        on = whole.steps[1] | {name: lanes[name] for name in now}
        first = [name for name in slots if not name.startswith("v")]
        return Plan(
            whole.start, ({name: slots[name][:1] for name in first}, {name: lanes[name][:1] for name in first}), (own, on)
        )


Feed = BulkFeed | CopyFeed


def later(steps: int, ahead: int) -> tuple[np.ndarray, np.ndarray]:
    """(step that each step fetches, 1 where there is one), int64 [steps]."""
    step = np.arange(steps) + ahead
    return np.minimum(step, steps - 1), (step < steps).astype(np.int64)


def feed_of(design: AttentionDesign, kernel: KernelWriter, operands: Operands) -> Feed:
    """The feed that the design asks for."""
    if design.loads == "tma":
        return BulkFeed(design, kernel, operands)
    return AlternatingFeed(design, kernel, operands) if design.stages == 1 else CopyFeed(design, kernel, operands)
