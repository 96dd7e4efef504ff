"""Code and execution of row normalizations: a row held in registers, or read again in passes over blocks of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.kernels.code_fragments import hold
from simulator.kernels.control_words import Value
from simulator.kernels.lane_reduction import OPERATIONS, Slots, merged
from simulator.kernels.normalization_design import NormalizationDesign
from simulator.kernels.row_arithmetic import (
    chain,
    exponentials,
    inverse_root,
    mean_of,
    quotients,
    reciprocal,
    scaled,
    subtract_mean,
    weighted,
)
from simulator.kernels.thread_index import element_address, parameter, read_thread
from simulator.kernels.vectors import PREDICATES, Bounds, Span, load_vector, narrow, registers_of, store_vector, widen
from simulator.kernels.writer import Block, CtaClass, KernelWriter

WEIGHTS = ("scale", "shift")
WEIGHTS_AHEAD = 0.75
"""Registers for weights under way, of those of the row (compiled layer norms: 40 for 16 elements, 64 for 32, 127 for 64)."""
LANE_PREDICATES = 2
"""Held by code in which warps reduce together: which lanes store and load partial results."""
HELD_REGISTERS = 8
"""Per thread for indices, addresses (those of weights are counted apart) and bounds: compiled softmax kernels take 32 for 16
elements of a thread, 48 for 32, 152 for 128."""
WORKING_REGISTERS = 24
"""Per thread for addresses and the elements under way, where registers run out."""


class RowCode:
    """What both kernels share: addresses, loads, the result's way out. ``x``, ``y``: addresses of input and output."""

    def __init__(self, design: NormalizationDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        n = design.rows * design.columns
        self.x = kernel.buffer("x", n * design.format.n_bytes)
        self.weights = [kernel.buffer(name, design.columns * design.format.n_bytes) for name in WEIGHTS[: design.weight_arrays]]
        self.y = kernel.buffer("y", n * design.result_format.n_bytes)
        self.start = kernel.block("start")
        thread = read_thread(self.start)
        self.cta, self.column, self.n = Value("UR8", kind="UR"), Value("column"), Value("n")
        self.start.op("S2UR", [self.cta], text="S2UR UR8, SR_CTAID.X")
        self.start.op("LDC", [self.n])
        self.start.op("SHF.L.U32", [self.column], [thread])
        self.start.op("LOP3.LUT", [self.column], [self.column])
        self.held = hold(self.start, "held", HELD_REGISTERS - 2 * design.weight_arrays)
        bounds = min(design.vectors, PREDICATES) if design.masked else 0
        self.n_held = bounds + (LANE_PREDICATES if design.group.warps > 1 else 0)
        self.inverse_n: Value | None = None
        self.n_guards: list[Value] = []
        self.body: list[Block] = []
        self.loops: list[Block] = []

    def block(self, name: str, is_turn: bool = False) -> Block:
        """A block of the code of one row."""
        found = self.kernel.block(name, loop=is_turn or self.design.persistent)
        self.body.append(found)
        return found

    def exit(self) -> Block:
        """The last block."""
        found = self.kernel.block("end")
        found.op("EXIT", [], [self.held])
        return found

    def row_base(self, block: Block) -> Value:
        """Where the row begins in an array that is a parameter."""
        row = Value("row")
        block.op("IMAD", [row], [self.n, self.cta])
        return element_address(block, row, parameter(block))

    def bases(self, block: Block) -> list[Value]:
        """Where the weights and the result's row begin."""
        return [*(parameter(block) for _ in self.weights), self.row_base(block)]

    def load(self, block: Block, address: Value, name: str, bounds: Bounds) -> list[list[Value]]:
        """All vectors of a thread, as raw registers."""
        design = self.design
        fill = None if not bounds.is_on else "MOV" if design.kind == "softmax" else "CS2R"
        return [
            load_vector(block, design.format, design.vector, address, f"{name}{i}", bounds.guard(i), fill)
            for i in range(design.vectors)
        ]

    def widened(self, block: Block, raw: Sequence[Sequence[Value]]) -> list[Value]:
        """Elements of all vectors in fp32."""
        return [x for vector in raw for x in widen(block, self.design.format, vector, self.design.vector)]

    def count(self, block: Block) -> None:
        """The reciprocal of the number of columns."""
        if self.design.kind == "softmax":
            return
        n = Value("columns")
        block.op("I2FP.F32.S32", [n], [self.n])
        self.inverse_n, self.n_guards = reciprocal(block, n, self.design.full_range)

    def finish(self, block: Block, values: Sequence[Value], factor: Value | None, bounds: Bounds, bases: Sequence[Value]) -> None:
        """Scale, weigh, convert and store, vector by vector, while weights of later ones are under way. ``bases``: where the
        weights and the result's row begin."""
        design = self.design
        n = design.vector
        *addresses, target = [element_address(block, self.column, base) for base in bases]
        row, together = n * design.vectors, max(2, design.result_format.per_register)
        room = min(WEIGHTS_AHEAD * row, design.max_registers - row - HELD_REGISTERS - WORKING_REGISTERS)
        ahead = max(1, int(room / max(1, self._weight_registers())))
        loaded = [self._weights(block, addresses, i, bounds) for i in range(min(ahead, design.vectors))]
        for i in range(design.vectors):
            packed: list[Value] = []
            for first in range(0, n, together):
                part = list(values[i * n + first : min(i * n + first + together, (i + 1) * n)])
                part = scaled(block, part, factor) if factor is not None else part
                weights = [widen(block, design.format, raw, n, first, len(part)) for raw in loaded[i]]
                part = weighted(block, part, weights[0] if weights else [], weights[1] if len(weights) > 1 else [])
                packed += narrow(block, design.result_format, part)
                if first == n // 2 // together * together and len(loaded) < design.vectors:
                    loaded.append(self._weights(block, addresses, len(loaded), bounds))
            store_vector(block, design.result_format, packed, n, target, f"store{i}", bounds.again(i))

    def _weight_registers(self) -> int:
        """Registers of a thread for one vector of each weight."""
        return len(self.weights) * len(registers_of(self.design.format, self.design.vector))

    def _weights(self, block: Block, addresses: Sequence[Value], i: int, bounds: Bounds) -> list[list[Value]]:
        """Raw weights of vector ``i``."""
        design = self.design
        guard = bounds.again(i) if addresses else None
        fill = "CS2R" if bounds.is_on else None
        return [
            load_vector(block, design.format, design.vector, address, f"{name}{i}", guard, fill)
            for name, address in zip(WEIGHTS, addresses, strict=False)
        ]

    def guards(self, bounds: Bounds) -> list[Value | None]:
        """The guard of every element."""
        return [bounds.guards[i] if bounds.is_on else None for i in range(self.design.vectors) for _ in range(self.design.vector)]

    def first_columns(self, warp: int, turn: np.ndarray) -> list[np.ndarray]:
        """Of each vector of a warp in each turn: the column of its first lane."""
        design = self.design
        own = warp % design.group.warps * 32 * design.vector
        return [(turn * design.vectors + i) * design.span + own for i in range(design.vectors)]

    def place(self, cta: CtaClass, members: np.ndarray) -> None:
        """Where the members' rows lie."""
        design = self.design
        first = members * design.rows_per_cta * design.columns
        self.members = members
        self.keys = [cta.difference(first * form.n_bytes) for form in (design.format, design.result_format)]

    def row_starts(self, warp: int, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(first element, columns that exist) of the rows that a warp works on in turns ``units`` over the rows."""
        design = self.design
        row = (int(self.members[0]) + units * design.n_ctas) * design.rows_per_cta + warp // design.group.warps
        return row * design.columns, design.columns * (row < design.rows)

    def load_events(self, cta: CtaClass, starts: np.ndarray, exist: np.ndarray, columns: Sequence[np.ndarray]) -> Slots:
        """Slots of the row's loads; the columns of each vector broadcast against the rows."""
        span = Span(self.x, self.keys[0], self.design.format.n_bytes, starts + exist)
        return self._loads(cta, span, "load", [starts + first for first in columns])

    def _loads(self, cta: CtaClass, span: Span, name: str, firsts: Sequence[np.ndarray]) -> Slots:
        events, active = {}, {}
        for i, first in enumerate(firsts):
            events[f"{name}{i}"], active[f"{name}{i}"] = span.events(self.kernel, cta, first, self.design.vector)
        return events, active

    def finish_events(self, cta: CtaClass, starts: np.ndarray, exist: np.ndarray, columns: Sequence[np.ndarray]) -> Slots:
        """Slots of ``finish``."""
        design = self.design
        parts = [
            self._loads(cta, Span(address, 0, design.format.n_bytes, exist), name, [first + 0 * starts for first in columns])
            for name, address in zip(WEIGHTS, self.weights, strict=False)
        ]
        output = Span(self.y, self.keys[1], design.result_format.n_bytes, starts + exist)
        parts += [
            output.store_events(self.kernel, cta, design.result_format, starts + first, design.vector, f"store{i}")
            for i, first in enumerate(columns)
        ]
        return merged(*parts)


class HeldRow(RowCode):
    """One pass: the row stays in registers."""

    def __init__(self, design: NormalizationDesign, kernel: KernelWriter) -> None:
        super().__init__(design, kernel)
        block = self.block("row")
        address = element_address(block, self.column, self.row_base(block))
        bounds = Bounds(block, self.column, design.vectors, design.masked)
        raw = self.load(block, address, "load", bounds)
        self.count(block)
        values = self.widened(block, raw)
        if design.kind == "softmax":
            self._softmax(block, values, bounds)
        else:
            self._normalize(block, values, bounds)
        self.end = self.exit()

    def _softmax(self, block: Block, values: list[Value], bounds: Bounds) -> None:
        design, group = self.design, self.design.group
        top = group.reduce(block, chain(block, OPERATIONS["max"], values), "max", "first", is_first=not design.persistent)
        e = exponentials(block, values, top, design.full_range, self.n_held)
        total = group.reduce(block, chain(block, OPERATIONS["sum"], e), "sum", "second", is_first=False)
        self.finish(block, quotients(block, e, total, design.full_range), None, bounds, self.bases(block))

    def _normalize(self, block: Block, values: list[Value], bounds: Bounds) -> None:
        design, group = self.design, self.design.group
        assert self.inverse_n is not None
        has_mean = design.kind == "layer_norm"
        if has_mean:
            total = chain(block, OPERATIONS["sum"], values)
            total = group.reduce(block, total, "sum", "first", is_first=not design.persistent)
            mean = mean_of(block, total, self.inverse_n, self.n_guards)
            values = subtract_mean(block, values, mean, self.guards(bounds))
        squares = chain(block, OPERATIONS["sum"], values, squares=True)
        squares = group.reduce(block, squares, "sum", "second", is_first=not has_mean and not design.persistent)
        factor = inverse_root(block, squares, self.inverse_n, self.n_guards, design.full_range)
        self.finish(block, values, factor, bounds, self.bases(block))

    def run(self, cta: CtaClass, members: np.ndarray, units: int, steps: int) -> None:
        """What every warp of a class executes: ``units`` rows one after another."""
        design, group = self.design, self.design.group
        self.place(cta, members)
        has_first = design.kind != "rms_norm"
        for number, warp in enumerate(cta.warps):
            columns = self.first_columns(number, np.zeros(1, np.int64))
            shared = merged(
                group.events(self.kernel, cta, number, "first", is_first=not design.persistent) if has_first else ({}, {}),
                group.events(self.kernel, cta, number, "second", is_first=not has_first and not design.persistent),
            )
            warp.run(self.start)
            rows = self.row_starts(number, np.arange(units))
            slots = merged(self.load_events(cta, *rows, columns), shared, self.finish_events(cta, *rows, columns))
            warp.run(self.body[0], units, *slots)
            warp.run(self.end)
