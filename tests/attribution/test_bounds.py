"""Does a kernel that reads and writes know that DRAM binds it?"""

from __future__ import annotations

import pytest

from simulator.hw.loader import load_hw
from simulator.kernels.families import parse_design
from simulator.projection.bounds import dram_seconds
from simulator.projection.tile_card import make_card


def test_share_reads_and_writes_the_time_of_the_bus() -> None:
    timing = load_hw("h200").execution_sections().timing
    n_read, n_written = timing.dram.read_bytes_per_second, timing.dram.write_bytes_per_second
    assert dram_seconds(n_read, 0, timing) == dram_seconds(0, n_written, timing) == pytest.approx(1)
    assert dram_seconds(n_read, n_written, timing) == pytest.approx(2)


def test_is_a_kernel_that_writes_what_it_reads_bound_by_the_bus() -> None:
    design = {"kind": "softmax", "rows": 65_536, "columns": 4096, "dtype": "bf16"}
    projection = make_card(parse_design(design, "test"), load_hw("h200"), n_compared=0).projection
    assert projection is not None and projection.bound_by == "dram"
    assert 0.8 * projection.cycles < projection.bounds["dram"] <= projection.cycles
