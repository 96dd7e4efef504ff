"""Which simulator made a result: the package's version and a digest of the sources that decide a projection."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULT_ROOMS = ("device", "hw", "isa", "lower", "memory", "projection", "sm", "study/work.py")
"""The sources that decide what a projection says."""


@cache
def simulator_version() -> str:
    """Package version and a digest of the sources that decide a projection: ``0.1.0+1f2e3d4c5b6a``."""
    package = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for room in RESULT_ROOMS:
        for source in sorted((package / room).rglob("*.py")) or [package / room]:
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(source.read_bytes())
    try:
        number = version("kernelcast")
    except PackageNotFoundError:
        number = "0"
    return f"{number}+{digest.hexdigest()[:12]}"
