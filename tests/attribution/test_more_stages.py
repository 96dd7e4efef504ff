"""Does a kernel with its copies further ahead do the same work, in a longer ring and in more shared memory?"""

from __future__ import annotations

from collections import Counter

import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of, parse_design
from simulator.projection.advice import with_stages
from simulator.projection.tile_card import ready_to_build
from simulator.trace.kernel_trace import KernelTrace

TILE = {"m": 128, "n": 128, "k": 64}
STAGE_BYTES = 2 * 128 * 64 * 2
BY_BULK = {"stages": 2}
BY_THREADS = {"stages": 2, "loads": "cp_async", "multiply": "mma_sync"}
BY_A_WARP = {"stages": 2, "producer_warps": 4}
ONE_STAGE = {"stages": 1}
TURNS = {"schedule": "ping_pong", "persistent": True, "m": 2048, "n": 2048, "tile": {"m": 64, "n": 128, "k": 64}}
PING_PONG = {"stages": 3, "producer_warps": 4, "warps": 8} | TURNS
"""Consumers that take turns wait for every second tile's stages alone."""


@pytest.fixture(scope="module")
def chip() -> HardwareConfig:
    return load_hw("h200")


def generated(chip: HardwareConfig, changes: dict[str, object]) -> KernelTrace:
    design = {"kind": "gemm", "m": 256, "n": 256, "k": 512, "dtype": "fp16", "tile": TILE, "warps": 4} | changes
    ready, _, _ = ready_to_build(parse_design(design, "test"), chip)
    return family_of(ready).build(ready, chip.identity.instruction_set)


@pytest.mark.parametrize("design", [BY_BULK, BY_THREADS, BY_A_WARP])
@pytest.mark.parametrize("n_more", [1, 2])
def test_is_every_instruction_still_executed(design: dict[str, object], n_more: int, chip: HardwareConfig) -> None:
    before = generated(chip, design)
    after = with_stages(before, n_more)
    assert after is not None
    assert after.smem_bytes_per_cta == before.smem_bytes_per_cta + n_more * STAGE_BYTES
    allowed = {"SYNCS.EXCH.64", "LDGDEPBAR"}
    for old, new in zip(before.streams[0], after.streams[0], strict=True):
        added = Counter(new.instruction.tolist()) - Counter(old.instruction.tolist())
        assert not Counter(old.instruction.tolist()) - Counter(new.instruction.tolist())
        assert {before.static.opcode[row] for row in added} <= allowed


@pytest.mark.parametrize("n_more", [1, 3])
def test_waits_every_warp_for_the_copies_that_it_waited_for(n_more: int, chip: HardwareConfig) -> None:
    """The fill of a ring is its phase times its length, plus its place in the ring."""
    before = generated(chip, BY_BULK)
    after = with_stages(before, n_more)
    assert after is not None
    waited = []
    for trace, n_stages in ((before, 2), (after, 2 + n_more)):
        for stream in trace.streams[0][1:]:
            events = stream.event[[("PHASECHK" in trace.static.opcode[row]) for row in stream.instruction]]
            names = list(dict.fromkeys(trace.events.mbarrier[events].tolist()))
            places = [names.index(m) for m in trace.events.mbarrier[events].tolist()]
            assert places == [i % n_stages for i in range(len(places))]
            assert trace.events.parity[events].tolist() == [i // n_stages % 2 for i in range(len(places))]
            waited.append(len(places))
    assert len(set(waited)) == 1


@pytest.mark.parametrize("design", [ONE_STAGE, PING_PONG])
def test_is_a_ring_that_is_not_understood_left_alone(design: dict[str, object], chip: HardwareConfig) -> None:
    assert with_stages(generated(chip, design), 1) is None
