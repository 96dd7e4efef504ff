"""Vectors of elements in registers: wide loads and stores, conversion to fp32 and back, and the lanes' addresses.

Memory-bound kernels move 1 to 16 contiguous bytes a lane and instruction and compute in fp32. Instructions per element
are those of compiled Triton and nvcc kernels for sm_80 to sm_90.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulator.kernels.control_words import Value
from simulator.kernels.writer import Block, CtaClass, KernelWriter
from simulator.trace.kernel_trace import LANES

LANE = np.arange(LANES)
REGISTER_BYTES = 4
WIDEST_BYTES = 16
"""Of one lane's access."""
FEWEST_REGISTERS = 16
"""Per thread that compilers give any kernel."""
PREDICATES = 6
"""Bounds that stay in predicates; more are kept in registers and compared again."""
WIDTH_SUFFIX = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128"}

ElementType = Literal["fp32", "bf16", "fp16", "fp8_e4m3"]


@dataclass(frozen=True)
class ElementFormat:
    """``widen``: instructions that make fp32 of the elements of a register, by place in it; ``pack``: the one that
    rounds two fp32 values into half a register or a whole one."""

    n_bytes: int
    widen: tuple[tuple[str, ...], ...]
    pack: str | None

    @property
    def per_register(self) -> int:
        return REGISTER_BYTES // self.n_bytes


FORMATS: dict[str, ElementFormat] = {
    "fp32": ElementFormat(4, ((),), None),
    "bf16": ElementFormat(2, (("SHF.L.U32",), ("PRMT", "SHF.L.U32")), "F2FP.BF16.F32.PACK_AB"),
    "fp16": ElementFormat(2, (("HADD2.F32",), ("HADD2.F32",)), "F2FP.F16.F32.PACK_AB"),
    "fp8_e4m3": ElementFormat(
        1,
        (("F2FP.F16.E4M3.UNPACK_B", "HADD2.F32"), ("HADD2.F32",)) * 2,
        "F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C",
    ),
}


def widest_vector(row_bytes: int, most: int = WIDEST_BYTES) -> int:
    """Largest access in bytes (a power of two up to ``most``) that is aligned in every row of so many bytes."""
    return min(most, row_bytes & -row_bytes)


