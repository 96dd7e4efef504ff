"""Do generated memory-bound kernels touch every element as often as they should, without conflicts, to the end?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.hw.config import HardwareConfig
from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of
from simulator.kernels.sampling import choose_sample
from simulator.projection.run import project_trace
from simulator.projection.tile_accesses import shared_accesses
from simulator.projection.tile_card import check_design
from simulator.trace.kernel_trace import KernelTrace
from tests.kernels.memory_designs import NORM, OPTIONS, design

ISA = "sm_90a"


@pytest.fixture(scope="module")
def hw() -> HardwareConfig:
    return load_hw("h200")


def build(one: Any) -> KernelTrace:
    return family_of(one).build(one, ISA)


def touched(trace: KernelTrace, name: str, bases: tuple[str, ...]) -> np.ndarray:
    """How often the launch touches each byte of a buffer by instructions of ``bases``."""
    buffer = next(b for b in trace.buffers if b.name == name)
    hits = np.zeros(buffer.n_bytes, np.int64)
    of_kind = np.array([opcode.split(".")[0] in bases for opcode in trace.static.opcode])
    for number, warps in enumerate(trace.streams):
        members = np.flatnonzero(trace.cta_class == number)
        for stream in warps:
            on = of_kind[stream.instruction] & (stream.active > 0)
            for row, event in zip(stream.instruction[on], stream.event[on], strict=True):
                column = trace.events.base[event, 0]
                shift = trace.cta_base[members, column] if column >= 0 else np.zeros(len(members), np.int64)
                lanes = trace.lane_patterns[trace.events.pattern[event]]
                first = trace.events.address[event] - buffer.address + shift[:, None] + lanes[lanes >= 0]
                if (first < 0).any() or (first >= buffer.n_bytes).any():
                    continue
                for byte in range(int(trace.static.width_bytes[row])):
                    np.add.at(hits, (first + byte).ravel(), 1)
    return hits


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_runs_to_the_end(option: str, hw: HardwareConfig) -> None:
    one = design(option)
    assert check_design(one, hw) == []
    projection = project_trace(build(one), hw, explains=False)
    assert projection.cycles >= max(projection.bounds.values())
    assert sum(projection.stalls.values()) == pytest.approx(1)


@pytest.mark.parametrize("option", OPTIONS)
def test_every_element_is_read_and_written_as_often_as_the_design_says(option: str) -> None:
    one: Any = design(option)
    trace = build(one)
    names = [b.name for b in trace.buffers if b.name.startswith("x")]
    for name in names:
        assert (touched(trace, name, ("LDG",)) == getattr(one, "passes", 1)).all(), name
    stored = touched(trace, "y", ("STG", "RED"))
    adders = {"all": trace.launch.n_ctas, "column": getattr(one, "splits", 1)}
    assert (stored == (adders[one.axis] if getattr(one, "is_added", False) else 1)).all()
    for name in ("scale", "shift")[: getattr(one, "weight_arrays", 0)]:
        assert (touched(trace, name, ("LDG",)) == one.rows).all(), name


@pytest.mark.parametrize(
    "option", ["copy", "three inputs", "transpose, xor", "softmax", "row sums", "sum, partial", "copy that rounds"]
)
def test_bytes_of_the_launch_are_the_closed_form(option: str) -> None:
    one: Any = design(option)
    trace = build(one)
    moved = sum(touched(trace, b.name, ("LDG", "STG")).sum() for b in trace.buffers)
    assert moved == family_of(one).least_bytes(one)


COUNTED = {"FADD": 1, "FMUL": 1, "FMNMX": 1, "FSEL": 1, "MUFU": 1, "FFMA": 2}
"""Operations of an instruction; the FFMA that subtracts a mean or maximum counts once."""


def operations(trace: KernelTrace) -> int:
    """Operations of all lanes of the launch's first CTA class, shuffles' and reductions' included."""
    weight = np.array([COUNTED.get(opcode.split(".")[0], 0) for opcode in trace.static.opcode])
    return sum(int(weight[s.instruction].sum()) for s in trace.streams[0]) * 32


