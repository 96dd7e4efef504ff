"""Is every limit named with number, limit and a change that works?"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of, parse_design
from simulator.kernels.gemm import neighbours
from simulator.kernels.gemm_design import REGISTERS_BESIDE
from simulator.kernels.legality import nearest_legal
from simulator.projection.tile_card import check_design
from tests.kernels.designs import OPTIONS, SPECIAL, design
from tests.kernels.limits import nearest_to_broken

BREAKS: dict[str, tuple[dict[str, Any], str, float | str, float | str]] = {
    "shared memory": ({"stages": 10, "tile": {"m": 128, "n": 128, "k": 64}}, "shared_memory", 327760, 232448),
    "640 KiB of shared memory": ({"stages": 20, "tile": {"m": 128, "n": 128, "k": 64}}, "shared_memory", 655520, 232448),
    "k of the instruction": ({"tile": {"m": 128, "n": 64, "k": 40}}, "tile_k", 40, 16),
    "rows of the warpgroups": ({"tile": {"m": 96, "n": 64, "k": 64}}, "tile_m", 96, 64),
    "columns of the instruction": ({"tile": {"m": 128, "n": 68, "k": 64}}, "tile_n", 68, 8),
    "threads": (
        {"multiply": "wgmma", "warps": 32, "tile": {"m": 2 * 256, "n": 64, "k": 32}, "producer_warps": 4},
        "threads",
        1152,
        1024,
    ),
    "cluster": ({**SPECIAL, "cluster": 16, "multicast": "b"}, "cluster", 16, 8),
    "alignment of k": ({"k": 100}, "alignment", 200, 16),
    "alignment of n": ({"n": 100}, "alignment", 200, 16),
    "swizzle span": ({"tile": {"m": 128, "n": 64, "k": 32}, "swizzle_bytes": 128}, "swizzle", 64, 128),
    "padding of bulk copies": ({"padding_bytes": 16}, "padding", 16, 0),
    "rows of a multicast": ({**SPECIAL, "cluster": 3, "multicast": "b"}, "multicast", 128, 24),
    "roles' registers": ({**SPECIAL, "consumer_registers": 248}, "registers", 68608, 65536),
    "accumulators of a consumer": ({**SPECIAL, "consumer_registers": 64}, "registers", 88, 64),
    "warps by halves": ({"multiply": "mma_sync", "warps": 6}, "warps", 6, 4),
    "format of a method": ({"dtype": "fp32", "multiply": "wgmma"}, "multiply", "wgmma", "ffma"),
}


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_limit_is_named_and_its_change_is_legal(name: str, hw: HardwareConfig) -> None:
    changes, rule, value, limit = BREAKS[name]
    legal = nearest_to_broken(design(**changes), hw, rule, value, limit)
    if name != "threads":
        assert legal is not None and check_design(legal, hw) == []


@pytest.mark.parametrize("option", OPTIONS)
def test_single_step_changes_are_designs(option: str) -> None:
    one = design(**OPTIONS[option])
    for change, other in neighbours(one):
        assert change and other != one


@pytest.mark.parametrize(
    ("chip", "changes", "rule"),
    [
        ("a100_sxm", {"dtype": "fp8_e4m3", "multiply": "mma_sync", "loads": "cp_async", "epilogue": "staged"}, "dtype"),
        ("a100_sxm", {}, "multiply"),
        ("a100_sxm", {"multiply": "mma_sync"}, "loads"),
        ("b200", {}, "multiply"),
        ("rtx_4090", {**SPECIAL, "cluster": 2, "multicast": "b"}, "cluster"),
    ],
)
def test_what_a_chip_lacks_is_refused(chip: str, changes: dict[str, Any], rule: str) -> None:
    other = load_hw(chip)
    one = design(**changes)
    assert rule in [violation.rule for violation in check_design(one, other)]
    legal = nearest_legal(one, other, check_design)
    assert legal is not None and check_design(legal, other) == []


def test_other_instruction_sets_are_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match="sm_"):
        check_design(design(), load_hw("mi300x"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "gemm", "m": 1, "n": 1}, "'k' is missing"),
        ({"kind": "gemm", "m": 1, "n": 1, "k": 1, "tile": {"m": 0, "n": 64, "k": 64}}, "tile.m is 0"),
        ({"kind": "gemm", "m": 1, "n": 1, "k": 1, "stagse": 3}, "'stagse' is not known"),
        ({"kind": "gemm", "m": 1, "n": 1, "k": 1, "dtype": "fp7"}, "dtype is 'fp7'"),
        ({"kind": "gemmm"}, "kinds: gemm"),
        ([1], "must be a mapping"),
        ({"kind": "gemm", "m": 1, "n": 1, "k": 1, "multicast": "a"}, "cluster of at least 2"),
        ({"kind": "gemm", "m": 1, "n": 1, "k": 1, "schedule": "ping_pong"}, "two consumer warpgroups"),
    ],
)
def test_bad_designs_are_one_sentence(values: object, words: str) -> None:
    with pytest.raises(UserError) as error:
        parse_design(values, "x.yaml")
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("columns", [64, 128])
def test_one_producer_warp_leaves_every_warp_the_registers_of_a_consumer(columns: int) -> None:
    """No register moves without a producer warpgroup: the launch gives all warps what a multiplying one needs."""
    one = design(**{**SPECIAL, "producer_warps": 1, "tile": {"m": 128, "n": columns, "k": 64}})
    registers, threads, _ = family_of(one).resources(one)
    assert registers >= one.accumulators + REGISTERS_BESIDE
    assert threads == 32 * (one.warps + 1)


def test_accumulators_that_one_thread_cannot_hold_are_refused_beside_one_producer_warp() -> None:
    one = design(**{**SPECIAL, "producer_warps": 1, "warps": 4, "tile": {"m": 128, "n": 256, "k": 64}, "stages": 2})
    assert "registers" in [violation.rule for violation in check_design(one, load_hw("h200"))]
