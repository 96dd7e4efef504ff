"""Results on disk, named by what they were computed from: the same chip, trace and simulator are never simulated twice.

An entry appears whole (rename) and carries its own digest; one that was damaged is noticed, counted and computed again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.errors import UserError
from simulator.validation.cache import cache_folder, version_of

STORE_FORMAT = 1
RESULT_ROOMS = ("device", "hw", "isa", "lower", "memory", "projection", "sm", "study/work.py")
"""The sources that decide what a projection says."""
KIND = "projections"


def simulator_version() -> str:
    """Package version and a digest of the sources that decide a projection: ``0.1.0+1f2e3d4c5b6a``."""
    return version_of(RESULT_ROOMS)


def result_key(chip_digest: str, trace_digest: str, instruction_budget: int) -> str:
    """SHA-256 (hex) that names one projection by all that it depends on."""
    parts = [STORE_FORMAT, simulator_version(), chip_digest, trace_digest, instruction_budget]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass
class ResultStore:
    """A folder of results. ``n_corrupt``: entries that were found damaged and thrown away."""

    folder: Path = field(default_factory=lambda: cache_folder(KIND))
    n_corrupt: int = 0

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The result under ``key``, or None where there is none, or none that is whole."""
        try:
            text = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"result store {self.folder} cannot be read: {error.strerror}") from error
        digest, _, payload = text.partition(b"\n")
        if digest.decode("ascii", "replace") == hashlib.sha256(key.encode() + payload).hexdigest():
            found: dict[str, Any] = json.loads(payload)
            return found
        self.n_corrupt += 1
        self.path(key).unlink(missing_ok=True)
        return None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keep ``result`` under ``key``; UserError when the disk is full or refuses."""
        payload = json.dumps(result, sort_keys=True, allow_nan=False).encode()
        digest = hashlib.sha256(key.encode() + payload).hexdigest().encode()
        path = self.path(key)
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(digest + b"\n" + payload)
            os.replace(temporary, path)
        except OSError as error:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            raise UserError(_refusal(self.folder, error)) from error


def _refusal(folder: Path, error: OSError) -> str:
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"it refuses ({error.strerror})"
    return f"results cannot be written to {folder}: {what}; every result so far is kept, go on with --resume"
