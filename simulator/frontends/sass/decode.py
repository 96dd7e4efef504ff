"""Cubin -> ``SassKernel``: machine words from the ELF file, mnemonics and operands from the disassembler.

The control word is the same on every architecture since sm_70 (bits 105..125 of the 128-bit instruction; Jia et al.,
"Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", and CuAssembler's CuControlCode).
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from simulator.errors import Unsupported, UserError
from simulator.frontends.sass.arch import architecture
from simulator.frontends.sass.disassemble import disassemble
from simulator.frontends.sass.elf import Cubin, KernelSection, read_cubin
from simulator.frontends.sass.grammar import UnknownOperand, parse_guard, parse_operand, split_operands
from simulator.frontends.sass.operands import Control, Instruction, Operand, OperandKind, SassKernel

INSTRUCTION_BYTES = 16
PREDICATE_FILE = "PR"
DOUBLE = frozenset({"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"})
LABEL_LAST = frozenset({"BRA", "BSSY", "CALL", "JMP", "RET", "WARPSYNC", "SSY"})


def list_kernels(source: str | Path | bytes) -> list[str]:
    """Names of the kernels of a cubin (path or bytes), in file order. UserError if it is not a cubin."""
    return list(read_cubin(source).kernels)


def load_kernel(source: str | Path | bytes, kernel_name: str | None = None) -> SassKernel:
    """Decode one kernel of a cubin (path or bytes); ``kernel_name`` may be left out when there is only one.
    UserError for a file that is not a cubin, a missing kernel (names listed) or an operand outside the grammar."""
    cubin = read_cubin(source)
    section = cubin.kernel(kernel_name)
    reserved = architecture(cubin.arch).reserved_smem_bytes
    function = _function(cubin, section)
    return SassKernel(
        name=section.name,
        arch=cubin.arch,
        instructions=_instructions(function, section, cubin.source),
        parameters=section.parameters,
        parameter_base=section.parameter_base,
        registers_per_thread=section.registers_per_thread,
        static_smem_bytes=max(0, section.shared_section_bytes - reserved),
        local_bytes_per_thread=section.local_bytes_per_thread,
        required_block=section.required_block,
        constants=section.constants,
        digest=cubin.digest,
    )


def _function(cubin: Cubin, section: KernelSection) -> dict[str, Any]:
    for function in disassemble(cubin.content, cubin.digest, cubin.source):
        if function["function-name"] == section.name:
            return function
    raise UserError(f"{cubin.source}: the disassembler does not list kernel '{section.name}'")


def _instructions(function: dict[str, Any], section: KernelSection, source: str) -> tuple[Instruction, ...]:
    """All instructions of a function; instruction k lies at start + 16 k of the kernel's code."""
    rows = function["sass-instructions"]
    first = function["start"]
    if first + len(rows) * INSTRUCTION_BYTES > len(section.code):
        raise UserError(f"{source}: kernel '{section.name}' has {len(section.code)} bytes of code for {len(rows)} "
                        f"instructions of {INSTRUCTION_BYTES} bytes")
    decoded = []
    for row_index, row in enumerate(rows):
        address = first + row_index * INSTRUCTION_BYTES
        low, high = struct.unpack_from("<QQ", section.code, address)
        try:
            decoded.append(_instruction(row, address, low, high, section.symbols))
        except UnknownOperand as unknown:
            raise UserError(f"{source}: kernel '{section.name}', address {address:#x}: operand '{unknown}' of "
                            f"{row['opcode']} is not in the operand grammar") from None
        except Unsupported as error:
            raise Unsupported(f"{source}: kernel '{section.name}', address {address:#x}: {error}") from None
    return tuple(decoded)


def _instruction(row: dict[str, Any], address: int, low: int, high: int, symbols: dict[str, int]) -> Instruction:
    opcode: str = row["opcode"]
    base, *modifiers = opcode.split(".")
    predicate: str = row.get("predicate", "").strip()
    texts = split_operands(row.get("operands", ""))
    if predicate and not predicate.startswith("@"):  # P2R: the predicate file is listed in the guard's place
        texts.insert(1, predicate)
        predicate = ""
    operands = [_operand(text, base) for text in texts]
    if base in LABEL_LAST and operands:
        operands[-1] = _label(operands[-1], base, symbols)
    guard = f"{predicate} " if predicate else ""
    return Instruction(
        address=address,
        guard=parse_guard(predicate),
        opcode=opcode,
        base=base,
        modifiers=tuple(modifiers),
        operands=tuple(operands),
        control=decode_control(high),
        low=low,
        high=high,
        text=f"{guard}{opcode} {', '.join(texts)}".rstrip(),
    )


@lru_cache(maxsize=65536)
def _operand(text: str, base: str) -> Operand:
    if text == PREDICATE_FILE:
        return Operand(OperandKind.OTHER, text)
    return parse_operand(text, double=base in DOUBLE)


def _label(operand: Operand, base: str, symbols: dict[str, int]) -> Operand:
    """A branch target as a byte offset in the kernel: printed for BRA and BSSY, a symbol of the kernel's section for
    CALL; the symbol that RET names is the kernel itself, so its label is the start of the code."""
    if operand.kind is OperandKind.IMMEDIATE:
        return replace(operand, kind=OperandKind.LABEL)
    if operand.kind is not OperandKind.OTHER:
        return operand
    if operand.text not in symbols:
        raise Unsupported(f"{base} leaves the kernel for '{operand.text}'; only functions inside the kernel are read")
    return replace(operand, kind=OperandKind.LABEL, value=symbols[operand.text])


def decode_control(high: int) -> Control:
    """Control word from the high machine word: stall 4 bits, yield 1 (0 = asks the scheduler to switch), write and
    read scoreboard 3 each, wait mask 6, operand reuse 4. ``yield_hint`` is stored as 1 = asked to switch."""
    word = high >> 41
    return Control(
        stall=word & 15,
        yield_hint=1 - (word >> 4 & 1),
        write=word >> 5 & 7,
        read=word >> 8 & 7,
        wait=word >> 11 & 63,
        reuse=word >> 17 & 15,
    )
