"""A compiled-code cache that cannot be stale.

Numba checks only the file of a cached function, not those of the functions it calls.  So compiled code is kept
in a folder named after the content of every source file of this package: an edit anywhere starts a new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

KEPT_GENERATIONS = 6
"""Folders of older sources that are kept (other checkouts and versions use them)."""


def cache_root() -> Path:
    """The user's cache folder: KERNELCAST_CACHE, else the XDG cache."""
    named = os.environ.get("KERNELCAST_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelcast"


COMPILES = (b"numba", b"simulator.compiled", b"semantics.compiled")
"""Names in the source of files whose functions are compiled."""


def source_digest() -> str:
    """Digest of the source files that compiled code is made of, and of the shared numerals."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        if any(name in text for name in COMPILES) or path.parent.name == "isa":
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(text)
    return digest.hexdigest()[:16]


def use_own_cache() -> None:
    """Point numba at this source's folder, unless the user chose one (NUMBA_CACHE_DIR)."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    generations = cache_root() / "numba"
    folder = generations / source_digest()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True)
            _drop_old(generations)
    except OSError:
        return
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    numba = sys.modules.get("numba")
    if numba is not None:
        numba.config.CACHE_DIR = str(folder)


def _drop_old(generations: Path) -> None:
    by_age = sorted((f for f in generations.iterdir() if f.is_dir()), key=lambda f: f.stat().st_mtime)
    for folder in by_age[:-KEPT_GENERATIONS]:
        shutil.rmtree(folder, ignore_errors=True)
