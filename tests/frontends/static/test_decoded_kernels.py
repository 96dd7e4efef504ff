"""Do real kernels decode fully, and do text and machine words agree?"""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from simulator.errors import UserError
from simulator.frontends.sass import decode
from simulator.frontends.sass.decode import load_kernel
from simulator.frontends.sass.operands import Control, Instruction, OperandKind, SassKernel


def test_addresses_are_consecutive(kernels: list[SassKernel]) -> None:
    for kernel in kernels:
        assert [row.address for row in kernel.instructions] == [16 * k for k in range(len(kernel.instructions))]


def test_control_words_agree_with_the_printed_reuse_marks(kernels: list[SassKernel]) -> None:
    """The disassembler prints .reuse per operand; the control word holds one bit for each."""
    for kernel in kernels:
        for row in kernel.instructions:
            assert row.text.count(".reuse") == row.control.reuse.bit_count(), row.text


def test_float_immediates_agree_with_the_machine_words(kernels: list[SassKernel]) -> None:
    """A binary32 immediate is bits 32..63 of the low word; a binary64 immediate has only its high half there."""
    seen = 0
    for kernel in kernels:
        for row in kernel.instructions:
            floats = [operand for operand in row.operands if operand.kind is OperandKind.FLOAT_IMMEDIATE]
            if len(floats) != 1:
                continue
            bits = floats[0].value >> 32 if row.base in decode.DOUBLE else floats[0].value
            assert bits == row.low >> 32, row.text
            seen += 1
    assert seen > 100


def test_labels_are_instructions_of_the_kernel(kernels: list[SassKernel]) -> None:
    for kernel in kernels:
        addresses = {row.address for row in kernel.instructions}
        for row in kernel.instructions:
            for operand in row.operands:
                if operand.kind is OperandKind.LABEL:
                    assert operand.value in addresses, row.text


def test_calls_reach_the_symbol_that_they_name(probes: dict[str, Path]) -> None:
    for path in probes.values():
        with path.open("rb") as file:
            symbols = {s.name: s.entry.st_value for s in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
        calls = [row for row in load_kernel(path, "mixed").instructions if row.base == "CALL"]
        assert calls
        for row in calls:
            assert row.operands[-1].kind is OperandKind.LABEL
            assert row.operands[-1].value == symbols[row.operands[-1].text]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_indirect_branches_stay_in_the_kernel(probes: dict[str, Path], arch: str) -> None:
    """BRX adds its register (an entry of constant bank 2) and its immediate to the next address."""
    kernel = load_kernel(probes[arch], "mixed")
    table = struct.unpack(f"<{len(kernel.constants[2]) // 4}I", kernel.constants[2])
    addresses = {row.address for row in kernel.instructions}
    branches = [row for row in kernel.instructions if row.base == "BRX"]
    assert branches
    reached = {row.address + 16 + row.operands[1].value + entry for row in branches for entry in table}
    assert len(reached & addresses) >= len(set(table))


def test_every_kind_of_operand_occurs(kernels: list[SassKernel]) -> None:
    kinds = Counter(operand.kind for kernel in kernels for row in kernel.instructions for operand in row.operands)
    assert set(kinds) == set(OperandKind)


def _at(kernel: SassKernel, text: str) -> Instruction:
    return next(row for row in kernel.instructions if row.text.startswith(text))


def test_the_predicate_file_is_an_operand_and_not_a_guard(kernels: list[SassKernel]) -> None:
    rows = [row for kernel in kernels for row in kernel.instructions if row.base == "P2R"]
    assert rows
    assert all(row.operands[1].text == "PR" and row.guard.text == "PT" for row in rows)


def test_uniform_guards(examples: Path) -> None:
    kernel = load_kernel(examples / "gemm_tma_bf16.cubin")
    row = _at(kernel, "@UP2 UTMALDG.2D")
    assert (row.guard.kind, row.guard.index) == (OperandKind.UNIFORM_PREDICATE, 2)
    assert (row.base, row.modifiers) == ("UTMALDG", ("2D",))


def test_control_fields() -> None:
    word = 4 | 1 << 4 | 2 << 5 | 7 << 8 | 0b000101 << 11 | 0b0010 << 17
    assert decode.decode_control(word << 41) == Control(stall=4, yield_hint=0, write=2, read=7, wait=5, reuse=2)


def test_an_operand_outside_the_grammar_names_its_address(
    probes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = {"function-name": "axpy", "start": 0, "length": 32,
                "sass-instructions": [{"opcode": "NOP"}, {"opcode": "MOV", "operands": "R1,{R2}"}]}
    monkeypatch.setattr(decode, "disassemble", lambda *_: [function])
    with pytest.raises(UserError, match=r"kernel 'axpy', address 0x10: operand '\{R2\}' of MOV is not in the operand"):
        load_kernel(probes["sm_80"], "axpy")
