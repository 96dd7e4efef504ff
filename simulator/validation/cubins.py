"""Where the compiled kernels of a measured file lie: a folder, or an archive that is unpacked once."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from simulator.errors import UserError
from simulator.validation.cache import cache_folder

SUFFIX = ".cubin"


def locate_cubins(source: Path) -> dict[str, Path]:
    """File stem -> path of every ``*.cubin`` in a folder (at any depth) or a tar, tar.xz, tar.gz, tar.bz2 archive.

    An archive is unpacked into the cache folder under its digest. Raises UserError for a source that is neither, or
    that holds no cubin.
    """
    if source.is_dir():
        folder = source
    elif source.is_file():
        folder = _unpacked(source)
    else:
        raise UserError(f"--cubins {source} does not exist; give a folder or a tar archive of {SUFFIX} files")
    found = {path.stem: path for path in sorted(folder.rglob(f"*{SUFFIX}")) if path.is_file()}
    if not found:
        raise UserError(f"--cubins {source} holds no {SUFFIX} file")
    return found


def _unpacked(archive: Path) -> Path:
    target = cache_folder("cubins") / _digest(archive)
    if target.is_dir():
        return target
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=target.parent))
    try:
        _extract(archive, partial)
        os.replace(partial, target)
    except OSError:
        if not target.is_dir():  # else another run was faster, and wrote the same
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _extract(archive: Path, folder: Path) -> None:
    """The cubins of ``archive``, without their folders: a member name can lead nowhere else."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() and member.name.endswith(SUFFIX) else None
                if content is not None:
                    (folder / Path(member.name).name).write_bytes(content.read())
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"--cubins {archive} is neither a folder nor a readable tar archive: {error}") from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
