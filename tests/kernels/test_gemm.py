"""Do generated GEMMs do the work of a GEMM, with every option, and does each run to its end?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.gemm import build, extent_of
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.gemm_tiles import divide
from simulator.kernels.sampling import choose_sample
from simulator.projection.run import project_trace
from simulator.projection.tile_card import check_design
from simulator.trace.kernel_trace import KernelTrace
from tests.kernels.designs import OPTIONS, SPECIAL, design

ISA = "sm_90a"


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


def executions(trace: KernelTrace, base: str) -> list[tuple[int, int, int]]:
    """(static row, event, CTAs) of every execution with active lanes of opcodes that start with ``base``."""
    rows = [i for i, opcode in enumerate(trace.static.opcode) if opcode.startswith(base)]
    found = []
    for number, warps in enumerate(trace.streams):
        n_ctas = int((trace.cta_class == number).sum())
        for stream in warps:
            on = np.isin(stream.instruction, rows) & (stream.active > 0)
            found += [(int(r), int(e), n_ctas) for r, e in zip(stream.instruction[on], stream.event[on], strict=True)]
    return found


def multiply_add_flops(trace: KernelTrace) -> int:
    """2 per multiply-add of the launch."""
    return tensor_flops(trace) + 2 * 32 * sum(n for _, _, n in executions(trace, "FFMA"))


def tensor_flops(trace: KernelTrace) -> int:
    """2 per multiply-add of every tensor instruction of the launch."""
    total = 0
    for base in ("HGMMA", "QGMMA", "IGMMA"):
        for row, _, n in executions(trace, base):
            columns, k_bytes = trace.static.argument[row][:2].tolist()
            bits = 8 if base != "HGMMA" else 32 if "TF32" in trace.static.opcode[row] else 16
            total += 2 * 64 * columns * (k_bytes * 8 // bits) * n // 4
    for base in ("HMMA", "QMMA", "IMMA"):
        for row, _, n in executions(trace, base):
            total += 2 * int(np.prod(trace.static.argument[row][:3])) * n
    return total


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_runs_to_the_end(option: str, hw: HardwareConfig) -> None:
    one = design(**OPTIONS[option])
    assert check_design(one, hw) == []
    projection = project_trace(build(one, ISA), hw)
    assert projection.cycles >= max(projection.bounds.values())
    assert sum(projection.stalls.values()) == pytest.approx(1)


@pytest.mark.parametrize("option", [name for name in OPTIONS if "gelu" not in name])
def test_multiply_adds_are_those_of_the_padded_problem(option: str) -> None:
    one = design(**OPTIONS[option])
    tile = one.tile
    up = [-(-extent // part) * part for extent, part in ((one.m, tile.m), (one.n, tile.n), (one.k, tile.k))]
    if one.cluster > 1 or one.split_k > 1:
        assert up == [one.m, one.n, one.k]
    assert multiply_add_flops(build(one, ISA)) == 2 * up[0] * up[1] * up[2]


@pytest.mark.parametrize(
    "option", ["bulk copies, all warps multiply", "specialised, persistent", "ping-pong", "stream k", "no swizzle"]
)
def test_bulk_copies_bring_each_operand_once_for_each_tile(option: str) -> None:
    one = design(**OPTIONS[option])
    trace = build(one, ISA)
    copied = sum(int(trace.events.count[event]) * n for _, event, n in executions(trace, "UTMALDG"))
    tiles_m, tiles_n = one.m // one.tile.m, one.n // one.tile.n
    assert copied == tiles_m * tiles_n * (one.tile.m + one.tile.n) * one.k * one.format.n_bytes


@pytest.mark.parametrize("option", ["direct stores", "specialised, direct stores", "ragged, direct stores"])
def test_direct_stores_write_every_element_of_c_once(option: str) -> None:
    one = design(**OPTIONS[option])
    trace = build(one, ISA)
    c = next(b for b in trace.buffers if b.name == "c")
    hits = np.zeros(one.m * one.n, np.int64)
    for number, warps in enumerate(trace.streams):
        for cta in np.flatnonzero(trace.cta_class == number):
            for stream in warps:
                for row, event, active in zip(stream.instruction, stream.event, stream.active, strict=True):
                    if not trace.static.opcode[row].startswith("STG") or active == 0:
                        continue
                    base = trace.events.base[event, 0]
                    start = trace.events.address[event] + (trace.cta_base[cta, base] if base >= 0 else 0) - c.address
                    offsets = trace.lane_patterns[trace.events.pattern[event]]
                    first = (start + offsets[offsets >= 0]) // one.result_bytes
                    for element in range(int(trace.static.width_bytes[row]) // one.result_bytes):
                        np.add.at(hits, first + element, 1)
    assert (hits == 1).all()


@given(
    m=st.integers(1, 600),
    n=st.integers(1, 600),
    k=st.integers(1, 600),
    group=st.integers(1, 9),
    ctas=st.integers(1, 20),
    how=st.sampled_from(["plain", "persistent", "stream", "split", "cluster a", "cluster b"]),
)
@settings(max_examples=60, deadline=None)
def test_every_k_step_of_every_tile_is_done_once(m: int, n: int, k: int, group: int, ctas: int, how: str) -> None:
    more = {
        "plain": {},
        "persistent": {"persistent": True},
        "stream": {"stream_k": True},
        "split": {"split_k": 3},
        "cluster a": {**SPECIAL, "cluster": 2, "multicast": "a"},
        "cluster b": {**SPECIAL, "cluster": 2, "multicast": "b"},
    }[how]
    one = design(**({"m": m, "n": n, "k": k, "group_m": group, "persistent_ctas": ctas} | more))
    done: dict[tuple[int, int, int], int] = {}
    for work in divide(one):
        for unit, steps in enumerate(work.k_steps):
            for place in range(len(work.members)):
                for step in range(steps):
                    key = (int(work.m[unit, place]), int(work.n[unit, place]), int(work.k[unit, place]) + step)
                    if key[0] < m and key[1] < n and key[2] * one.tile.k < k:
                        done[key] = done.get(key, 0) + 1
    assert set(done.values()) == {1}
    assert len(done) == one.tiles_m * one.tiles_n * -(-k // one.tile.k)


def test_more_stages_do_not_change_a_compute_bound_kernel(hw: HardwareConfig) -> None:
    common = {"m": 1408, "n": 3072, "k": 4096, "tile": {"m": 128, "n": 256, "k": 64}, "warps": 8, "producer_warps": 4}
    common |= {"epilogue": "direct"}
    few, many = (project_trace(build(design(**common, stages=s), ISA), hw).cycles for s in (3, 4))
    assert many == pytest.approx(few, rel=0.03)


def test_removing_the_swizzle_costs_what_the_banks_say(hw: HardwareConfig) -> None:
    common = {"multiply": "mma_sync", "loads": "cp_async", "epilogue": "direct", "tile": {"m": 64, "n": 64, "k": 64}}
    swizzled, plain = (project_trace(build(design(**common, swizzle_bytes=s), ISA), hw) for s in (128, 0))
    loads = sum(n for _, _, n in executions(build(design(**common), ISA), "LDSM"))
    assert swizzled.smem["bank_conflicts"] == 0
    # rows of 128 bytes lie in the same banks: the eight rows of each of a load's four matrices take turns
    assert plain.smem["wavefronts"] - swizzled.smem["wavefronts"] == loads * 4 * 7
    assert plain.cycles > swizzled.cycles


def test_registers_follow_the_accumulators(hw: HardwareConfig) -> None:
    narrow, wide = (build(design(tile={"m": 128, "n": n, "k": 64}), ISA).registers_per_thread for n in (64, 128))
    assert wide - narrow == 64


def test_accumulators_beyond_the_limit_are_spilled_and_cost_time(hw: HardwareConfig) -> None:
    spilled = build(design(**OPTIONS["spills"]), ISA)
    assert spilled.registers_per_thread == 255 and spilled.local_bytes_per_thread > 0
    assert executions(spilled, "STL") and executions(spilled, "LDL")


def test_a_trace_survives_its_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from simulator.trace.io import load_trace, save_trace

    trace = build(design(**OPTIONS["ping-pong"]), ISA)
    save_trace(trace, tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    assert again.static.opcode == trace.static.opcode
    assert all(
        (a.event == b.event).all() for x, y in zip(trace.streams, again.streams, strict=True) for a, b in zip(x, y, strict=True)
    )


def test_samples_add_up_to_the_whole() -> None:
    one = GemmDesign(m=4096, n=4096, k=16384, persistent=True, persistent_ctas=100)
    whole = extent_of(one)
    sample = choose_sample(whole, 16)
    assert sample.extrapolate([float(e.units * e.steps) for e in sample.extents]) == pytest.approx(whole.units * whole.steps)
    assert sample.extrapolate([1.0] * len(sample.extents)) == pytest.approx(1)
