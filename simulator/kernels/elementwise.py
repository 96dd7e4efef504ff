"""Copies and element-wise chains: code of one tile per CTA or of a grid-stride loop."""

from __future__ import annotations

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.cta_classes import classes_of
from simulator.kernels.sampling import Extent
from simulator.kernels.streaming_design import StreamingDesign
from simulator.kernels.thread_index import element_address, element_index, parameter, read_thread
from simulator.kernels.vectors import Bounds, Span, load_vector, narrow, store_vector, widen
from simulator.kernels.writer import Block, CtaClass, KernelWriter

FMA_CYCLE = ("FMUL", "FFMA", "FADD")
"""What stands for ``fma_per_element``, in turn."""


class ElementwiseKernel:
    """Code and execution."""

    def __init__(self, design: StreamingDesign, kernel: KernelWriter) -> None:
        self.design, self.kernel = design, kernel
        n = design.n_elements
        self.inputs = [kernel.buffer(f"x{i}", n * design.n_bytes) for i in range(design.inputs)]
        self.output = kernel.buffer("y", n * design.n_result_bytes)
        self.is_loop = design.loop == "grid_stride"
        start = kernel.block("start")
        thread = read_thread(start)
        index = element_index(start, thread)
        bases = [parameter(start) for _ in range(design.inputs + 1)]
        self.tile = kernel.block("tile", loop=True) if self.is_loop else start
        self._tile(self.tile, index, bases)
        if self.is_loop:
            more = Value("P1", kind="P")
            self.tile.op("IADD3", [index], [index])
            self.tile.op("ISETP.GE.AND", [more], [index])
            self.tile.op("BRA", [], [], guard=more)
        self.start, self.end = start, kernel.block("end")
        self.end.op("EXIT")

    def _tile(self, block: Block, index: Value, bases: list[Value]) -> None:
        design = self.design
        addresses = [element_address(block, index, base) for base in bases[:-1]]
        bounds = Bounds(block, index, design.unroll, design.masked)
        fill = "CS2R" if design.masked else None
        depth = min(design.in_flight or design.unroll, design.unroll)
        raw: list[list[list[Value]]] = []
        target: Value | None = None
        for u in range(design.unroll):
            while len(raw) < min(u + depth, design.unroll):
                n = len(raw)
                guard = bounds.guard(n)
                raw.append(
                    [
                        load_vector(block, design.format, design.vector, address, f"load{i}.{n}", guard, fill)
                        for i, address in enumerate(addresses)
                    ]
                )
            target = target or element_address(block, index, bases[-1])
            packed = self._compute(block, raw[u]) if design.converts else raw[u][0]
            store_vector(block, design.result_format, packed, design.vector, target, f"store{u}", bounds.again(u))

    def _compute(self, block: Block, group: list[list[Value]]) -> list[Value]:
        """One vector: the inputs are summed, then the chain of operations; the elements take turns in each step."""
        design = self.design
        values = [widen(block, design.format, raw, design.vector) for raw in group]
        x = values[0]
        extra = design.fma_per_element - (design.inputs - 1)
        for other in values[1:]:
            x = _step(block, "FADD", x, other)
        for opcode in chain(max(0, extra), design.alu_per_element, design.mufu_per_element):
            x = _step(block, opcode, x)
        return narrow(block, design.result_format, x)

    def run(self, cta: CtaClass, members: np.ndarray, limits: np.ndarray) -> None:
        """What every warp of a class executes. ``limits`` int [n_turns]: elements of each turn's tile that exist."""
        design = self.design
        reads = cta.difference(members * design.tile_elements * design.n_bytes)
        writes = cta.difference(members * design.tile_elements * design.n_result_bytes)
        own = int(members[0]) + np.arange(len(limits)) * design.n_ctas
        for number, warp in enumerate(cta.warps):
            events: dict[str, np.ndarray] = {}
            active: dict[str, np.ndarray] = {}
            for u in range(design.unroll):
                inside = (u * design.threads + number * 32) * design.vector
                first = own * design.tile_elements + inside
                limit = own * design.tile_elements + limits
                for i, address in enumerate(self.inputs):
                    span = Span(address, reads, design.n_bytes, limit)
                    events[f"load{i}.{u}"], active[f"load{i}.{u}"] = span.events(self.kernel, cta, first, design.vector)
                span = Span(self.output, writes, design.n_result_bytes, limit)
                stores = span.store_events(self.kernel, cta, design.result_format, first, design.vector, f"store{u}")
                events |= stores[0]
                active |= stores[1]
            if self.is_loop:
                warp.run(self.start)
            warp.run(self.tile, len(limits), events, active)
            warp.run(self.end)


def chain(fma: int, alu: int, mufu: int) -> list[str]:
    """Opcodes of one element in order: the few MUFU operations lie evenly among the others."""
    plain = [FMA_CYCLE[i % len(FMA_CYCLE)] for i in range(fma)]
    for i in range(alu):
        plain.insert((i + 1) * len(plain) // (alu + 1), ("FMNMX", "FSEL")[i % 2])
    for i in range(mufu):
        plain.insert((i + 1) * len(plain) // (mufu + 1), ("MUFU.EX2", "MUFU.RCP")[i % 2])
    return plain


def _step(block: Block, opcode: str, x: list[Value], other: list[Value] | None = None) -> list[Value]:
    found = []
    for i, value in enumerate(x):
        result = Value("x")
        block.op(opcode, [result], [value, other[i]] if other else [value])
        found.append(result)
    return found


def build(design: StreamingDesign, kernel: KernelWriter, extent: Extent | None) -> None:
    """Write the whole kernel."""
    code = ElementwiseKernel(design, kernel)
    ctas = np.arange(design.n_ctas)
    turns = -(-design.turns // design.n_ctas)
    if extent is not None:
        turns = min(turns, extent.steps)
    own = ctas + np.arange(turns)[:, None] * design.n_ctas
    limits = np.clip(design.n_elements - own * design.tile_elements, 0, design.tile_elements)
    for kind, members in classes_of(limits):
        code.run(kernel.cta_class(ctas[members]), ctas[members], kind[kind > 0])
