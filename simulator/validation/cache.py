"""What is worth keeping between runs: traces that were built, archives that were unpacked.

``KERNELCAST_CACHE`` names the folder; without it, ``kernelcast`` in the user's cache folder. Everything in it can be
deleted at any time. Entries are named by the digest of what they were made from, so none is ever stale.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from simulator.errors import UserError
from simulator.numba_cache import cache_root
from simulator.version import source_digest

BUILDER_ROOMS = ("frontends", "isa", "trace")
"""The rooms whose source decides what a trace holds."""


def cache_folder(kind: str) -> Path:
    """The folder for entries of one ``kind``, made if missing."""
    folder = cache_root() / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cache folder {folder} cannot be made ({error.strerror}); set KERNELCAST_CACHE") from error
    return folder


def builder_version() -> str:
    """Digest of the source of every room that builds traces."""
    return source_digest(BUILDER_ROOMS)


def trace_path(cubin: bytes, launch: str, options: str = "") -> Path:
    """Where the trace of this ``cubin`` under this ``launch`` (any canonical text) is kept by this builder."""
    digest = hashlib.sha256()
    for part in (cubin, launch.encode(), options.encode(), builder_version().encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return cache_folder("traces") / f"{digest.hexdigest()}.npz"
