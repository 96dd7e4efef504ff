"""Is every cycle of every sub-partition attributed once, whatever the program and the machine?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator.device.machine import collect
from simulator.device.steady_state import apportion
from simulator.isa.effects import (
    CAUSE_BARRIER,
    CAUSE_DRAM_LATENCY,
    CAUSE_EPILOGUE,
    CAUSE_L2,
    CAUSE_LAUNCH,
    CAUSE_SHARED,
    CAUSE_TENSOR,
    N_CAUSES,
)
from simulator.projection.cycle_stack import folded, separate
from simulator.sm.inputs import CYCLE
from tests.engine import instructions as do
from tests.engine.machine import Machine, Outcome, run
from tests.engine.programs import Op, assemble
from tests.reference.random_programs import kernels, machines

bounded = settings(max_examples=15, deadline=None)


def stack_of(outcome: Outcome, machine: Machine) -> tuple[np.ndarray, int, int]:
    """(ticks by role, phase and cause; sub-partitions that had a warp; end of the run in ticks)."""
    found = collect(outcome.x, machine.shape(outcome.program), outcome.n_issued)
    return found.stack, found.n_subpartitions, found.end_ticks


def causes(warps: list[list[Op]], machine: Machine) -> np.ndarray:
    """Cycles by cause of one CTA, over its sub-partitions."""
    stack, _, _ = stack_of(run(assemble(warps), machine), machine)
    return stack.sum((0, 1)) / CYCLE


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 5), n_sms=st.integers(1, 3))
@bounded
def test_do_the_causes_sum_to_the_time_of_every_used_sub_partition(
    kernel: list[list[Op]], machine: Machine, n_ctas: int, n_sms: int
) -> None:
    chip = replace(machine, members=tuple((sm,) for sm in range(n_sms)))
    outcome = run(assemble(kernel, n_ctas=n_ctas), chip)
    assume(outcome.finished)
    stack, n_used, end = stack_of(outcome, chip)
    n_warps = outcome.program.n_warps
    assert stack.min() >= 0
    assert stack.sum() == n_used * end
    assert n_used == len({(i.sm, (i.slot * n_warps + i.warp) % 4) for i in outcome.log})


@given(kernel=kernels(), machine=machines())
@bounded
def test_is_the_time_of_tensor_cores_theirs(kernel: list[list[Op]], machine: Machine) -> None:
    outcome = run(assemble(kernel), machine)
    stack, n_used, _ = stack_of(outcome, machine)
    busy = outcome.counter("tensor_busy_ticks")
    assert stack[..., CAUSE_TENSOR].sum() <= n_used * busy
    if not busy:
        assert stack[..., CAUSE_TENSOR].sum() == 0


@given(
    cells=st.lists(st.integers(0, 1 << 50), min_size=3 * N_CAUSES, max_size=3 * N_CAUSES),
    share=st.integers(0, 1 << 40),
    rest=st.integers(0, 1 << 40),
)
def test_does_separating_and_folding_keep_the_sum(cells: list[int], share: int, rest: int) -> None:
    stack = np.array(cells, np.int64).reshape(1, 3, N_CAUSES)
    before = stack.sum()
    separate(stack, CAUSE_TENSOR, CAUSE_SHARED, share, share + rest)
    assert stack.min() >= 0
    assert stack.sum() == before == folded(stack).sum()


@given(parts=st.lists(st.integers(0, 1 << 50), min_size=1, max_size=40), total=st.integers(0, 1 << 60))
def test_do_extrapolated_waves_add_up(parts: list[int], total: int) -> None:
    shares = apportion(np.array([*parts, 1], np.int64), total)
    assert shares.sum() == total
    assert shares.min() >= 0


def test_is_the_launch_apart_from_the_work() -> None:
    machine = Machine(sm={"launch_latency": 500})
    assert causes([[do.alu(), do.alu()]], machine)[CAUSE_LAUNCH] == 500


def test_is_a_wait_for_dram_split_into_the_l2_part_and_the_rest() -> None:
    warm = [do.load(0, ((0, 15),), write=0), do.nop(wait=(0,))]
    found = causes([[*warm]], Machine())
    assert found[CAUSE_DRAM_LATENCY] == 400
    assert found[CAUSE_L2] > 200


def test_is_a_read_that_the_l2_has_the_l2s() -> None:
    twice = [do.load(0, ((0, 15),), write=0), do.nop(wait=(0,)), do.load(0, ((0, 15),), write=0), do.nop(wait=(0,))]
    once, both = (causes([ops], Machine()) for ops in (twice[:2], twice))
    assert both[CAUSE_DRAM_LATENCY] == once[CAUSE_DRAM_LATENCY]
    assert both[CAUSE_L2] - once[CAUSE_L2] >= 200


def test_is_queueing_for_wavefronts_shared_memory_time() -> None:
    few, many = (causes([[do.shared(n, write=0, latency=23), do.nop(wait=(0,))]], Machine()) for n in (1, 32))
    assert many[CAUSE_SHARED] - few[CAUSE_SHARED] == 31


def test_is_waiting_for_other_warps_a_barriers_time() -> None:
    quick = [do.bar(), do.nop()]
    found = causes([[do.alu(stall=300), *quick], quick, quick, quick], Machine())
    assert found[CAUSE_BARRIER] >= 3 * 290


def test_does_a_run_that_ends_in_writes_end_in_its_epilogue() -> None:
    assert causes([[do.store(0, tuple((n, 15) for n in range(8)))]], Machine())[CAUSE_EPILOGUE] >= 31
