"""Lowering of memory and asynchronous instructions."""

from __future__ import annotations

import re

from simulator.frontends.sass import widths
from simulator.frontends.sass.lower_arithmetic import move
from simulator.frontends.sass.lower_operands import Lowering, has, pick
from simulator.frontends.sass.operands import ZERO, Operand, OperandKind
from simulator.frontends.sass.row_layout import Draft, NotInterpreted, is_predicate
from simulator.frontends.sass.semantics import codes

UPDATES = {
    "ADD": codes.UPDATE_ADD,
    "INC": codes.UPDATE_INCREMENT,
    "MIN": codes.UPDATE_MINIMUM,
    "MAX": codes.UPDATE_MAXIMUM,
    "AND": codes.UPDATE_AND,
    "OR": codes.UPDATE_OR,
    "XOR": codes.UPDATE_XOR,
    "EXCH": codes.UPDATE_EXCHANGE,
    "CAS": codes.UPDATE_COMPARE_SWAP,
}
FLOATING = frozenset({"F16", "F16x2", "BF16", "BF16x2", "F32", "F64", "F32x2", "F32x4", "F32.FTZ.RN"})
WORD_BYTES = 4
SIGNED = frozenset({"S8", "S16"})
MATRIX_ROW_BYTES = 16


def memory_operands(draft: Draft) -> list[Operand]:
    """Bracketed operands in printed order."""
    return [operand for operand in draft.instruction.operands if operand.kind is OperandKind.MEMORY]


def address(draft: Draft, operand: Operand) -> Draft:
    """Register and uniform address parts into A and B, the offset into X0."""
    layout = draft.layout
    wide_register = operand.register_is_64 and operand.register not in (-1, ZERO)
    wide_uniform = operand.uniform_is_64 and operand.uniform not in (-1, ZERO)
    return draft.set(
        a=layout.register(operand.register),
        a_hi=layout.register(operand.register + 1) if wide_register else layout.zero,
        a_mod=operand.scale,
        b=layout.uniform_register(operand.uniform),
        b_hi=layout.uniform_register(operand.uniform + 1) if wide_uniform else layout.zero,
        x0=operand.value,
    )


def register_result(draft: Draft, operand: Operand, words: int) -> Draft:
    """Loaded words go to consecutive registers; RZ discards them."""
    return draft if operand.index == ZERO else draft.results((operand,), words)


def stored(draft: Draft, operand: Operand, words: int) -> Draft:
    """Stored words come from consecutive rows from C on; C_HI 1: the same row (zeros) for all of them."""
    is_zero = operand.index == ZERO
    return draft.set(c=draft.layout.row(operand), c_hi=int(is_zero), x3=words)


