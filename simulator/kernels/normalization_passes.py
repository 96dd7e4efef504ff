"""Row normalizations that read a row several times, in blocks: statistics first, the result in the last pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.lane_reduction import OPERATIONS, Slots, merged
from simulator.kernels.normalization_design import NormalizationDesign
from simulator.kernels.normalization_kernel import RowCode
from simulator.kernels.row_arithmetic import (
    chain,
    exponentials,
    inverse_root,
    mean_of,
    quotients_by,
    reciprocal,
    scaled,
    subtract_mean,
)
from simulator.kernels.thread_index import element_address
from simulator.kernels.vectors import Bounds
from simulator.kernels.writer import Block, CtaClass, KernelWriter

Step = Callable[[Block, list[Value], Bounds], None]
"""What a pass does with the elements of a turn."""


class PassesRow(RowCode):
    """A loop over the row's blocks for each pass; ``reductions``: names of those between the passes, in order."""

    def __init__(self, design: NormalizationDesign, kernel: KernelWriter) -> None:
        super().__init__(design, kernel)
        self.reductions: list[tuple[str, str]] = []
        self.count(self.start)
        self.row = self.block("row")
        self.base = self.row_base(self.row)
        self.out = self.bases(self.row)
        n = design.vectors * design.vector
        self.totals, self.squares = ([Value(name) for _ in range(n)] for name in ("total", "square"))
        if design.kind == "softmax":
            self._softmax()
        else:
            self._normalize()
        self.end = self.exit()

    def _zero(self, block: Block, values: Sequence[Value]) -> None:
        for i in range(0, len(values), 2):
            block.op("CS2R", values[i : i + 2], [])

    def _loop(self, name: str, step: Step) -> None:
        """A pass: every turn loads and widens a block, then does ``step``."""
        design = self.design
        loop = self.block(name, is_turn=True)
        self.loops.append(loop)
        address = element_address(loop, self.column, self.base)
        bounds = Bounds(loop, self.column, design.vectors, design.masked)
        raw = self.load(loop, address, "load", bounds)
        step(loop, self.widened(loop, raw), bounds)
        more = Value("more", kind="P")
        loop.op("IADD3", [self.column], [self.column])
        loop.op("ISETP.GE.AND", [more], [self.column])
        loop.op("BRA", [], [], guard=more)

    def _reduce(self, value: Value, operation: str, block: Block) -> Value:
        name = f"reduce{len(self.reductions)}"
        is_first = not self.reductions and not self.design.persistent
        self.reductions.append((name, block.name))
        return self.design.group.reduce(block, value, operation, name, is_first)

    def _between(self, name: str) -> Block:
        """Code between two passes, which begins the row again."""
        block = self.block(name)
        block.op("IMAD.MOV.U32", [self.column], [])
        return block

    def _normalize(self) -> None:
        design = self.design
        assert self.inverse_n is not None
        mean: Value | None = None
        is_apart = design.passes == 3
        self._zero(self.row, self.totals if design.kind == "layer_norm" else [])
        self._zero(self.row, [] if is_apart else self.squares)
        if design.kind == "layer_norm":
            self._loop("statistics", self._add if is_apart else self._add_both)
            between = self._between("mean")
            total = self._reduce(chain(between, "FADD", self.totals), "sum", between)
            mean = mean_of(between, total, self.inverse_n, self.n_guards)
            if is_apart:
                self._zero(between, self.squares)
                self._loop("variance", lambda b, x, g: self._square(b, subtract_mean(b, x, mean, self.guards(g))))
                between = self._between("root")
        else:
            self._loop("statistics", lambda block, values, _: self._square(block, values))
            between = self._between("root")
        squares = self._reduce(chain(between, "FADD", self.squares), "sum", between)
        factor = inverse_root(between, squares, self.inverse_n, self.n_guards, design.full_range)

        def result(block: Block, values: list[Value], bounds: Bounds) -> None:
            if mean is not None:
                values = subtract_mean(block, values, mean, [None] * len(values))
            self.finish(block, values, factor, bounds, self.out)

        self._loop("result", result)

    def _add(self, block: Block, values: list[Value], _: Bounds) -> None:
        for total, value in zip(self.totals, values, strict=True):
            block.op("FADD", [total], [total, value])

    def _square(self, block: Block, values: list[Value]) -> None:
        for total, value in zip(self.squares, values, strict=True):
            block.op("FFMA", [total], [value, total])

    def _add_both(self, block: Block, values: list[Value], bounds: Bounds) -> None:
        self._add(block, values, bounds)
        self._square(block, values)

    def _softmax(self) -> None:
        design = self.design
        top, total = Value("top"), Value("sum")
        self.row.op("IMAD.MOV.U32", [top], [])
        self.row.op("IMAD.MOV.U32", [total], [])
        if design.passes == 2:
            self._loop("statistics", lambda block, values, _: self._online(block, values, top, total))
            between = self._between("sum")
            own = top
            top = self._reduce(own, "max", between)
            (factor,) = exponentials(between, [own], top, design.full_range)
            between.op("FMUL", [total], [total, factor])
        else:
            self._loop("maximum", lambda block, values, _: self._keep(block, chain(block, OPERATIONS["max"], values, top), top))
            between = self._between("maximum of all")
            largest = self._reduce(top, "max", between)

            def add(block: Block, values: list[Value], bounds: Bounds) -> None:
                e = exponentials(block, values, largest, design.full_range, self.n_held)
                self._keep(block, chain(block, OPERATIONS["sum"], e, total), total)

            self._loop("statistics", add)
            top, between = largest, self._between("sum")
        whole = self._reduce(total, "sum", between)
        inverse, guards = reciprocal(between, whole, design.full_range)

        def result(block: Block, values: list[Value], bounds: Bounds) -> None:
            e = exponentials(block, values, top, design.full_range, self.n_held)
            self.finish(block, quotients_by(block, e, inverse, guards), None, bounds, self.out)

        self._loop("result", result)

    def _online(self, block: Block, values: list[Value], top: Value, total: Value) -> None:
        """A running maximum; the running sum is scaled when it grows."""
        now = chain(block, OPERATIONS["max"], values, top)
        e = exponentials(block, [top, *values], now, self.design.full_range, self.n_held)
        (rest,) = scaled(block, [total], e[0])
        self._keep(block, chain(block, "FADD", e[1:], rest), total)
        self._keep(block, now, top)

    @staticmethod
    def _keep(block: Block, value: Value, place: Value) -> None:
        block.op("MOV", [place], [value])

    def run(self, cta: CtaClass, members: np.ndarray, units: int, steps: int) -> None:
        """What every warp of a class executes: ``units`` rows one after another, ``steps`` turns of each pass."""
        self.place(cta, members)
        group = self.design.group
        is_first = [i == 0 and not self.design.persistent for i in range(len(self.reductions))]
        for number, warp in enumerate(cta.warps):
            columns = self.first_columns(number, np.arange(steps))
            shared = [
                (block, group.events(self.kernel, cta, number, name, first))
                for (name, block), first in zip(self.reductions, is_first, strict=True)
            ]
            warp.run(self.start)
            for unit in range(units):
                rows = self.row_starts(number, np.array([unit]))
                loads = self.load_events(cta, *rows, columns)
                stores = self.finish_events(cta, *rows, columns)
                for block in self.body:
                    if block not in self.loops:
                        warp.run(block, 1, *merged(*(slots for name, slots in shared if name == block.name)))
                        continue
                    own: Slots = merged(loads, stores) if block is self.loops[-1] else loads
                    warp.run(block, steps, *own)
            warp.run(self.end)