def registers_of(form: ElementFormat, n: int, name: str = "raw") -> list[Value]:
    """Fresh registers for ``n`` elements."""
    return [Value(name) for _ in range(-(-n * form.n_bytes // REGISTER_BYTES))]


def load_vector(
    block: Block,
    form: ElementFormat,
    n: int,
    address: Value,
    slot: str,
    guard: Value | None = None,
    fill: str | None = None,
) -> list[Value]:
    """Load ``n`` elements a lane; ``fill``: instruction that sets what a masked load leaves (CS2R: zeros, two registers at
    a time; MOV: another value). Returns the registers."""
    raw = registers_of(form, n)
    if guard is not None and fill is not None:
        step = 2 if fill == "CS2R" else 1
        for i in range(0, len(raw), step):
            block.op(fill, raw[i : i + step], [])
    width = n * form.n_bytes
    block.op(f"LDG.E{WIDTH_SUFFIX[width]}", raw, [address], slot=slot, guard=guard, width=width)
    return raw


def widen(
    block: Block, form: ElementFormat, raw: Sequence[Value], n: int, first: int = 0, count: int | None = None
) -> list[Value]:
    """fp32 values of ``n`` elements, or of ``count`` of them from ``first`` on."""
    count = n if count is None else count
    if not form.widen[0]:
        return list(raw[first : first + count])
    found = []
    halves = Value("halves")
    for i in range(first, first + count):
        source, element = raw[i // form.per_register], Value("x")
        steps = form.widen[i % form.per_register]
        for opcode in steps[:-1]:
            halves = Value("halves")
            block.op(opcode, [halves], [source])
        is_direct = len(steps) == 1 and form.n_bytes == 2
        block.op(steps[-1], [element], [source if is_direct else halves])
        found.append(element)
    return found


def narrow(block: Block, form: ElementFormat, elements: Sequence[Value]) -> list[Value]:
    """Round fp32 values and pack them into registers."""
    if form.pack is None:
        return list(elements)
    packed = registers_of(form, len(elements), "packed")
    for i in range(0, len(elements), 2):
        block.op(form.pack, [packed[i // form.per_register]], elements[i : i + 2])
    return packed


def store_vector(
    block: Block, form: ElementFormat, packed: Sequence[Value], n: int, address: Value, slot: str, guard: Value | None = None
) -> None:
    """Store ``n`` elements a lane, 16 bytes at most in one instruction: slots ``slot.0``, ``slot.1``..."""
    for part, width in enumerate(store_widths(form, n)):
        each = max(1, width // REGISTER_BYTES)
        values = packed[part * each : (part + 1) * each]
        block.op(f"STG.E{WIDTH_SUFFIX[width]}", [], [address, *values], slot=f"{slot}.{part}", guard=guard, width=width)


def store_widths(form: ElementFormat, n: int) -> list[int]:
    """Bytes of each store of ``n`` elements."""
    total = n * form.n_bytes
    return [min(total, WIDEST_BYTES)] * max(1, total // WIDEST_BYTES)


def masked_pattern(kernel: KernelWriter, stride: int, active: int) -> int:
    """Pattern of the first ``active`` lanes, ``stride`` bytes apart."""
    return kernel.pattern(np.where(active > LANE, LANE * stride, -1))


class Bounds:
    """Comparisons of a thread's ``n`` vectors with the end. What does not fit into predicates is kept in registers and made
    a predicate again where it is used again. ``is_on`` false: no comparisons, no guards."""

    def __init__(self, block: Block, index: Value, n: int, is_on: bool) -> None:
        self.block, self.index, self.is_on = block, index, is_on
        self.guards = [Value(f"P{i}", kind="P") for i in range(n)]
        self.kept = [Value("kept") for _ in range(n)]

    def guard(self, i: int) -> Value | None:
        """Compare vector ``i``."""
        if not self.is_on:
            return None
        place = self.index
        if i:
            place = Value("place")
            self.block.op("IADD3", [place], [self.index])
        self.block.op("ISETP.GE.AND", [self.guards[i]], [place])
        if i >= PREDICATES:
            self.block.op("P2R", [self.kept[i]], [self.guards[i]])
        return self.guards[i]

    def again(self, i: int) -> Value | None:
        """The guard of vector ``i``, later in the code."""
        if not self.is_on:
            return None
        if i < PREDICATES:
            return self.guards[i]
        guard = Value(f"P{i % PREDICATES}", kind="P")
        self.block.op("ISETP.NE.AND", [guard], [self.kept[i]])
        return guard


@dataclass(frozen=True)
class Span:
    """Contiguous elements in memory that warps cover by vectors. ``address``: of element 0 of the representative CTA;
    ``key``: of the difference to add (see CtaClass); ``element_bytes``; ``limit``: elements that exist, from there on."""

    address: int
    key: int
    element_bytes: int
    limit: int | np.ndarray

    def events(
        self, kernel: KernelWriter, cta: CtaClass, first: np.ndarray, n: int, part_bytes: int = 0, part: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """(event rows, active lanes), int [n_executions] each, of accesses of ``n`` elements a lane whose first lane
        begins at element ``first``; ``part``: of a vector that takes several stores of ``part_bytes``."""
        stride = n * self.element_bytes
        active = np.clip(-(-(np.asarray(self.limit) - first) // n), 0, LANES)
        kinds, place = np.unique(active, return_inverse=True)
        patterns = np.array([masked_pattern(kernel, stride, int(kind)) for kind in kinds])
        rows = cta.events(
            pattern=patterns[place.ravel()],
            address=self.address + first * self.element_bytes + part * part_bytes,
            base=self.key,
        )
        return rows, active

    def store_events(
        self, kernel: KernelWriter, cta: CtaClass, form: ElementFormat, first: np.ndarray, n: int, slot: str
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Events and active lanes of ``store_vector``."""
        events, active = {}, {}
        for part, width in enumerate(store_widths(form, n)):
            events[f"{slot}.{part}"], active[f"{slot}.{part}"] = self.events(kernel, cta, first, n, width, part)
        return events, active
