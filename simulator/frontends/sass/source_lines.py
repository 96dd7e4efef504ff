"""Which source line each instruction of a cubin comes from, where it was compiled with line information."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from simulator.frontends.sass.disassemble import find_tool

_SECTION = re.compile(r"^\.text\.(\S+):")
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_ADDRESS = re.compile(r"^\s*/\*([0-9a-fA-F]+)\*/\s+\S")


def source_lines(cubin: Path, kernel: str) -> dict[int, tuple[str, int]]:
    """(file, line) by byte address in the kernel; empty without line information.

    An instruction without an entry of its own belongs to the line of the one before it.
    """
    with tempfile.TemporaryDirectory(prefix="kernelcast-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin.read_bytes())
        result = subprocess.run([str(find_tool()), "-g", "-c", str(path)], capture_output=True, text=True, check=False)
    return parse_lines(result.stdout, kernel) if result.returncode == 0 else {}


def parse_lines(listing: str, kernel: str) -> dict[int, tuple[str, int]]:
    """The same from a disassembly with line comments."""
    found: dict[int, tuple[str, int]] = {}
    section = ""
    current: tuple[str, int] | None = None
    for text in listing.splitlines():
        if match := _SECTION.match(text):
            section, current = match.group(1), None
        elif section != kernel:
            continue
        elif match := _LINE.match(text):
            current = match.group(1), int(match.group(2))
        elif current is not None and (match := _ADDRESS.match(text)):
            found[int(match.group(1), 16)] = current
    return found
