"""Runs ``nvdisasm -json`` on a cubin and keeps the result in a per-user cache.

The cache key is the sha256 of the cubin and the version of the tool; files appear by atomic rename, so that several
processes may share the folder. Set KERNELCAST_CACHE to move it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from simulator.errors import UserError

TOOL = "nvdisasm"
CACHE_VARIABLE = "KERNELCAST_CACHE"
INSTALL = "pip install kernelcast[sass]"


def cache_folder() -> Path:
    """The user's cache folder: $KERNELCAST_CACHE, else kernelcast in the XDG cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelcast"


def find_tool() -> Path:
    """Path of nvdisasm: the installed package, else PATH, else the one that Triton bundles. UserError if absent."""
    candidates = [root / "bin" / TOOL for root in _package_folders("nvidia") for root in sorted(root.glob("cu*"))]
    if found := shutil.which(TOOL):
        candidates.append(Path(found))
    candidates += [root / "backends" / "nvidia" / "bin" / TOOL for root in _package_folders("triton")]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    raise UserError(f"{TOOL} is needed to read a cubin and was not found; install it with: {INSTALL}")


def _package_folders(name: str) -> list[Path]:
    spec = importlib.util.find_spec(name)
    return [Path(folder) for folder in spec.submodule_search_locations or []] if spec else []


@lru_cache(maxsize=4)
def tool_version(tool: Path) -> str:
    """Version such as "13.5.37" of an nvdisasm executable."""
    output = _run([str(tool), "--version"], str(tool))
    found = re.search(r"V(\d+(?:\.\d+)+)", output)
    return found.group(1) if found else "unknown"


@lru_cache(maxsize=2)
def disassemble(content: bytes, digest: str, source: str) -> list[dict[str, Any]]:
    """Functions of a cubin as nvdisasm's JSON lists them: ``function-name``, ``start``, ``length`` (bytes) and
    ``sass-instructions``. ``digest``: sha256 hex of ``content``; ``source`` names the cubin in errors."""
    tool = find_tool()
    cached = cache_folder() / "sass" / f"{digest}-{tool_version(tool)}.json"
    functions = _functions(_read(cached))
    if functions is None:
        text = _disassemble(tool, content, source)
        functions = _functions(text)
        if functions is None:
            raise UserError(f"{source}: {TOOL} gave no readable JSON; it needs version 12.9 or newer")
        _write(cached, text)
    return functions


def _disassemble(tool: Path, content: bytes, source: str) -> str:
    with tempfile.TemporaryDirectory(prefix="kernelcast-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(content)
        return _run([str(tool), "-json", str(path)], source)


def _run(command: list[str], subject: str) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run ({error.strerror}); install it with: {INSTALL}") from None
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"{subject}: {TOOL} failed: {reason}")
    return result.stdout


def _functions(text: str) -> list[dict[str, Any]] | None:
    """The function list of nvdisasm's document; None when the text is not such a document."""
    try:
        document = json.loads(text)
        functions: list[dict[str, Any]] = document[1]
    except (ValueError, IndexError, KeyError, TypeError):
        return None
    return functions


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _write(path: Path, text: str) -> None:
    """Write atomically; a cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        return