def load(verb: int) -> Lowering:
    """LDG, LDS, LDL, LD: register, [address]."""

    def lower(draft: Draft) -> Draft:
        width = widths.access_bytes(draft.instruction)
        address(draft, memory_operands(draft)[0])
        result = next(o for o in draft.instruction.operands if o.kind is OperandKind.REGISTER)
        register_result(draft, result, max(1, width // WORD_BYTES))
        draft.set(x1=width, x2=int(bool(SIGNED & set(draft.instruction.modifiers))))
        return draft.verb(codes.MEMORY, verb)

    return lower


def store(verb: int) -> Lowering:
    """STG, STS, STL, ST: [address], register."""

    def lower(draft: Draft) -> Draft:
        width = widths.access_bytes(draft.instruction)
        address(draft, memory_operands(draft)[0])
        stored(draft, draft.instruction.operands[1], max(1, width // WORD_BYTES)).set(x1=width)
        return draft.verb(codes.MEMORY, verb)

    return lower


def matrix_load(draft: Draft) -> Draft:
    """LDSM: each lane's address is one row of 16 bytes."""
    address(draft, memory_operands(draft)[0]).set(x1=MATRIX_ROW_BYTES)
    register_result(draft, draft.instruction.operands[0], widths.matrix_count(draft.instruction))
    return draft.verb(codes.MEMORY, codes.MATRIX_READ)


def matrix_store(draft: Draft) -> Draft:
    """STSM."""
    address(draft, memory_operands(draft)[0]).set(x1=MATRIX_ROW_BYTES)
    return draft.verb(codes.MEMORY, codes.MATRIX_WRITE)


def global_atomic(draft: Draft) -> Draft:
    """ATOMG, ATOM, RED, REDG: the result, if any, is unknown."""
    width = widths.access_bytes(draft.instruction)
    operands = draft.instruction.operands
    memory_operand = memory_operands(draft)[0]
    results = operands[: operands.index(memory_operand)]
    address(draft, memory_operand).results(results, max(1, width // WORD_BYTES)).set(x1=width)
    return draft.verb(codes.MEMORY, codes.GLOBAL_ATOMIC)


def shared_atomic(draft: Draft) -> Draft:
    """ATOMS: integer updates of 32-bit words are functional."""
    operands = draft.instruction.operands
    memory_operand = memory_operands(draft)[0]
    at = operands.index(memory_operand)
    sources = [o for o in operands[at + 1 :] if not is_predicate(o)]
    floating = FLOATING & set(draft.instruction.modifiers)
    update = codes.UPDATE_UNKNOWN if floating else pick(draft, UPDATES, codes.UPDATE_UNKNOWN)
    width = widths.access_bytes(draft.instruction)
    address(draft, memory_operand).results(operands[:at], max(1, width // WORD_BYTES))
    for slot, operand in zip(("c", "c_hi"), sources, strict=False):
        draft.set(**{slot: draft.layout.row(operand)})
    draft.set(x1=width, x2=int(has(draft, "S32")), x3=update)
    return draft.verb(codes.MEMORY, codes.SHARED_ATOMIC)


def async_copy(draft: Draft) -> Draft:
    """LDGSTS [shared], [global], P: without P the lane's source is read."""
    shared, source = memory_operands(draft)
    address(draft, source)
    draft.set(c=draft.layout.register(shared.register), c_hi=draft.layout.uniform_register(shared.uniform))
    draft.set(x1=widths.access_bytes(draft.instruction), x2=shared.value)
    last = draft.instruction.operands[-1]
    if is_predicate(last):
        draft.predicate_source("p", last)
    return draft.verb(codes.MEMORY, codes.ASYNC_COPY)


def constant_load(draft: Draft) -> Draft:
    """LDC, ULDC, LDCU: folded when the address is static."""
    result, source = draft.instruction.operands[:2]
    width = widths.access_bytes(draft.instruction)
    if SIGNED & set(draft.instruction.modifiers) or source.bank < 0:
        raise NotInterpreted(draft.instruction.opcode)
    indexed = source.register >= 0 or source.uniform >= 0
    if not indexed and width in (4, 8):
        return move(draft)
    address(draft, source).set(x0=source.value, x1=source.bank, x2=min(width, WORD_BYTES))
    draft.results((result,), max(1, width // WORD_BYTES))
    return draft.verb(codes.CONSTANT_LOAD, 0)


def tensor_copy(verb: int) -> Lowering:
    """UTMALDG, UTMASTG, UTMAREDG, UTMAPF."""

    def lower(draft: Draft) -> Draft:
        run, descriptor = memory_operands(draft)[:2]
        layout = draft.layout
        rank = int(next(m for m in draft.instruction.modifiers if re.fullmatch(r"[1-5]D", m))[0])
        draft.set(a=layout.uniform_register(run.uniform), x0=rank, x3=int(verb == codes.TENSOR_LOAD))
        draft.set(b=layout.uniform_register(descriptor.uniform), b_hi=layout.uniform_register(descriptor.uniform + 1))
        if has(draft, "MULTICAST"):
            draft.set(c=layout.row(draft.instruction.operands[2]), x1=1)
        return draft.verb(codes.ASYNC, verb)

    return lower


def bulk_copy(draft: Draft) -> Draft:
    """UBLKCP.S.G [shared, mbarrier], [global], bytes / 16; UBLKCP.G.S the other way."""
    first, second = memory_operands(draft)[:2]
    to_global = draft.instruction.modifiers[:1] == ("G",)
    shared, remote = (second, first) if to_global else (first, second)
    layout = draft.layout
    draft.set(a=layout.uniform_register(shared.uniform), x2=int(to_global), x3=int(not to_global))
    draft.set(b=layout.uniform_register(remote.uniform), b_hi=layout.uniform_register(remote.uniform + 1))
    draft.set(c=layout.row(draft.instruction.operands[2]))
    return draft.verb(codes.ASYNC, codes.BULK_COPY)


def mbarrier(draft: Draft) -> Draft:
    """SYNCS."""
    operands = draft.instruction.operands
    at = operands.index(memory_operands(draft)[0])
    address(draft, operands[at]).results(operands[:at]).set(x3=0)
    if len(operands) > at + 1 and not is_predicate(operands[at + 1]):
        draft.set(c=draft.layout.row(operands[at + 1]))
    draft.set(a_hi=draft.layout.zero, b_hi=draft.layout.zero)
    return draft.verb(codes.ASYNC, _mbarrier_verb(draft))


def _mbarrier_verb(draft: Draft) -> int:
    if has(draft, "EXCH"):
        return codes.MBARRIER_INIT
    if has(draft, "PHASECHK"):
        return codes.MBARRIER_TRY_WAIT
    if has(draft, "ARRIVE"):
        return codes.MBARRIER_ARRIVE if has(draft, "A1T0") else codes.MBARRIER_EXPECT
    return codes.MBARRIER_INVALIDATE


def matrix_multiply_async(draft: Draft) -> Draft:
    """HGMMA and its kind: descriptors must be known; accumulators are not."""
    descriptors = [o for o in draft.instruction.operands if o.kind is OperandKind.MATRIX_DESCRIPTOR]
    first = descriptors[0]
    both = draft.instruction.operands[1].kind is OperandKind.MATRIX_DESCRIPTOR
    draft.set(a=draft.layout.uniform_register(first.uniform), x0=4 if both else 2)
    result = draft.instruction.operands[0]
    shape = widths.matrix_shape(draft.instruction)
    if shape is not None:
        register_result(draft, result, shape.m * shape.n * shape.accumulator_bits // (widths.WARPGROUP_LANES * 32))
    return draft.verb(codes.ASYNC, codes.MATRIX_MULTIPLY_ASYNC)


def register_pool(draft: Draft) -> Draft:
    """USETMAXREG: the request is granted."""
    operands = draft.instruction.operands
    return draft.results(tuple(o for o in operands if is_predicate(o))).verb(codes.ASYNC, codes.REGISTER_POOL)


MEMORY: dict[str, Lowering] = {
    "LDG": load(codes.GLOBAL_READ),
    "LD": load(codes.GENERIC_READ),
    "LDS": load(codes.SHARED_READ),
    "LDL": load(codes.LOCAL_READ),
    "STG": store(codes.GLOBAL_WRITE),
    "ST": store(codes.GENERIC_WRITE),
    "STS": store(codes.SHARED_WRITE),
    "STL": store(codes.LOCAL_WRITE),
    "LDSM": matrix_load,
    "STSM": matrix_store,
    **dict.fromkeys(("ATOMG", "ATOM", "RED", "REDG"), global_atomic),
    "ATOMS": shared_atomic,
    "LDGSTS": async_copy,
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), constant_load),
    "UTMALDG": tensor_copy(codes.TENSOR_LOAD),
    "UTMASTG": tensor_copy(codes.TENSOR_STORE),
    "UTMAREDG": tensor_copy(codes.TENSOR_STORE),
    "UTMAPF": tensor_copy(codes.TENSOR_PREFETCH),
    "UBLKCP": bulk_copy,
    "SYNCS": mbarrier,
    **dict.fromkeys(("HGMMA", "QGMMA", "IGMMA", "BGMMA"), matrix_multiply_async),
    "USETMAXREG": register_pool,
}
"""Base opcode -> lowering of an access."""
