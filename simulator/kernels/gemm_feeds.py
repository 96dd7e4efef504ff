"""How stages of A and B get into shared memory where every warp multiplies: by bulk copies or by asynchronous copies.

A feed writes its part of each block (``start``, ``fill``, ``wait``, ``refill``) and gives, for every unit of work, the
events and active lanes of its slots, by warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.kernels.code_fragments import await_phase, scalar_work
from simulator.kernels.control_words import Value
from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.gemm_layout import CHUNK_BYTES, LANE, operand_offset
from simulator.kernels.gemm_operands import Operands, copy_slots, ring_events, write_copies
from simulator.kernels.gemm_tiles import Work
from simulator.kernels.writer import Block, CtaClass, KernelWriter

GUARDED_AT_ONCE = 6
"""Asynchronous copies whose predicates are made together: a thread has seven predicates, one is the loop's."""
Slots = dict[str, Any]
"""Slot -> event rows or active lanes."""


@dataclass(frozen=True)
class UnitPlan:
    """A feed's slots of one unit and warp: (events, active lanes) of the first fills and of the loop."""

    fill: tuple[Slots, Slots]
    loop: tuple[Slots, Slots]


def stages_ahead(design: ProductDesign, steps: int) -> int:
    """Stages that are filled before the loop: asynchronous multiply-adds still read one while it would be refilled."""
    if design.is_serial:
        return 0
    return min(design.stages - 1 if design.method == "wgmma" else design.stages, steps)


class BulkFeed:
    """One thread issues bulk copies; an mbarrier per stage says when its bytes have come. The CTA meets around each."""

    groups_per_stage = 0

    def __init__(self, design: ProductDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.operands = design, operands
        self.boxes = range(len(operands.boxes))

    def start(self, block: Block) -> None:
        for stage in range(self.design.stages):
            scalar_work(block, 3)
            block.op("SYNCS.EXCH.64", [], [Value("init", kind="UR")], slot=f"init{stage}")
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar{stage}")
        scalar_work(block, 40)

    def fill(self, block: Block) -> None:
        scalar_work(block, 4)
        block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot="expect")
        self._copies(block)

    def _copies(self, block: Block) -> None:
        for i in self.boxes:
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar{i}")
            write_copies(block, self.operands, i)

    def wait(self, block: Block) -> None:
        ready = Value("P0", kind="P")
        block.op("UIADD3")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_in")
        scalar_work(block, 6)
        await_phase(block, ready, "wait")

    def refill(self, block: Block) -> None:
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_expect")
        block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot="expect")
        self._copies(block)

    def start_events(self, cta: CtaClass) -> tuple[Slots, list[Slots]]:
        """(events, active lanes by warp) of ``start``."""
        stages = range(self.design.stages)
        init = cta.events(mbarrier=self.operands.full(np.arange(self.design.stages)), count=1)
        bar = cta.events(count=0)[0]
        events = {f"init{s}": init[s] for s in stages} | {f"bar{s}": bar for s in stages}
        active = [{f"init{s}": np.int64(w == 0) for s in stages} for w in range(self.design.n_warps)]
        return events, active

    def plan(self, cta: CtaClass, work: Work, unit: int, first: int) -> list[UnitPlan]:
        steps = work.k_steps[unit]
        wait, expect = ring_events(self.operands, cta, first, steps)
        copies = copy_slots(self.operands, cta, work, unit, first)
        bar = cta.events(count=0)[0]
        bars = {f"bar{i}": bar for i in self.boxes}
        ahead = stages_ahead(self.design, steps)
        place = np.minimum(np.arange(steps) + ahead, steps - 1)
        more = (np.arange(steps) + ahead < steps).astype(np.int64)
        names = ["expect", *copies]
        fill = {"expect": expect[:ahead], **bars, **{name: rows[:ahead] for name, rows in copies.items()}}
        loop = {"wait": wait, "bar_in": bar, "bar_expect": bar, "expect": expect[place], **bars}
        loop |= {name: rows[place] for name, rows in copies.items()}
        led = UnitPlan((fill, dict.fromkeys(names, np.int64(1))), (loop, dict.fromkeys(names, more)))
        none = UnitPlan((fill, dict.fromkeys(names, np.int64(0))), (loop, dict.fromkeys(names, np.int64(0))))
        return [led] + [none] * (self.design.n_warps - 1)


