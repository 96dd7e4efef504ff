"""Do the engine's parameters say what the chip file says, in the engine's units?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from simulator.device.machine import Plan, machine_shape
from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.isa.table import opcodes
from simulator.lower.events import lower_tensors
from simulator.lower.instructions import lower_static
from simulator.lower.params import lower_memory_parameters, lower_sm_parameters
from simulator.lower.program import lower
from simulator.memory.layout import MEMORY_PARAMETERS
from simulator.sm.inputs import CYCLE
from simulator.sm.layout import SM_PARAMETERS
from simulator.trace.kernel_trace import TensorMap
from tests.lower.traces import Instruction, kernel_trace, static_table

CLOCK_HZ = 1.5e9


def sm_parameter(timing: Timing, name: str) -> float:
    return float(lower_sm_parameters(timing)[SM_PARAMETERS.index(name)])


def memory_parameter(hw: HardwareConfig, timing: Timing, name: str, clock_hz: float = CLOCK_HZ) -> float:
    return float(lower_memory_parameters(hw, timing, clock_hz, 0)[MEMORY_PARAMETERS.index(name)])


def test_are_cycles_ticks(timing: Timing) -> None:
    assert sm_parameter(timing, "l1_hit") == timing.l1.hit_latency_cycles * CYCLE
    assert sm_parameter(timing, "barrier_warp") == round(timing.barrier.per_warp_cycles * CYCLE)


def test_are_depths_no_times(timing: Timing) -> None:
    assert sm_parameter(timing, "shared_queue") == timing.shared.queue_depth
    assert sm_parameter(timing, "tensor_queue") == timing.tensor_async.queue_depth


def test_are_rates_times_per_byte(timing: Timing) -> None:
    assert sm_parameter(timing, "fill_byte") == pytest.approx(CYCLE / timing.l1.fill_bytes_per_cycle, abs=0.5)


def test_do_the_l2_and_dram_cost_more_sm_cycles_at_a_higher_sm_clock(hw: HardwareConfig, timing: Timing) -> None:
    for name in ("coalescer_sector", "dram_read_sector", "atomic_same_address"):
        slow = memory_parameter(hw, timing, name, 1e9)
        assert memory_parameter(hw, timing, name, 2e9) == pytest.approx(2 * slow, rel=0.01)


@pytest.mark.parametrize("name", ["near_spread", "far", "dram", "dram_spread", "dram_refresh"])
def test_do_latencies_beyond_the_sm_keep_their_time(hw: HardwareConfig, timing: Timing, name: str) -> None:
    slow = memory_parameter(hw, timing, name, 1e9)
    assert memory_parameter(hw, timing, name, 1.5e9) == pytest.approx(1.5 * slow, rel=0.01)


@pytest.mark.parametrize("name", ["near", "merge_transit"])
def test_does_a_part_of_the_way_to_the_l2_follow_the_sm_clock(hw: HardwareConfig, timing: Timing, name: str) -> None:
    follows = timing.l2.sm_clock_cycles * CYCLE
    slow = memory_parameter(hw, timing, name, 1e9) - follows
    assert memory_parameter(hw, timing, name, 1.5e9) - follows == pytest.approx(1.5 * slow, rel=0.01)


def test_does_a_coalescers_port_pass_its_bandwidth_or_its_share_of_the_l2(hw: HardwareConfig, timing: Timing) -> None:
    cycles = memory_parameter(hw, timing, "coalescer_sector") / CYCLE
    share = timing.l2.read_bytes_per_second / len(timing.l2.coalescer_sms)
    assert 32 / cycles * CLOCK_HZ == pytest.approx(min(timing.l2.coalescer_bytes_per_second, share), rel=0.01)


def test_does_a_sector_take_its_share_of_the_bandwidth(hw: HardwareConfig, timing: Timing) -> None:
    cycles = memory_parameter(hw, timing, "dram_read_sector") / CYCLE
    assert 32 / cycles * CLOCK_HZ == pytest.approx(timing.dram.read_bytes_per_second, rel=0.01)


def leaves(section: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Dotted places of all numbers of a timing section."""
    entries = section.items() if isinstance(section, dict) else ((n, getattr(section, n)) for n in type(section).model_fields)
    for name, value in entries:
        if isinstance(value, (int, float)):
            yield (*path, name)
        elif not isinstance(value, tuple):
            yield from leaves(value, (*path, name))


