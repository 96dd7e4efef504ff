"""Value rows of a kernel: which row holds a register, a special register, a constant; drafts of lowered rows."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.defuse import DefUse, RegisterFile
from simulator.frontends.sass.operands import TRUE, ZERO, Instruction, Operand, OperandKind
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.semantics.records import MAX_VALUE_ROWS, ROW
from simulator.frontends.sass.warp_state import SCRATCH_ROWS, Layout

WORD_BYTES = 4


class NotInterpreted(Exception):
    """An instruction (or a form of it) that has no functional semantics here: its results are unknown."""


class RowLayout:
    """Assigns value rows. ``constant_bank``: bank number -> bytes; special registers get rows by first use."""

    def __init__(self, instructions: tuple[Instruction, ...], uses: list[DefUse], banks: dict[int, bytes]):
        registers, uniforms = 1, 1
        for use in uses:
            for register in (*use.written, *use.read):
                if register.file is RegisterFile.GENERAL:
                    registers = max(registers, register.number + 1)
                elif register.file is RegisterFile.UNIFORM:
                    uniforms = max(uniforms, register.number + 1)
        names = {o.text: None for i in instructions for o in i.operands if o.kind is OperandKind.SPECIAL}
        self.special_names = [name for name in names if name != "SRZ"]
        self.uniform = registers
        self.zero = registers + uniforms
        self.special = self.zero + 1
        self.constant = self.special + len(self.special_names)
        self.banks = banks
        self._constants: dict[int, int] = {}

    def constants(self) -> np.ndarray:
        """Words of the constant rows, uint32."""
        return np.array(list(self._constants), np.uint32)

    def layout(self) -> Layout:
        """Final layout, once all instructions are lowered."""
        scratch = self.constant + len(self._constants)
        return Layout(self.uniform, self.zero, self.special, self.constant, scratch, scratch + SCRATCH_ROWS)

    def word(self, value: int) -> int:
        """Row of a 32-bit constant."""
        value &= codes.WORD
        if value == 0:
            return self.zero
        if value not in self._constants and self.constant + len(self._constants) + SCRATCH_ROWS >= MAX_VALUE_ROWS:
            raise NotInterpreted(f"more than {MAX_VALUE_ROWS} registers and constants")
        return self.constant + self._constants.setdefault(value, len(self._constants))

    def register(self, number: int) -> int:
        """Row of a general register; -1 (absent) and RZ give the row of zeros."""
        return self.zero if number in (-1, ZERO) else number

    def uniform_register(self, number: int) -> int:
        """Row of a uniform register; -1 (absent) and URZ give the row of zeros."""
        return self.zero if number in (-1, ZERO) else self.uniform + number

    def constant_word(self, bank: int, offset: int) -> int:
        """Row of a constant-bank word."""
        data = self.banks.get(bank, b"")[offset : offset + WORD_BYTES]
        return self.word(int.from_bytes(data, "little"))

    def row(self, operand: Operand, high: bool = False) -> int:
        """Row of a source operand, or of the high word of a 64-bit one. NotInterpreted for other operand kinds."""
        step = int(high)
        if operand.kind is OperandKind.REGISTER:
            return self.register(operand.index if operand.index == ZERO else operand.index + step)
        if operand.kind is OperandKind.UNIFORM:
            return self.uniform_register(operand.index if operand.index == ZERO else operand.index + step)
        if operand.kind in (OperandKind.IMMEDIATE, OperandKind.FLOAT_IMMEDIATE):
            return self.word(operand.value >> (32 * step))
        if operand.kind is OperandKind.CONSTANT and operand.bank >= 0 and operand.register < 0 and operand.uniform < 0:
            return self.constant_word(operand.bank, operand.value + WORD_BYTES * step)
        if operand.kind is OperandKind.SPECIAL:
            named = operand.text in self.special_names and not high
            return self.special + self.special_names.index(operand.text) if named else self.zero
        raise NotInterpreted(f"operand {operand.text}")


class Draft:
    """One row under construction, with absent sources reading zero and absent predicates true."""

    def __init__(self, layout: RowLayout, instruction: Instruction):
        self.layout = layout
        self.instruction = instruction
        self.fields: dict[str, int] = dict.fromkeys(ROW.names or (), 0)
        self.fields |= dict.fromkeys(("a", "a_hi", "b", "b_hi", "c", "c_hi"), layout.zero)
        self.fields |= dict.fromkeys(("p", "q", "s"), codes.TRUE_PREDICATE)
        self.fields |= dict.fromkeys(("dest_p", "dest_q"), codes.NO_ROW)
        index, invert = predicate(instruction.guard)
        self.set(family=codes.OPAQUE, action=codes.MARK_UNKNOWN, guard=index, guard_invert=invert)

    def set(self, **values: int) -> Draft:
        """Set fields of the row."""
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise KeyError(f"rows have no field {unknown}")
        self.fields.update(values)
        return self

    def packed(self) -> tuple[int, ...]:
        """Field values in the order of the row record."""
        return tuple(self.fields.values())

    def verb(self, family: int, verb: int) -> Draft:
        """Name the verb; the row is executed."""
        return self.set(family=family, verb=verb, action=codes.EXECUTE)

    def source(self, slot: str, operand: Operand, floating: bool = False, wide: bool = False) -> Draft:
        """Operand into slot "a", "b" or "c" with its modifiers; ``wide``: a 64-bit operand."""
        modifier = modifiers(operand, floating)
        self.set(**{slot: self.layout.row(operand), f"{slot}_mod": modifier})
        return self.set(**{f"{slot}_hi": self.layout.row(operand, high=True)}) if wide else self

    def predicate_source(self, slot: str, operand: Operand) -> Draft:
        """Predicate operand into slot "p", "q" or "s"."""
        index, invert = predicate(operand)
        return self.set(**{slot: index, f"{slot}_invert": invert})

    def no_predicate(self, *slots: str) -> Draft:
        """Slots that read false (no carry in)."""
        for slot in slots:
            self.set(**{slot: codes.TRUE_PREDICATE, f"{slot}_invert": codes.FULL})
        return self

    def results(self, operands: tuple[Operand, ...], words: int = 1) -> Draft:
        """Result operands in printed order: one register (of ``words`` words) and up to two predicates."""
        predicates = []
        for operand in operands:
            if operand.kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE):
                predicates.append(operand)
            elif operand.index != ZERO:
                self.set(dest=self.layout.row(operand), n_dest=words)
            if operand.kind in (OperandKind.UNIFORM, OperandKind.UNIFORM_PREDICATE) and operand.index != ZERO:
                self.set(is_uniform=1)
        for slot, operand in zip(("dest_p", "dest_q"), predicates, strict=False):
            index, _ = predicate(operand)
            self.set(**{slot: codes.NO_ROW if operand.index == TRUE else index})
        return self


def predicate(operand: Operand) -> tuple[int, int]:
    """(place in the predicate file, mask that inverts it)."""
    first = codes.FIRST_UNIFORM_PREDICATE if operand.kind is OperandKind.UNIFORM_PREDICATE else 0
    if operand.kind not in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE):
        raise NotInterpreted(f"operand {operand.text}")
    return first + operand.index, codes.FULL if operand.invert else 0


def is_predicate(operand: Operand) -> bool:
    """P0, !UP1, PT."""
    return operand.kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)


def modifiers(operand: Operand, floating: bool) -> int:
    """Modifier bits of a source operand."""
    bits = 0
    if operand.negate:
        bits |= codes.FLOAT_NEGATE if floating else codes.NEGATE
    if operand.invert:
        bits |= codes.INVERT
    if operand.absolute:
        if not floating:
            raise NotInterpreted(f"operand {operand.text}")
        bits |= codes.FLOAT_ABSOLUTE
    if operand.part in ("H0", "H0_H0"):
        bits |= codes.LOW_HALF
    elif operand.part in ("H1", "H1_H1"):
        bits |= codes.HIGH_HALF
    elif operand.part or operand.scale != 1:
        raise NotInterpreted(f"operand {operand.text}")
    return bits