@pytest.mark.parametrize(("kind", "subtractions"), [("layer_norm", 1), ("rms_norm", 0), ("softmax", 1)])
def test_operations_of_a_row_grow_as_the_closed_form(kind: str, subtractions: int) -> None:
    changes = {"kind": kind, "dtype": "fp32", "full_range": False, "masked": False}
    one, two = (design("layer norm", **changes, columns=n) for n in (1024, 2048))
    family = family_of(one)
    grown = operations(build(two)) - operations(build(one)) - subtractions * 1024
    assert grown * NORM["rows"] == family.flops(two) - family.flops(one)


def test_operations_of_an_elementwise_kernel_are_the_closed_form() -> None:
    changes = {"dtype": "fp32", "elements": 128 * 4 * 10, "fma_per_element": 6, "alu_per_element": 1}
    one = design("gelu", **changes)
    counted = np.array([op.split(".")[0] in COUNTED for op in build(one).static.opcode])
    trace = build(one)
    executed = sum(int(counted[s.instruction].sum()) for s in trace.streams[0]) * 32 * trace.launch.n_ctas
    assert executed == family_of(one).flops(one)


def test_adds_of_a_sum_are_one_less_than_its_elements() -> None:
    one: Any = design("sum by one CTA")
    assert family_of(one).flops(one) == one.rows * one.columns - 1


def test_a_tile_as_it_is_conflicts_in_all_banks_and_the_advice_is_a_padding(hw: HardwareConfig) -> None:
    worst = shared_accesses(build(design("transpose, as it is")), hw)[0]
    assert (worst.name, worst.wavefronts, worst.bank_conflicts) == ("LDS", 32, 31)
    assert worst.suggestion is not None and "pad rows by 4 bytes" in worst.suggestion.text


TILES = [(32, 32), (64, 32), (64, 64), (128, 64)]
FREE = [("xor", tile, vector) for tile in TILES for vector in (4, 8, 16)] + [("padded", tile, 4) for tile in TILES]


@pytest.mark.parametrize(("layout", "tile", "vector_bytes"), [*FREE, ("padded", (32, 32), 16)])
def test_paddings_and_swizzles_have_no_conflicts(
    layout: str, tile: tuple[int, int], vector_bytes: int, hw: HardwareConfig
) -> None:
    sizes = {"rows": 256, "columns": 256, "tile": {"rows": tile[0], "columns": tile[1]}, "warps": 8}
    one = design("transpose, xor", **sizes, layout=layout, vector_bytes=vector_bytes)
    assert [a.bank_conflicts for a in shared_accesses(build(one), hw)] == [0, 0]


@pytest.mark.parametrize("tile", TILES)
def test_transposing_matrix_loads_of_a_swizzled_tile_have_no_conflicts(tile: tuple[int, int], hw: HardwareConfig) -> None:
    one = design("transpose by matrix loads", rows=256, columns=256, tile={"rows": tile[0], "columns": tile[1]})
    assert [a.bank_conflicts for a in shared_accesses(build(one), hw)] == [0, 0]


def test_a_swizzle_saves_what_the_conflicts_cost(hw: HardwareConfig) -> None:
    plain, swizzled = (
        project_trace(build(design("transpose, as it is", rows=1024, columns=1024, layout=layout)), hw, explains=False)
        for layout in ("shared", "xor")
    )
    assert swizzled.smem["bank_conflicts"] == 0 < plain.smem["bank_conflicts"]
    assert swizzled.cycles < plain.cycles


def test_registers_follow_the_elements_that_a_thread_holds() -> None:
    few, many = (family_of(d).resources(d)[0] for d in (design("softmax", columns=n) for n in (1024, 4096)))
    assert 24 <= many - few <= 28  # 8 and 32 elements


@pytest.mark.parametrize("option", ["layer norm, two passes", "softmax, three passes", "row sums", "copy, grid stride"])
def test_samples_add_up_to_the_whole(option: str) -> None:
    larger = {"copy, grid stride": {"elements": 4 * 128 * 7 * 60}}.get(option, {"columns": 65536})
    one = design(option, **larger)
    family = family_of(one)
    sample = choose_sample(family.extent_of(one), 4)
    assert len(sample.extents) > 1
    parts = [float(family.build(one, ISA, extent).warp_instructions) for extent in sample.extents]
    assert sample.extrapolate(parts) == pytest.approx(build(one).warp_instructions)


@pytest.mark.parametrize("option", OPTIONS)
def test_single_step_changes_are_designs(option: str) -> None:
    one = design(option)
    for change, other in family_of(one).neighbours(one):
        assert change and other != one

