"""Cubin container: an ELF file with one ``.text.<kernel>`` section per kernel and ``.nv.info`` attributes.

Attribute and flag numbers follow the EIATTR tables that ``cuobjdump -elf`` prints; the layout of the two ELF ABI
generations (7 up to CUDA 12, 8 from CUDA 13) was read from cubins of both.
"""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.construct.lib.container import Container
from elftools.elf.elffile import ELFFile

from simulator.errors import UserError
from simulator.frontends.sass.operands import Parameter

ELF_MAGIC = b"\x7fELF"
MACHINE_CUDA = "EM_CUDA"
ABI_CUDA_13 = 8
FLAG_ACCELERATED = 0x800
COMPAT_ARCH_VARIANT = 0x09
ARCH_VARIANTS = {0: "", 1: "a", 2: "f"}
SYMBOL_FORM = "<IBBHQQ"
SYMBOL_OTHER_ENTRY = 0x10
SYMBOL_TYPE_FUNCTION = 2
FORMAT_SIZED = 4

ATTRIBUTE_PARAMETER_BANK = 0x0A
ATTRIBUTE_REQUIRED_BLOCK = 0x10
ATTRIBUTE_FRAME_BYTES = 0x11
ATTRIBUTE_PARAMETER = 0x17
ATTRIBUTE_REGISTERS = 0x2F


@dataclass(frozen=True)
class KernelSection:
    """One kernel as the container describes it. ``code``: machine code; ``constants``: bank -> initial bytes;
    ``parameter_base`` byte offset of the parameters in constant bank 0; ``shared_section_bytes``: size of
    .nv.shared.<kernel>, with the system's share where the architecture has one; ``symbols``: offsets of the functions
    and labels inside the code."""

    name: str
    code: bytes
    parameters: tuple[Parameter, ...]
    parameter_base: int
    registers_per_thread: int
    shared_section_bytes: int
    local_bytes_per_thread: int
    required_block: tuple[int, int, int] | None
    constants: dict[int, bytes]
    symbols: dict[str, int]


@dataclass(frozen=True)
class Cubin:
    """A parsed cubin: ``arch`` such as "sm_90a", kernels by name in file order, sha256 hex of the bytes."""

    source: str
    arch: str
    kernels: dict[str, KernelSection]
    digest: str
    content: bytes

    def kernel(self, name: str | None) -> KernelSection:
        """The kernel called ``name``, or the only one when ``name`` is None. UserError lists the names otherwise."""
        if name is None and len(self.kernels) == 1:
            return next(iter(self.kernels.values()))
        names = ", ".join(self.kernels)
        if name is None:
            raise UserError(f"{self.source} holds {len(self.kernels)} kernels, name one of: {names}")
        if name not in self.kernels:
            raise UserError(f"{self.source} has no kernel '{name}'; it has: {names}")
        return self.kernels[name]


def read_cubin(source: str | Path | bytes) -> Cubin:
    """Parse a cubin given as a path or as bytes. UserError when it is not a complete CUDA ELF file."""
    if isinstance(source, bytes):
        return parse_cubin(source, "cubin")
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give the path of a cubin file") from None
    return parse_cubin(content, str(path))


@lru_cache(maxsize=8)
def parse_cubin(content: bytes, source: str) -> Cubin:
    """Parse the bytes of a cubin; ``source`` names it in errors."""
    if not content.startswith(ELF_MAGIC):
        raise UserError(f"{source} is not a cubin: it does not start with the ELF signature")
    try:
        elf = ELFFile(io.BytesIO(content))
        if elf.header.e_machine != MACHINE_CUDA:
            raise UserError(f"{source} is an ELF file for {elf.header.e_machine}, not a CUDA cubin")
        sections = _sections(elf, content, source)
        kernels = _kernels(sections)
        arch = _architecture(elf, sections)
    except (ELFError, UnicodeDecodeError, struct.error, AssertionError, AttributeError, KeyError, TypeError) as error:
        raise UserError(f"{source} is truncated or damaged: {_short(error)}") from None
    if not kernels:
        raise UserError(f"{source} holds no kernel; compile it to a cubin, not to a relocatable object")
    return Cubin(source, arch, kernels, hashlib.sha256(content).hexdigest(), content)


@dataclass(frozen=True)
class _Section:
    index: int
    header: Container
    data: bytes


@dataclass(frozen=True)
class _Symbol:
    name: str
    is_entry: bool
    section: int
    value: int


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__


def _sections(elf: ELFFile, content: bytes, source: str) -> dict[str, _Section]:
    """All sections by name; data is empty for sections without file contents."""
    result: dict[str, _Section] = {}
    for index, section in enumerate(elf.iter_sections()):
        header = section.header
        in_file = header.sh_type not in ("SHT_NOBITS", "SHT_NULL")
        if in_file and header.sh_offset + header.sh_size > len(content):
            raise UserError(f"{source} is truncated: section {section.name} ends at byte "
                            f"{header.sh_offset + header.sh_size} but the file has {len(content)} bytes")
        data = content[header.sh_offset : header.sh_offset + header.sh_size] if in_file else b""
        result[section.name] = _Section(index, header, data)
    return result