class CopyFeed:
    """Every thread copies 16-byte chunks asynchronously (LDGSTS); A and B of a stage are a group each."""

    groups_per_stage = 2

    def __init__(self, design: ProductDesign, kernel: KernelWriter, operands: Operands) -> None:
        self.design, self.kernel, self.operands = design, kernel, operands
        threads = 32 * design.warps
        chunks = design.row_bytes // CHUNK_BYTES
        b_chunks = design.b_bytes // CHUNK_BYTES if design.weights else design.tile.n * chunks
        self.copies = {"a": -(-design.tile.m * chunks // threads), "b": -(-b_chunks // threads)}

    def start(self, block: Block) -> None:
        n = sum(self.copies.values())
        pointer = Value("pointer", 2)
        for i in range(n):
            block.ops("IMAD.WIDE" if i % 2 else "LEA.HI.X", 2, [pointer], [pointer])
            block.op("IADD3", [pointer], [pointer])
        self.operands.start_addresses(block, self.copies["a"])

    def _groups(self, block: Block) -> None:
        pointer, place = Value("pointer", 2), Value("place")
        for name, n in self.copies.items():
            for i in range(n):
                if self.design.spilled:  # one pair of registers for all addresses: each waits until the one before was read
                    block.op("IADD3", [pointer], [place])
                    block.op("IADD3.X", [pointer], [place])
                if i % GUARDED_AT_ONCE == 0:
                    batch = min(GUARDED_AT_ONCE, n - i)
                    guards = self.operands.guard_copies(block, batch) if name == "a" else [None] * batch
                guard = guards[i % GUARDED_AT_ONCE]
                block.op("LDGSTS.E.BYPASS.128", [], [pointer, place], slot=f"{name}{i}", guard=guard, width=CHUNK_BYTES)
            block.op("LDGDEPBAR")

    def fill(self, block: Block) -> None:
        scalar_work(block, 4)
        self._groups(block)

    def wait(self, block: Block) -> None:
        allowed = max(self.design.stages - 2, 0) * self.groups_per_stage
        block.op("UIADD3")
        block.op("DEPBAR.LE", argument=(allowed, 0), text=f"DEPBAR.LE SB0, {allowed:#x}")
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_in")
        scalar_work(block, 10)
        if self.design.spilled:
            return
        pointers = Value("pointers", 2 * sum(self.copies.values()))
        for _ in range(sum(self.copies.values())):
            block.op("IADD3", [Value("next")], [pointers])
            block.op("IADD3.X", [Value("next")], [pointers])

    def refill(self, block: Block) -> None:
        block.op("BAR.SYNC.DEFER_BLOCKING", slot="bar_out")
        self._groups(block)

    def start_events(self, cta: CtaClass) -> tuple[Slots, list[Slots]]:
        return {}, [{}] * self.design.n_warps

    def plan(self, cta: CtaClass, work: Work, unit: int, first: int) -> list[UnitPlan]:
        return [self._warp_plan(cta, work, unit, first, warp) for warp in range(self.design.warps)]

    def _warp_plan(self, cta: CtaClass, work: Work, unit: int, first: int, warp: int) -> UnitPlan:
        design, steps = self.design, work.k_steps[unit]
        ahead = stages_ahead(design, steps)
        place = np.minimum(np.arange(steps) + ahead, steps - 1)
        more = np.arange(steps) + ahead < steps
        bar = cta.events(count=0)[0]
        fill: tuple[Slots, Slots] = ({}, {})
        loop: tuple[Slots, Slots] = ({"bar_in": bar, "bar_out": bar}, {})
        for name in ("a", "b"):
            for i in range(self.copies[name]):
                rows, lanes = self._copy(cta, work, unit, first, warp, name, i)
                slot = f"{name}{i}"
                fill[0][slot], fill[1][slot] = rows[:ahead], lanes[:ahead]
                loop[0][slot], loop[1][slot] = rows[place], lanes[place] * more
        return UnitPlan(fill, loop)

    def _copy(
        self, cta: CtaClass, work: Work, unit: int, first: int, warp: int, name: str, i: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(event rows, active lanes), int [k_steps] each, of copy ``i`` of operand ``name``."""
        design, steps = self.design, np.arange(work.k_steps[unit])
        tile_rows = design.tile.m if name == "a" else design.tile.n
        chunks = design.row_bytes // CHUNK_BYTES
        chunk = (i * design.warps + warp) * 32 + LANE
        row, byte = chunk // chunks, chunk % chunks * CHUNK_BYTES
        offset = operand_offset(design, row, byte, tile_rows)
        if name == "b" and design.weights:
            row, byte, offset = chunk, 0 * chunk, chunk * CHUNK_BYTES
        shared = self.kernel.pattern(offset % (1 << 30))
        found = self.operands.chunks(self.kernel, cta, work, unit, name, row, byte)
        stage = (first + steps) % design.stages * design.stage_bytes + (0 if name == "a" else design.a_bytes)
        rows = cta.events(
            pattern=found.pattern, address=found.address, shared_address=stage, shared_pattern=shared, base=found.base
        )
        return rows, found.lanes


class SerialBulkFeed(BulkFeed):
    """A single stage: each step loads A, waits for it, then loads B, on a barrier that is made anew every time."""

    def start(self, block: Block) -> None:
        scalar_work(block, 6)

    def fill(self, block: Block) -> None:
        block.op("NOP")

    def wait(self, block: Block) -> None:
        for i in self.boxes:
            ready = Value("P0", kind="P")
            block.op("SYNCS.EXCH.64", [], [Value("init", kind="UR")], slot=f"init{i}")
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar{i}")
            scalar_work(block, 4)
            block.op("SYNCS.ARRIVE.TRANS64", [], [Value("bytes")], slot=f"expect{i}")
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar_copy{i}")
            write_copies(block, self.operands, i)
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar_wait{i}")
            await_phase(block, ready, f"wait{i}")
            block.op("BAR.SYNC.DEFER_BLOCKING", slot=f"bar_end{i}")

    def refill(self, block: Block) -> None:
        block.op("UIADD3")

    def start_events(self, cta: CtaClass) -> tuple[Slots, list[Slots]]:
        return {}, [{}] * self.design.n_warps

    def plan(self, cta: CtaClass, work: Work, unit: int, first: int) -> list[UnitPlan]:
        copies = copy_slots(self.operands, cta, work, unit, first)
        full = self.operands.full(0)
        init, wait = cta.events(mbarrier=full, count=1)[0], cta.events(mbarrier=full, parity=0)[0]
        bar = cta.events(count=0)[0]
        loop: Slots = dict(copies)
        for i in self.boxes:
            expect = cta.events(mbarrier=full, count=self.operands.boxes[i].n_bytes)[0]
            loop |= {f"init{i}": init, f"expect{i}": expect, f"wait{i}": wait}
            loop |= {f"{name}{i}": bar for name in ("bar", "bar_copy", "bar_wait", "bar_end")}
        led = [f"{name}{i}" for i in self.boxes for name in ("init", "expect")] + list(copies)
        return [
            UnitPlan(({}, {}), (loop, dict.fromkeys(led, np.int64(warp == 0))))
            for warp in range(self.design.n_warps)
        ]


Feed = BulkFeed | CopyFeed


def feed_of(design: ProductDesign, kernel: KernelWriter, operands: Operands) -> Feed:
    """The feed that the design asks for."""
    kinds: dict[str, type] = {"tma": SerialBulkFeed if design.is_serial else BulkFeed, "cp_async": CopyFeed}
    found: Feed = kinds[design.loads](design, kernel, operands)
    return found


def merge(slots: Sequence[Slots]) -> Slots:
    """One dictionary of several."""
    return {name: rows for group in slots for name, rows in group.items()}
