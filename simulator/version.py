"""Which simulator made a result: the package's version and a digest of the sources that decide it."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULT_ROOMS = ("device", "hw", "isa", "lower", "memory", "projection", "sm", "study/work.py")
"""The sources that decide what a projection says."""


@cache
def source_digest(rooms: tuple[str, ...]) -> str:
    """SHA-256 (hex) of the source of ``rooms`` (folders or files of the package)."""
    package = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for room in rooms:
        for source in sorted((package / room).rglob("*.py")) or [package / room]:
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


def version_of(rooms: tuple[str, ...]) -> str:
    """Package version and a digest of the sources of ``rooms``: ``0.1.0+1f2e3d4c5b6a``."""
    try:
        number = version("kernelcast")
    except PackageNotFoundError:
        number = "0"
    return f"{number}+{source_digest(rooms)[:12]}"


def simulator_version() -> str:
    """Version of what a projection says."""
    return version_of(RESULT_ROOMS)
