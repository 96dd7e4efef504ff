"""Do the rounding rules, the limits, the cliffs and the refusals do what the hardware does?"""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.projection.occupancy import Occupancy, occupancy

load = cache(load_hw)
CHIPS = ("h200", "a100_sxm", "rtx_4090", "t4", "geforce_8800_gtx", "tesla_c2050", "mi300x", "rx_7900_xtx")


def ask(hw: HardwareConfig, regs: int, threads: int, smem: int) -> Occupancy | None:
    """The answer, or None for a launch that the chip refuses."""
    try:
        return occupancy(hw, regs, threads, smem)
    except UserError:
        return None


def ctas(hw: HardwareConfig, regs: int, threads: int, smem: int) -> int:
    answer = ask(hw, regs, threads, smem)
    return answer.ctas_per_sm if answer else 0


@st.composite
def launches(draw: st.DrawFn) -> tuple[HardwareConfig, int, int, int]:
    hw = load(draw(st.sampled_from(CHIPS)))
    regs = draw(st.integers(0, hw.sm.max_registers_per_thread))
    threads = draw(st.integers(1, hw.sm.max_threads_per_cta))
    return hw, regs, threads, draw(st.integers(0, hw.shared_memory.max_per_cta_bytes))


@settings(max_examples=300, deadline=None)
@given(launches(), st.integers(0, 64), st.integers(0, 256), st.integers(0, 20_000))
def test_do_more_resources_never_give_more_ctas(
    launch: tuple[HardwareConfig, int, int, int], regs: int, threads: int, smem: int
) -> None:
    hw, *shape = launch
    assert ctas(hw, shape[0] + regs, shape[1], shape[2]) <= ctas(hw, *shape)
    assert ctas(hw, shape[0], shape[1], shape[2] + smem) <= ctas(hw, *shape)
    if hw.sm.max_multi_warp_ctas is None or shape[1] > hw.sm.warp_size:
        assert ctas(hw, shape[0], shape[1] + threads, shape[2]) <= ctas(hw, *shape)


@settings(max_examples=300, deadline=None)
@given(launches())
def test_is_the_answer_the_least_limit_and_within_the_sm(launch: tuple[HardwareConfig, int, int, int]) -> None:
    hw, *shape = launch
    answer = ask(hw, *shape)
    if answer is None:
        return
    assert answer.ctas_per_sm == min(answer.limits.values()) >= 1
    assert answer.limiters
    assert all(answer.limits[name] == answer.ctas_per_sm for name in answer.limiters)
    assert 0 < answer.occupancy <= 1
    assert answer.ctas_per_sm * answer.smem_allocated_per_cta <= answer.smem_carveout
    assert answer.warps_per_sm * answer.regs_allocated_per_warp <= hw.sm.n_registers
    assert answer.warps_per_sm <= hw.sm.max_warps


@settings(max_examples=300, deadline=None)
@given(launches())
def test_is_every_cliff_where_it_is_said_to_be(launch: tuple[HardwareConfig, int, int, int]) -> None:
    hw, regs, threads, smem = launch
    answer = ask(hw, regs, threads, smem)
    for cliff in answer.cliffs if answer else ():
        at = {"registers": regs, "smem": smem} | cliff.reaches
        assert ctas(hw, at["registers"], threads, at["smem"]) == cliff.ctas_per_sm != answer.ctas_per_sm
        for resource, change in cliff.change.items():
            step = 1 if change > 0 else -1
            before = at | {resource: at[resource] - step}
            short = ctas(hw, before["registers"], threads, before["smem"])
            assert short == answer.ctas_per_sm, f"a change of {resource} that is one smaller moves the count already"


