"""Do all measured launches fit their compiled kernels?"""

from __future__ import annotations

import csv
import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.frontends.sass.elf import Cubin, parse_cubin
from simulator.frontends.sass.launch import bind, parse_launch
from simulator.frontends.sass.operands import SassKernel

LEAST_REGISTERS = 16
"""The driver launches with at least 16 registers a thread, whatever the kernel declares."""


def _cubins(archive: Path) -> dict[str, Cubin]:
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.name.endswith(".cubin")]
        return {Path(m.name).stem: parse_cubin(tar.extractfile(m).read(), m.name) for m in members}  # type: ignore[union-attr]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row["cubin"])


@pytest.mark.parametrize(("table", "archive", "n_rows"), [("kernels", "cubins", 697), ("ladder", "ladder_cubins", 247)])
def test_every_row_binds(repository: Path, table: str, archive: str, n_rows: int) -> None:
    folder = repository / "projections" / "validation"
    cubins = _cubins(folder / f"{archive}.tar.xz")
    bound = 0
    for row in _rows(folder / f"{table}.csv.gz"):
        document = json.loads(row["launch"])
        section = cubins[row["cubin"]].kernel(document["kernel"])
        kernel = SassKernel(section.name, cubins[row["cubin"]].arch, (), section.parameters, section.parameter_base,
                            section.registers_per_thread, 0, 0, section.required_block, section.constants, "")
        described = sum("contents" in (arg.get("tensormap") or arg) for arg in document["args"])
        assert len(bind(kernel, parse_launch(document, row["id"])).contents) == described
        assert max(LEAST_REGISTERS, section.registers_per_thread) == int(float(row["regs_per_thread"]))
        bound += 1
    assert bound == n_rows
