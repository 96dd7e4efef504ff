"""lower(trace, chip) -> Program: the one place where a kernel meets a chip."""

from __future__ import annotations

import numpy as np

from simulator.errors import Unsupported, UserError
from simulator.hw.config import HardwareConfig
from simulator.hw.timing import Timing
from simulator.isa.effects import N_CAUSES
from simulator.lower.class_origins import with_common_origins
from simulator.lower.empty_passes import takes_idle_pass
from simulator.lower.events import lower_events, lower_tensors, separate_uses
from simulator.lower.instructions import lower_static
from simulator.lower.regions import phases_of
from simulator.sm.inputs import I_IDLE_PASS, I_PHASE, Program
from simulator.trace.kernel_trace import KernelTrace


def timing_of(hw: HardwareConfig) -> Timing:
    """The chip's execution timing, or a sentence that says it is missing."""
    if hw.timing is None:
        raise Unsupported(
            f"chip '{hw.name}' has no 'timing' section: occupancy and access questions work, "
            "projecting a kernel needs pipe, memory and launch timings"
        )
    return hw.timing


def check_instruction_set(trace: KernelTrace, hw: HardwareConfig) -> None:
    """A trace runs on chips that name its instruction set."""
    known = (hw.identity.instruction_set, *hw.identity.compatible_instruction_sets)
    if trace.arch not in known:
        raise UserError(
            f"kernel '{trace.kernel}' is compiled for {trace.arch}, chip '{hw.name}' executes {', '.join(map(str, known))}"
        )


def ready_to_lower(trace: KernelTrace) -> KernelTrace:
    """The same accesses: one event row per kind of access, and addresses that classes of CTAs have in common."""
    return with_common_origins(separate_uses(trace))


def lower(trace: KernelTrace, hw: HardwareConfig) -> Program:
    """Contiguous read-only columns with every per-instruction timing resolved. Pass traces through ``ready_to_lower``."""
    timing = timing_of(hw)
    check_instruction_set(trace, hw)
    streams = [stream for warps in trace.streams for stream in warps]
    starts = np.zeros(len(streams) + 1, np.int64)
    starts[1:] = np.cumsum([len(stream) for stream in streams])
    base = trace.cta_base if trace.cta_base.shape[1] else np.zeros((trace.launch.n_ctas, 1), np.int64)
    static = lower_static(trace.static, timing)
    static[:, I_IDLE_PASS] = takes_idle_pass(trace)
    static[:, I_PHASE] = phases_of(trace) * N_CAUSES
    return Program(
        static=static,
        instruction=np.concatenate([s.instruction for s in streams], dtype=np.int32),
        active=np.concatenate([s.active for s in streams], dtype=np.uint8),
        event=np.concatenate([s.event for s in streams], dtype=np.int32),
        stream_start=starts,
        tensor=lower_tensors(trace, timing),
        cta_class=trace.cta_class.astype(np.int32),
        cta_base=np.ascontiguousarray(base, np.int64),
        **lower_events(trace, hw),
    )