@pytest.mark.parametrize(
    ("regs", "threads", "smem", "changes"),
    [
        (80, 256, 0, [({"registers": 1}, 2), ({"smem": 76_801}, 2), ({"registers": -16}, 4)]),
        (168, 128, 70_000, [({"registers": 1}, 2), ({"smem": 6_801}, 2), ({"registers": -40, "smem": -12_656}, 4)]),
        (32, 256, 0, [({"registers": 1}, 6), ({"smem": 28_161}, 7)]),
        (168, 384, 164_864, [({"registers": 1}, 0), ({"registers": -88, "smem": -49_152}, 2)]),
    ],
)
def test_which_changes_move_the_count(
    regs: int, threads: int, smem: int, changes: list[tuple[dict[str, int], int]]
) -> None:
    """Counted by hand: the next register step, the byte after the last that fits, and the change that gains a CTA."""
    answer = occupancy(load("h200"), regs, threads, smem)
    assert [(cliff.change, cliff.ctas_per_sm) for cliff in answer.cliffs] == changes


def test_does_a_tie_need_both_changes() -> None:
    answer = occupancy(load("h200"), regs=255, threads=128, smem=98_400)
    assert answer.limiters == ["registers", "smem"]
    assert answer.cliffs[-1].change == {"registers": 168 - 255, "smem": 76_800 - 98_400}
    assert answer.cliffs[-1].ctas_per_sm == 3


def test_does_a_kernel_without_shared_memory_blame_it() -> None:
    answer = occupancy(load("t4"), regs=16, threads=32)
    assert answer.smem_allocated_per_cta == 0
    assert answer.limiters == ["ctas"]


def test_does_the_carveout_hold_fewer_ctas() -> None:
    assert occupancy(load("h200"), 32, 128, 8192, carveout=65_536).limits["smem"] == 7
    assert occupancy(load("h200"), 32, 128, 8192).smem_carveout == 233_472


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"threads": 2000}, "2,000 threads per CTA cannot launch on h200: valid is 1 to 1,024"),
        ({"threads": 0}, "0 threads per CTA"),
        ({"regs": 300}, "300 registers per thread cannot launch on h200: valid is 0 to 255"),
        ({"regs": -1}, "-1 registers per thread"),
        ({"smem": 232_449}, "232,449 bytes of shared memory per CTA cannot launch on h200: valid is 0 to 232,448"),
        (
            {"regs": 128, "threads": 1024},
            r"takes 131,072 registers .* has 65,536 \(at most 64 registers",
        ),
        ({"cluster": 16}, "cluster of 16 CTAs is above the portable size of h200, 8; up to 16"),
        (
            {"cluster": 17, "is_nonportable_cluster": True},
            "17 CTAs per cluster .* valid is 1 to 16",
        ),
        ({"cluster": 0}, "0 CTAs per cluster"),
        ({"carveout": 50_000}, "no shared-memory carve-out of 50,000 bytes; it has 0, 8192"),
        ({"carveout": 8192, "smem": 8192}, "takes 9,216 bytes .* more than the carve-out of 8,192 bytes"),
        ({"accumulator_regs": 8}, "h200 has no accumulator registers"),
    ],
)
def test_is_an_impossible_launch_refused_with_number_and_limit(options: dict[str, int], sentence: str) -> None:
    shape = {"regs": 32, "threads": 128, "smem": 0} | options
    with pytest.raises(UserError) as refusal:
        occupancy(load("h200"), **shape)
    assert re.search(sentence, str(refusal.value))


def test_are_clusters_refused_where_there_are_none() -> None:
    with pytest.raises(UserError, match="a100_sxm: it has no clusters"):
        occupancy(load("a100_sxm"), 32, 128, cluster=2)


def test_do_accumulators_start_at_an_aligned_register() -> None:
    """37 to 40 registers and 128 accumulators take the same; the forty-first moves the accumulators."""
    hw = load("mi300x")
    counts = [occupancy(hw, regs, 256, accumulator_regs=128).ctas_per_sm for regs in (37, 40, 41)]
    assert counts == [3, 3, 2]


def test_does_a_hypothetical_sm_hold_what_its_override_says() -> None:
    bigger = load_hw("h200", ("sm.n_registers=131072",))
    assert occupancy(bigger, 128, 256).ctas_per_sm == 2 * occupancy(load("h200"), 128, 256).ctas_per_sm
