"""Passes of the shared-memory port that move no data, but that the profiler counts as wavefronts."""

from __future__ import annotations

import numpy as np

from simulator.isa.effects import TENSOR_ASYNC
from simulator.sm.inputs import I_EFFECT, Program
from simulator.trace.kernel_trace import KernelTrace, Stream

ACCESSES = ("LDS", "LDSM", "STS", "STSM")
MBARRIER_USES = ("TRYWAIT", "ARRIVE")


def takes_idle_pass(trace: KernelTrace) -> np.ndarray:
    """Static instructions that take one pass when all their lanes are off, bool [n_static] (measured)."""
    return np.isin(trace.static.mnemonics, ACCESSES)


def synchronization_passes(trace: KernelTrace) -> np.ndarray:
    """Passes of barriers and mbarriers per issue, float64 [n_static].

    Measured: a wait for or arrival on an mbarrier takes one, a barrier one per CTA.
    """
    passes = np.zeros(len(trace.static))
    for i, opcode in enumerate(trace.static.opcode):
        parts = opcode.split(".")
        if parts[0] == "BAR":
            passes[i] = 1 / trace.launch.n_warps
        elif parts[0] == "SYNCS" and any(use in parts for use in MBARRIER_USES):
            passes[i] = 1
    return passes


class MmaGroups:
    """Which instructions commit a group of asynchronous MMAs, and which wait for groups."""

    def __init__(self, trace: KernelTrace, program: Program) -> None:
        self._argument = trace.static.argument
        self._commits = (program.static[:, I_EFFECT] == TENSOR_ASYNC) & (self._argument[:, 3] != 0)
        self._waits = np.array([opcode.startswith("WARPGROUP.DEPBAR") for opcode in trace.static.opcode])

    def none_in_flight(self, stream: Stream) -> np.ndarray:
        """Places of a warp's stream before which it has waited for all its asynchronous MMAs, bool [len(stream)].

        Synchronization counts there alone (measured: none in loops that keep a group in flight).
        """
        committed = np.cumsum(self._commits[stream.instruction])
        completed = np.where(self._waits[stream.instruction], committed - self._argument[stream.instruction, 0], 0)
        return committed <= np.maximum.accumulate(completed)
