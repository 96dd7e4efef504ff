"""Code and execution of reductions: a loop that accumulates in registers, then lanes, warps and CTAs combine."""

from __future__ import annotations

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.lane_reduction import BARRIER, OPERATIONS, Slots, merged
from simulator.kernels.reduction_design import ReductionDesign
from simulator.kernels.row_arithmetic import chain
from simulator.kernels.thread_index import computed_address, element_address, element_index, parameter, read_thread
from simulator.kernels.vectors import (
    LANE,
    REGISTER_BYTES,
    WIDTH_SUFFIX,
    Bounds,
    Span,
    load_vector,
    masked_pattern,
    widen,
)
from simulator.kernels.writer import Block, CtaClass, KernelWriter

ATOMICS = {"sum": "RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "max": "RED.E.MAX.STRONG.GPU"}
"""A maximum of floats is one of integers of the same bits (two, by sign; one is executed)."""


class ReductionKernel:
    """Code and execution."""

    def __init__(self, design: ReductionDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        self.x = kernel.buffer("x", design.rows * design.columns * design.format.n_bytes)
        self.y = kernel.buffer("y", design.n_results * REGISTER_BYTES)
        self.start = kernel.block("start")
        index = element_index(self.start, read_thread(self.start))
        base, self.out = parameter(self.start), parameter(self.start)
        self.totals = [Value("total") for _ in range(design.vector)]
        for i in range(0, len(self.totals), 2):
            self.start.op("CS2R", self.totals[i : i + 2], [])
        self.loop = self._loop(index, base)
        self.tail = kernel.block("combine")
        if design.axis == "column":
            self._columns(self.tail, index)
        else:
            self._one(self.tail, index)
        self.tail.op("EXIT")

    def _loop(self, index: Value, base: Value) -> Block:
        design = self.design
        loop = self.kernel.block("loop", loop=True)
        bounds = Bounds(loop, index, design.unroll, design.masked)
        fill = "CS2R" if design.masked else None
        depth = min(design.in_flight or design.unroll, design.unroll)
        address_of = computed_address if design.masked else element_address
        raw: list[list[Value]] = []
        for u in range(design.unroll):
            while len(raw) < min(u + depth, design.unroll):
                address, n = address_of(loop, index, base), len(raw)
                raw.append(load_vector(loop, design.format, design.vector, address, f"load{n}", bounds.guard(n), fill))
            for total, value in zip(self.totals, widen(loop, design.format, raw[u], design.vector), strict=True):
                loop.op(OPERATIONS[design.operation], [total], [total, value])
        more = Value("more", kind="P")
        loop.op("IADD3", [index], [index])
        loop.op("ISETP.GE.AND", [more], [index])
        loop.op("BRA", [], [], guard=more)
        return loop

    def _one(self, block: Block, index: Value) -> None:
        """One number of the whole CTA."""
        design = self.design
        operation = OPERATIONS[design.operation]
        own = chain(block, operation, self.totals)
        total = design.group.reduce(block, own, design.operation, "group")
        self._write(block, element_address(block, index, self.out), [total])

    def _columns(self, block: Block, index: Value) -> None:
        """One number a column: the first warp adds what the others have stored."""
        design = self.design
        totals = self.totals
        widths = _parts(design.vector)
        if design.warps > 1:
            place = Value("place")
            block.op("LEA", [place], [])
            for part, n in enumerate(widths):
                block.op(
                    f"STS{WIDTH_SUFFIX[n * REGISTER_BYTES]}", [], [place, *totals[part * 4 : part * 4 + n]],
                    slot=f"put{part}", width=n * REGISTER_BYTES,
                )  # fmt: skip
            block.op(BARRIER, slot="stored")
            for other in range(1, design.warps):
                for part, n in enumerate(widths):
                    values = [Value("other") for _ in range(n)]
                    width = n * REGISTER_BYTES
                    block.op(f"LDS{WIDTH_SUFFIX[width]}", values, [place], slot=f"get{other}.{part}", width=width)
                    for total, value in zip(totals[part * 4 : part * 4 + n], values, strict=True):
                        block.op(OPERATIONS[design.operation], [total], [total, value], slot=f"add{other}.{part}")
        self._write(block, element_address(block, index, self.out), totals)

    def _write(self, block: Block, address: Value, totals: list[Value]) -> None:
        if self.design.is_added:
            for i, total in enumerate(totals):
                block.op(ATOMICS[self.design.operation], [], [address, total], slot=f"add{i}", width=REGISTER_BYTES)
            return
        for part, n in enumerate(_parts(len(totals))):
            width = n * REGISTER_BYTES
            values = totals[part * 4 : part * 4 + n]
            block.op(f"STG.E{WIDTH_SUFFIX[width]}", [], [address, *values], slot=f"store{part}", width=width)

    def run(self, cta: CtaClass, members: np.ndarray, limits: np.ndarray) -> None:
        """What every warp of a class executes. ``limits`` int [n_turns]: elements (axis column: rows) of each turn."""
        run = self._run_columns if self.design.axis == "column" else self._run_row
        for number in range(len(cta.warps)):
            run(cta, members, limits, number)

    def _run_row(self, cta: CtaClass, members: np.ndarray, limits: np.ndarray, number: int) -> None:
        design = self.design
        is_all = design.axis == "all"
        stride = design.step if is_all else design.columns
        key = cta.difference(members * stride * design.format.n_bytes)
        turn = np.arange(len(limits))
        start = int(members[0]) * stride + turn * design.step * (design.n_ctas if is_all else 1)
        span = Span(self.x, key, design.format.n_bytes, start + limits)
        events, active = {}, {}
        for u in range(design.unroll):
            first = start + (u * design.threads + number * 32) * design.vector
            events[f"load{u}"], active[f"load{u}"] = span.events(self.kernel, cta, first, design.vector)
        slots = design.group.events(self.kernel, cta, number, "group")
        place = members * 0 if design.is_added or design.n_results == 1 else members
        own = self._result(cta, place, np.full(32, number) * 32 + LANE == 0, 1)
        warp = cta.warps[number]
        warp.run(self.start)
        warp.run(self.loop, len(limits), events, active)
        warp.run(self.tail, 1, *merged(slots, own))

    def _result(self, cta: CtaClass, place: np.ndarray, on: np.ndarray, n: int) -> Slots:
        """Slots of the result: ``place`` int [n_members] of its first number, lanes that are ``on``, ``n`` numbers each."""
        key = cta.difference(place * REGISTER_BYTES)
        address = self.y + int(place[0]) * REGISTER_BYTES
        pattern = self.kernel.pattern(np.where(on, LANE * n * REGISTER_BYTES, -1))
        slots, size = (range(n), 1) if self.design.is_added else (range(len(_parts(n))), 4)
        name = "add" if self.design.is_added else "store"
        events = {
            f"{name}{i}": cta.events(pattern=pattern, address=address + i * size * REGISTER_BYTES, base=key) for i in slots
        }
        return events, {slot: np.array(int(on.sum())) for slot in events}

    def _run_columns(self, cta: CtaClass, members: np.ndarray, limits: np.ndarray, number: int) -> None:
        design = self.design
        column, split = members // design.splits * design.tile_columns, members % design.splits
        origin = split * design.split_rows * design.columns + column
        key = cta.difference(origin * design.format.n_bytes)
        width = int(np.clip(-(-(design.columns - column[0]) // design.vector), 0, 32))
        pattern = masked_pattern(self.kernel, design.vector * design.format.n_bytes, width)
        events: dict[str, np.ndarray] = {}
        active: dict[str, np.ndarray] = {}
        turn = np.arange(len(limits)) * design.step
        for u in range(design.unroll):
            inside = u * design.warps + number
            at = self.x + (int(origin[0]) + (turn + inside) * design.columns) * design.format.n_bytes
            events[f"load{u}"] = cta.events(pattern=pattern, address=at, base=key)
            active[f"load{u}"] = width * (inside < limits)
        tail, on = self._exchange(cta, number)
        result = column if design.finish == "atomic" else column + split * design.columns
        own = self._result(cta, result, (width > LANE) & (number == 0), design.vector)
        warp = cta.warps[number]
        warp.run(self.start)
        warp.run(self.loop, len(limits), events, active)
        warp.run(self.tail, 1, *merged((tail, on), own))

    def _exchange(self, cta: CtaClass, number: int) -> Slots:
        design = self.design
        events: dict[str, np.ndarray] = {}
        active: dict[str, np.ndarray] = {}
        if design.warps == 1:
            return events, active
        leads = np.array(32 * (number == 0))
        row = design.tile_columns * REGISTER_BYTES
        events["stored"] = cta.events(count=0)
        for part, n in enumerate(_parts(design.vector)):
            pattern = self.kernel.pattern(LANE * n * REGISTER_BYTES)
            shift = part * 32 * n * REGISTER_BYTES
            events[f"put{part}"] = cta.events(pattern=pattern, shared_address=number * row + shift)
            for other in range(1, design.warps):
                events[f"get{other}.{part}"] = cta.events(pattern=pattern, shared_address=other * row + shift)
                active[f"get{other}.{part}"] = leads
        return events, active


def _parts(n: int) -> list[int]:
    """Registers of each access of ``n`` registers a lane: 16 bytes at most."""
    return [min(n, 4)] * max(1, n // 4)
