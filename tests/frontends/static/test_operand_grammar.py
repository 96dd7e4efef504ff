"""Does every printed operand become the right typed operand?"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.frontends.sass.grammar import UnknownOperand, parse_guard, parse_operand, split_operands
from simulator.frontends.sass.operands import TRUE, ZERO, OperandKind

K = OperandKind


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("R12", K.REGISTER, {"index": 12}),
        ("RZ", K.REGISTER, {"index": ZERO}),
        ("-R5.reuse", K.REGISTER, {"index": 5, "negate": True}),
        ("~R9", K.REGISTER, {"index": 9, "invert": True}),
        ("-|R9|.reuse", K.REGISTER, {"index": 9, "negate": True, "absolute": True}),
        ("R4.H1_H1", K.REGISTER, {"index": 4, "part": "H1_H1"}),
        ("R4.64", K.REGISTER, {"index": 4, "is_64": True}),
        ("UR62", K.UNIFORM, {"index": 62}),
        ("URZ", K.UNIFORM, {"index": ZERO}),
        ("!P3", K.PREDICATE, {"index": 3, "invert": True}),
        ("PT", K.PREDICATE, {"index": TRUE}),
        ("!UPT", K.UNIFORM_PREDICATE, {"index": TRUE, "invert": True}),
        ("0x1f", K.IMMEDIATE, {"value": 31}),
        ("-0x80", K.IMMEDIATE, {"value": -128}),
        ("1.5", K.FLOAT_IMMEDIATE, {"value": 0x3FC00000}),
        ("-126", K.FLOAT_IMMEDIATE, {"value": 0xC2FC0000}),
        ("-INF ", K.FLOAT_IMMEDIATE, {"value": 0xFF800000}),
        ("+INF", K.FLOAT_IMMEDIATE, {"value": 0x7F800000}),
        ("c[0x0][0x210]", K.CONSTANT, {"bank": 0, "value": 0x210}),
        ("-c[0x0][0x114]", K.CONSTANT, {"bank": 0, "value": 0x114, "negate": True}),
        ("c[0x2][R5+0xc]", K.CONSTANT, {"bank": 2, "register": 5, "value": 12}),
        ("c[0x0][UR4+0x2b0]", K.CONSTANT, {"bank": 0, "uniform": 4, "value": 0x2B0}),
        ("cx[UR4][0x10]", K.CONSTANT, {"bank": -1, "descriptor": 4, "value": 16}),
        ("SR_TID.X", K.SPECIAL, {}),
        ("SRZ", K.SPECIAL, {}),
        ("[R2.64]", K.MEMORY, {"register": 2, "register_is_64": True}),
        ("[R7.X4+0x10]", K.MEMORY, {"register": 7, "scale": 4, "value": 16}),
        ("[R20+UR12+-0x1000]", K.MEMORY, {"register": 20, "uniform": 12, "value": -4096}),
        ("[R2.U32+UR4.64]", K.MEMORY, {"register": 2, "uniform": 4, "uniform_is_64": True}),
        ("[UR8]", K.MEMORY, {"uniform": 8, "register": -1}),
        ("[RZ]", K.MEMORY, {"register": ZERO}),
        ("desc[UR16][R10.64+0x80]", K.MEMORY, {"descriptor": 16, "register": 10, "register_is_64": True, "value": 128}),
        ("gdesc[UR8]", K.MATRIX_DESCRIPTOR, {"index": 8, "uniform": 8}),
        ("gdesc[UR4].tnspB", K.MATRIX_DESCRIPTOR, {"index": 4, "part": "tnspB"}),
        ("tmem[UR5+0x10]", K.OTHER, {"uniform": 5, "value": 16}),
        ("SB0", K.SCOREBOARD, {"index": 0}),
        ("gsb0", K.OTHER, {"index": 0}),
        ("B2", K.OTHER, {"index": 2}),
    ],
)
def test_forms(text: str, kind: OperandKind, fields: dict[str, object]) -> None:
    operand = parse_operand(text)
    assert operand.kind is kind
    assert {name: getattr(operand, name) for name in fields} == fields


def test_a_double_opcode_has_64_bit_immediates() -> None:
    assert parse_operand("-1.5", double=True).value == struct.unpack("<Q", struct.pack("<d", -1.5))[0]


def test_guards() -> None:
    assert (parse_guard("").index, parse_guard("").invert) == (TRUE, False)
    assert (parse_guard("@!UP3").kind, parse_guard("@!UP3").invert) == (K.UNIFORM_PREDICATE, True)


@pytest.mark.parametrize("text", ["[R2-R3]", "[R2+R3]", "[]", "{R2}", "c[0x0]", "[R2+foo]", "|R2", "0x", "1.2.3"])
def test_what_the_grammar_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(UnknownOperand):
        parse_operand(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("P0,[R5+URZ+0x20],R4", ["P0", "[R5+URZ+0x20]", "R4"]),
        ("[R7][R2.64],P0", ["[R7]", "[R2.64]", "P0"]),
        ("[R7],desc[UR6][R2.64]", ["[R7]", "desc[UR6][R2.64]"]),
        ("R1,c[0x0][0x28]", ["R1", "c[0x0][0x28]"]),
        ("", []),
    ],
)
def test_operand_lists(text: str, parts: list[str]) -> None:
    assert split_operands(text) == parts


@given(st.integers(0, 254), st.integers(0, 62), st.integers(-(2**23), 2**23))
def test_any_address_sum_is_read_back(register: int, uniform: int, offset: int) -> None:
    sign = "-" if offset < 0 else ""
    operand = parse_operand(f"desc[UR4][R{register}.64+UR{uniform}+{sign}{abs(offset):#x}]")
    assert (operand.register, operand.uniform, operand.value) == (register, uniform, offset)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_any_float_immediate_has_its_binary32_bits(number: float) -> None:
    assert parse_operand(repr(number)).value == struct.unpack("<I", struct.pack("<f", number))[0]