def changed(document: Any, path: tuple[str, ...]) -> Any:
    """A copy of nested dictionaries with one number a little different."""
    first, *rest = path
    value = document[first]
    if rest:
        return {**document, first: changed(value, tuple(rest))}
    return {**document, first: value + 1 if isinstance(value, int) else 0.6 * value or 0.5}


KINDS = [Instruction(name, argument=(16, 8, 16, 16)) for name in opcodes() if name != "HGMMA"]
ARGUMENTS = [(16, 8, 8, 16), (16, 8, 16, 16), (16, 8, 32, 16), (16, 8, 8, 64), (8, 8, 4, 64), (16, 8, 64, 8), (16, 8, 8, 32)]
MMAS = [Instruction("HMMA", argument=a) for a in ARGUMENTS]
ASYNC = [Instruction("HGMMA", argument=(n, 32, shared, 1)) for n in (8, 256) for shared in (0, 1)]
ROWS = ((16, 8192), (64, 8192), (64, 8200), (256, 8192))
"""Elements of a box row, bytes between rows."""
MAPS = tuple(TensorMap("t", 2, (4096, 64), (pitch,), (n, 8), 0, 0) for n, pitch in ROWS)


def everything(hw: HardwareConfig, timing: Timing) -> np.ndarray:
    """All numbers that lowering gives to the engine, for every instruction that the chip can execute."""
    rows = []
    for instruction in [*KINDS, *MMAS, *ASYNC, Instruction("MEMBAR.SC.GPU"), Instruction("IMAD.HI"), Instruction("IADD3")]:
        try:
            rows.append(lower_static(static_table([instruction]), timing).ravel())
        except UserError:
            continue
    trace = kernel_trace([], tensors=MAPS)
    return np.concatenate(
        [
            *rows,
            lower_sm_parameters(timing),
            lower_sm_parameters(timing, ctas_per_sm=2),
            lower_memory_parameters(hw, timing, CLOCK_HZ, 0),
            lower_tensors(trace, timing).ravel(),
        ]
    )


USED_ELSEWHERE = ("launch.drain_cycles", "clock.", "l1.ways", "l2.ways", "l2.coalescer_lines")
"""By the projection and by the shape of the machine."""
CHOOSES = "operand_bits"
"""Chooses among measured sizes: a slightly different one chooses the same."""


def test_does_every_timing_value_of_the_chip_reach_the_engine(hw: HardwareConfig, timing: Timing) -> None:
    plain = everything(hw, timing)
    ignored = []
    for path in leaves(timing):
        name = ".".join(path)
        if name.startswith(USED_ELSEWHERE) or name.endswith(CHOOSES):
            continue
        other = Timing.model_validate(changed(timing.model_dump(), path))
        found = everything(hw, other)
        if len(found) == len(plain) and (found == plain).all():
            ignored.append(name)
    assert not ignored


def test_does_the_machine_have_the_chips_caches(hw: HardwareConfig, timing: Timing) -> None:
    program = lower(kernel_trace([Instruction("NOP")]), hw)
    plan = Plan(n_sms=2, n_chip_sms=8, n_slots=1, sample_shift=0, clock_hz=CLOCK_HZ, l1_bytes=128 * 1024)
    shape = machine_shape(hw, timing, plan, program)
    sections = hw.execution_sections()
    lines = shape.l2_sets * shape.l2_ways * shape.n_partitions
    assert lines * 128 == pytest.approx(sections.l2.capacity_bytes, rel=0.01)
    assert shape.l1_sets * shape.l1_ways * 128 == 128 * 1024
    assert shape.members == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_is_a_kernel_of_another_instruction_set_refused(hw: HardwareConfig) -> None:
    with pytest.raises(UserError, match="compiled for gfx942"):
        lower(kernel_trace([Instruction("NOP")], arch="gfx942"), hw)
