"""Lowering of floating-point arithmetic, comparison and conversion to rows of the interpreter."""

from __future__ import annotations

import struct

import numpy as np

from simulator.frontends.sass.lower_operands import (
    COMBINATIONS,
    FLOAT_COMPARISONS,
    INTEGER_TYPES,
    INTEGRAL_ROUNDINGS,
    ROUNDINGS,
    TRANSCENDENTALS,
    Lowering,
    has,
    pick,
    split,
)
from simulator.frontends.sass.operands import ZERO, Operand, OperandKind
from simulator.frontends.sass.row_layout import Draft, NotInterpreted
from simulator.frontends.sass.semantics import codes


def float_arithmetic(verb: int) -> Lowering:
    """FADD, FMUL, FFMA."""

    def lower(draft: Draft) -> Draft:
        results, sources, _ = split(draft)
        for slot, operand in zip("abc", sources, strict=False):
            draft.source(slot, operand, floating=True)
        draft.set(x0=pick(draft, ROUNDINGS, codes.ROUND_NEAREST)).results(results)
        return draft.verb(codes.FLOAT, verb)

    return lower


def float_minimum_maximum(draft: Draft) -> Draft:
    """FMNMX."""
    results, sources, predicates = split(draft)
    draft.source("a", sources[0], True).source("b", sources[1], True).results(results)
    return draft.predicate_source("p", predicates[-1]).verb(codes.FLOAT, codes.FLOAT_MINIMUM_MAXIMUM)


def float_compare(draft: Draft) -> Draft:
    """FSETP; a U suffix also holds for operands that are not numbers."""
    results, sources, predicates = split(draft)
    name = draft.instruction.modifiers[0]
    unordered = name not in FLOAT_COMPARISONS
    comparison = FLOAT_COMPARISONS.get(name.removesuffix("U") if unordered else name)
    if comparison is None:
        raise NotInterpreted(draft.instruction.opcode)
    draft.source("a", sources[0], True).source("b", sources[1], True).results(results)
    draft.set(x0=comparison | (codes.UNORDERED if unordered else 0), x1=pick(draft, COMBINATIONS))
    return draft.predicate_source("p", predicates[0]).verb(codes.FLOAT, codes.FLOAT_COMPARE)


def transcendental(draft: Draft) -> Draft:
    """MUFU in binary32."""
    results, sources, _ = split(draft)
    if has(draft, "F16"):
        raise NotInterpreted(draft.instruction.opcode)
    return draft.source("a", sources[0], True).results(results).verb(codes.FLOAT, pick(draft, TRANSCENDENTALS))


def division_check(draft: Draft) -> Draft:
    """FCHK: the division is assumed not to need its slow path."""
    results, _, _ = split(draft)
    return draft.results(results).verb(codes.FLOAT, codes.DIVISION_CHECK)


def half_constant(draft: Draft) -> Draft:
    """HFMA2 R, -RZ, RZ, high, low: two binary16 constants."""
    results, sources, _ = split(draft)
    if len(sources) != 4 or any(operand.index != ZERO for operand in sources[:2]):
        raise NotInterpreted(draft.instruction.opcode)
    high, low = (_half_bits(operand) for operand in sources[2:])
    return draft.set(a=draft.layout.word(high << 16 | low)).results(results).verb(codes.INTEGER, codes.MOVE)


def _half_bits(operand: Operand) -> int:
    if operand.kind not in (OperandKind.FLOAT_IMMEDIATE, OperandKind.IMMEDIATE):
        raise NotInterpreted(f"operand {operand.text}")
    if operand.kind is OperandKind.IMMEDIATE:
        return int(np.float16(operand.value).view(np.uint16))
    (number,) = struct.unpack("<f", struct.pack("<I", operand.value))
    return int(np.float16(number).view(np.uint16))


def integer_to_float(draft: Draft) -> Draft:
    """I2F and I2FP to binary32."""
    results, sources, _ = split(draft)
    if has(draft, "F64") or has(draft, "F16") or has(draft, "BF16"):
        raise NotInterpreted(draft.instruction.opcode)
    types = [m for m in draft.instruction.modifiers if m in INTEGER_TYPES]
    bits, is_signed = INTEGER_TYPES[types[0]] if types else (32, True)
    draft.source("a", sources[0], wide=bits == 64).results(results)
    draft.set(x0=bits, x1=int(is_signed), x2=pick(draft, ROUNDINGS, codes.ROUND_NEAREST))
    return draft.verb(codes.CONVERSION, codes.INTEGER_PAIR_TO_FLOAT if bits == 64 else codes.INTEGER_TO_FLOAT)


def float_to_integer(draft: Draft) -> Draft:
    """F2I from binary32."""
    results, sources, _ = split(draft)
    if has(draft, "F64") or has(draft, "F16") or has(draft, "BF16"):
        raise NotInterpreted(draft.instruction.opcode)
    types = [m for m in draft.instruction.modifiers if m in INTEGER_TYPES]
    bits, is_signed = INTEGER_TYPES[types[0]] if types else (32, True)
    draft.source("a", sources[0], True).results(results, 2 if bits == 64 else 1)
    draft.set(x0=bits, x1=int(is_signed), x2=pick(draft, INTEGRAL_ROUNDINGS, codes.ROUND_NEAREST))
    return draft.verb(codes.CONVERSION, codes.FLOAT_TO_INTEGER_PAIR if bits == 64 else codes.FLOAT_TO_INTEGER)


def pack_halves(draft: Draft) -> Draft:
    """F2FP.PACK_AB from binary32."""
    results, sources, _ = split(draft)
    formats = {"BF16": codes.PACK_BF16, "F16": codes.PACK_F16}
    if not has(draft, "PACK_AB") or not has(draft, "F32") or len(sources) != 2:
        raise NotInterpreted(draft.instruction.opcode)
    draft.source("a", sources[0], True).source("b", sources[1], True).set(x0=pick(draft, formats)).results(results)
    return draft.verb(codes.CONVERSION, codes.PACK_HALVES)
