"""What every command shares: one JSON document on stdout, logs on stderr, files that appear whole."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from simulator.errors import UserError

PIPED_WIDTH = 120

stderr = Console(stderr=True, highlight=False)
"""Progress, warnings and logs."""


def stdout() -> Console:
    """Console for the human-readable result (made per call, so that redirected stdout is honoured).

    As wide as the terminal; what is piped or captured gets lines of PIPED_WIDTH at most.
    """
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(file=sys.stdout, highlight=False, width=width, soft_wrap=False)


def to_json(document: Any) -> str:
    """JSON text of ``document``; a NaN or an infinity is a defect of the producer and raises ValueError."""
    return json.dumps(_plain(document), indent=2, allow_nan=False, ensure_ascii=False)


def emit_json(document: Any) -> None:
    """Write one JSON document to stdout, and nothing else."""
    sys.stdout.write(to_json(document) + "\n")


def _plain(value: Any) -> Any:
    """``value`` in JSON's own types (NumPy scalars and arrays, tuples, paths converted)."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a result holds {value}, which JSON cannot carry")
    return value


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary sibling of ``path`` that is renamed to it when the block ends well, and removed otherwise.

    The temporary name keeps the suffixes of ``path``, so that writers which look at them (npz, gz) do right.
    """
    target = Path(path)
    require_writable(target)
    try:
        handle, name = tempfile.mkstemp(prefix=".partial-", suffix="-" + target.name, dir=target.parent)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def require_writable(path: str | Path) -> None:
    """Refuse a path that cannot become a file; called before long work, so that the refusal does not come after it."""
    target = Path(path)
    if not target.parent.is_dir():
        raise UserError(f"cannot write {target}: the folder {target.parent} does not exist")
    if target.is_dir():
        raise UserError(f"cannot write {target}: it is a folder")


def atomic_write(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` so that ``path`` is either absent, its old self, or complete."""
    with atomic_path(path) as temporary:
        if isinstance(content, bytes):
            temporary.write_bytes(content)
        else:
            temporary.write_text(content, encoding="utf-8", newline="")


def read_text(path: str | Path, what: str) -> str:
    """The text of a user's file; ``what`` names it in the error ("batch file", "launch description")."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{what} {path} does not exist") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{what} {path} is not text (UTF-8)") from error
    except OSError as error:
        raise UserError(f"{what} {path} cannot be read: {error.strerror}") from error


def require_columns(path: str | Path, present: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a CSV whose header lacks a needed column, naming both."""
    missing = [name for name in needed if name not in present]
    if missing:
        raise UserError(
            f"{path} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; "
            f"it needs {', '.join(needed)} and has {', '.join(present) or 'no header'}"
        )


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