def _architecture(elf: ELFFile, sections: dict[str, _Section]) -> str:
    """"sm_90a" from the ELF flags; the "a" or "f" variant sits in .nv.compat from ABI 8 on."""
    flags = elf.header.e_flags
    if elf.header.e_ident["EI_ABIVERSION"] < ABI_CUDA_13:
        return f"sm_{flags & 0xFF}" + ("a" if flags & FLAG_ACCELERATED else "")
    compat = sections.get(".nv.compat")
    variant = 0
    for attribute, value in _attributes(compat.data if compat else b""):
        if attribute == COMPAT_ARCH_VARIANT and isinstance(value, int):
            variant = value
    return f"sm_{flags >> 8 & 0xFF}" + ARCH_VARIANTS.get(variant, "")


def _attributes(data: bytes) -> list[tuple[int, int | bytes]]:
    """(attribute, value) records of a .nv.info section: value is an int, or bytes for sized records."""
    records: list[tuple[int, int | bytes]] = []
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == FORMAT_SIZED:
            records.append((attribute, data[at : at + value]))
            at += value
        else:
            records.append((attribute, value))
    return records


def _symbols(sections: dict[str, _Section]) -> list[_Symbol]:
    """Every symbol, in table order. (pyelftools drops the bit of ``st_other`` that marks a kernel's entry.)"""
    table, names = sections[".symtab"].data, sections[".strtab"].data
    symbols = []
    for offset, kind, other, section, value, _ in struct.iter_unpack(SYMBOL_FORM, table):
        is_entry = kind & 0xF == SYMBOL_TYPE_FUNCTION and bool(other & SYMBOL_OTHER_ENTRY)
        symbols.append(_Symbol(names[offset : names.index(b"\0", offset)].decode(), is_entry, section, value))
    return symbols


def _kernels(sections: dict[str, _Section]) -> dict[str, KernelSection]:
    symbols = _symbols(sections)
    entries = {symbol.name for symbol in symbols if symbol.is_entry}
    totals = _attributes_by_symbol(sections, [symbol.name for symbol in symbols])
    result = {}
    for section, entry in sections.items():
        name = section.removeprefix(".text.")
        if name != section and name in entries:
            inside = {symbol.name: symbol.value for symbol in symbols if symbol.section == entry.index}
            result[name] = _kernel(name, sections, totals.get(name, {}), inside)
    return result


def _attributes_by_symbol(sections: dict[str, _Section], symbols: list[str]) -> dict[str, dict[int, int]]:
    """kernel -> {attribute: value} of the file-wide .nv.info section (register counts, frame sizes)."""
    result: dict[str, dict[int, int]] = {}
    if ".nv.info" in sections:
        for attribute, value in _attributes(sections[".nv.info"].data):
            if isinstance(value, bytes) and len(value) == 8:
                index, number = struct.unpack("<II", value)
                if index < len(symbols):
                    result.setdefault(symbols[index], {})[attribute] = number
    return result


def _kernel(
    name: str, sections: dict[str, _Section], totals: dict[int, int], symbols: dict[str, int]
) -> KernelSection:
    parameters: list[Parameter] = []
    base, block = 0, None
    local = sections.get(f".nv.info.{name}")
    for attribute, value in _attributes(local.data if local else b""):
        if not isinstance(value, bytes):
            continue
        if attribute == ATTRIBUTE_PARAMETER_BANK:
            base = struct.unpack_from("<H", value, 4)[0]
        elif attribute == ATTRIBUTE_REQUIRED_BLOCK:
            block = struct.unpack("<III", value)
        elif attribute == ATTRIBUTE_PARAMETER:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            parameters.append(Parameter(ordinal, offset, word >> 18))
    shared = sections.get(f".nv.shared.{name}")
    return KernelSection(
        name=name,
        code=sections[f".text.{name}"].data,
        parameters=tuple(sorted(parameters, key=lambda parameter: parameter.ordinal)),
        parameter_base=base,
        registers_per_thread=totals.get(ATTRIBUTE_REGISTERS, 0),
        shared_section_bytes=shared.header.sh_size if shared else 0,
        local_bytes_per_thread=totals.get(ATTRIBUTE_FRAME_BYTES, 0),
        required_block=block,
        constants=_constants(name, sections),
        symbols=symbols,
    )


def _constants(name: str, sections: dict[str, _Section]) -> dict[int, bytes]:
    """Constant banks with initial contents: per kernel (.nv.constant2.k) and of the whole file (.nv.constant3)."""
    result: dict[int, bytes] = {}
    for section, entry in sections.items():
        rest = section.removeprefix(".nv.constant")
        if rest == section or not entry.data:
            continue
        bank, _, kernel = rest.partition(".")
        if bank.isdigit() and kernel in ("", name):
            result[int(bank)] = entry.data
    return result
