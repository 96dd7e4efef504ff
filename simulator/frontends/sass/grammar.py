"""The operand grammar: one printed operand of the disassembler -> one typed ``Operand``.

The printed form is the specification (nvdisasm, "Instruction Set Reference" of the CUDA Binary Utilities); an operand
that matches no rule is an ``UnknownOperand``, which decode turns into a sentence with the instruction's address.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace

from simulator.frontends.sass.operands import TRUE, ZERO, Operand, OperandKind


class UnknownOperand(ValueError):
    """The text of an operand that no rule of the grammar matches."""


_REGISTER = re.compile(r"(UR|R|UP|P)(\d+|Z|T)((?:\.\w+)*)")
_HEX = re.compile(r"0x[0-9a-f]+")
_DECIMAL = re.compile(r"(?:\d+\.?\d*(?:e[-+]?\d+)?|INF|[QS]?NAN)")
_CONSTANT = re.compile(r"cx?\[(0x[0-9a-f]+|UR\d+|URZ)\]\[([^\]]*)\]((?:\.\w+)*)")
_MEMORY = re.compile(r"(?:desc\[(UR\d+|URZ)\])?\[([^\]]*)\]((?:\.\w+)*)")
_ADDRESS_PAIR = re.compile(r"^(\[[^\]]*\])((?:desc\[[^\]]*\])?\[.*)$")
_DESCRIPTOR = re.compile(r"(gdesc|desc|tmem|idesc)\[([^\]]*)\]((?:\.\w+)*)")
_TERM = re.compile(r"([-+]*)(0x[0-9a-f]+|U?R(?:\d+|Z)(?:\.\w+)*)")
_SPECIAL = re.compile(r"SRZ|SR_\w+(?:\.\w+)*|SR\d+")
_SCOREBOARD = re.compile(r"SB(\d)")
_NUMBERED = re.compile(r"(?:B|gsb)(\d+)")
_NAME = re.compile(r"[A-Za-z_$][\w.$]*")
_KINDS = {
    "R": OperandKind.REGISTER,
    "UR": OperandKind.UNIFORM,
    "P": OperandKind.PREDICATE,
    "UP": OperandKind.UNIFORM_PREDICATE,
}


def split_operands(text: str) -> list[str]:
    """Split at the commas outside brackets, and between the two addresses of an LDGSTS, which sm_80 prints as
    ``[R7][R2.64]``."""
    return [part for operand in _split_commas(text) for part in _ADDRESS_PAIR.sub(r"\1,\2", operand).split(",")]


def _split_commas(text: str) -> list[str]:
    parts: list[str] = []
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def parse_guard(text: str) -> Operand:
    """"@!P0" -> predicate operand; "" -> PT."""
    return parse_operand(text.removeprefix("@") or "PT")


def parse_operand(text: str, double: bool = False) -> Operand:
    """Type one operand. ``double``: a floating-point immediate is a binary64 (DFMA), else a binary32."""
    plain = text.replace(".reuse", "").strip()
    body, negate, invert, absolute = _strip_signs(plain)
    operand = _parse_body(body, double)
    if operand is None:
        raise UnknownOperand(text)
    if operand.kind is OperandKind.IMMEDIATE and negate:
        operand, negate = replace(operand, value=-operand.value), False
    if operand.kind is OperandKind.FLOAT_IMMEDIATE and negate:
        operand, negate = replace(operand, value=operand.value ^ (1 << (63 if double else 31))), False
    return replace(operand, text=plain, negate=negate, invert=invert, absolute=absolute)


def _strip_signs(text: str) -> tuple[str, bool, bool, bool]:
    """Peel the -, +, ~, ! and |x| marks: (body, negate, invert, absolute)."""
    negate = text.startswith("-")
    invert = text.startswith(("~", "!"))
    body = text[1:] if negate or invert or text.startswith("+") else text
    if body.startswith("|") and body.count("|") == 2:
        inner, _, rest = body[1:].partition("|")
        return inner + rest, negate, invert, True
    return body, negate, invert, False


def _parse_body(body: str, double: bool) -> Operand | None:
    if found := _REGISTER.fullmatch(body):
        return _register(found)
    if _HEX.fullmatch(body):
        return Operand(OperandKind.IMMEDIATE, body, value=int(body, 16))
    if _DECIMAL.fullmatch(body):
        return Operand(OperandKind.FLOAT_IMMEDIATE, body, value=float_bits(body, double))
    if found := _CONSTANT.fullmatch(body):
        return _constant(found)
    if found := _MEMORY.fullmatch(body):
        return _memory(found)
    if found := _DESCRIPTOR.fullmatch(body):
        return _descriptor(found)
    return _parse_name(body)


def _parse_name(body: str) -> Operand | None:
    if _SPECIAL.fullmatch(body):
        return Operand(OperandKind.SPECIAL, body)
    if found := _SCOREBOARD.fullmatch(body):
        return Operand(OperandKind.SCOREBOARD, body, index=int(found[1]))
    if found := _NUMBERED.fullmatch(body):
        return Operand(OperandKind.OTHER, body, index=int(found[1]))
    return Operand(OperandKind.OTHER, body) if _NAME.fullmatch(body) else None


def float_bits(text: str, double: bool) -> int:
    """Bits of a printed floating-point number, as binary64 if ``double`` else binary32."""
    number = float(text.replace("QNAN", "nan").replace("SNAN", "nan"))
    if double:
        return int(struct.unpack("<Q", struct.pack("<d", number))[0])
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def _number(text: str) -> int:
    return ZERO if text == "Z" else TRUE if text == "T" else int(text)


def _register(found: re.Match[str]) -> Operand:
    suffixes = found[3].split(".")[1:]
    scale = next((int(suffix[1:]) for suffix in suffixes if re.fullmatch(r"X\d+", suffix)), 1)
    part = ".".join(s for s in suffixes if s != "64" and not re.fullmatch(r"X\d+", s))
    return Operand(_KINDS[found[1]], found[0], index=_number(found[2]), scale=scale, part=part, is_64="64" in suffixes)


def _constant(found: re.Match[str]) -> Operand | None:
    """c[bank][terms]; a bank in a uniform register (cx[UR4][0x10]) has bank -1 and that register as ``descriptor``."""
    address = _sum(found[2])
    if address is None:
        return None
    bindless = found[1].startswith("UR")
    bank = -1 if bindless else int(found[1], 16)
    descriptor = _number(found[1][2:]) if bindless else -1
    return replace(address, kind=OperandKind.CONSTANT, bank=bank, descriptor=descriptor, part=found[3][1:])


def _memory(found: re.Match[str]) -> Operand | None:
    address = _sum(found[2])
    if address is None:
        return None
    descriptor = _number(found[1][2:]) if found[1] else -1
    return replace(address, kind=OperandKind.MEMORY, descriptor=descriptor, part=found[3][1:])


def _descriptor(found: re.Match[str]) -> Operand | None:
    """gdesc[UR8] -> MATRIX_DESCRIPTOR; tmem[..], idesc[..] and a lone desc[..] -> OTHER with the address fields."""
    address = _sum(found[2])
    if address is None:
        return None
    kind = OperandKind.MATRIX_DESCRIPTOR if found[1] == "gdesc" else OperandKind.OTHER
    return replace(address, kind=kind, index=address.uniform, part=found[3][1:])


def _sum(text: str) -> Operand | None:
    """Address expression: at most one register, one uniform register and constants."""
    fields: dict[str, int | bool] = {"value": 0}
    at = 0
    for term in _TERM.finditer(text):
        if term.start() != at:
            return None
        at = term.end()
        if term[2].startswith("0x"):
            sign = -1 if term[1].count("-") % 2 else 1
            fields["value"] += sign * int(term[2], 16)
        elif "-" in term[1] or not _add_register(fields, term[2]):
            return None
    if at != len(text) or not text:
        return None
    return Operand(OperandKind.OTHER, text, **fields)  # type: ignore[arg-type]


def _add_register(fields: dict[str, int | bool], text: str) -> bool:
    found = _REGISTER.fullmatch(text)
    if found is None:
        return False
    operand = _register(found)
    name = "uniform" if operand.kind is OperandKind.UNIFORM else "register"
    if name in fields or operand.part not in ("", "U32", "S32"):
        return False
    fields[name] = operand.index
    fields[f"{name}_is_64"] = operand.is_64
    if operand.scale != 1:
        fields["scale"] = operand.scale
    return True
