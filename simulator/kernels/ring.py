"""A ring of buffers in shared memory: a barrier per stage that its bytes complete, and one that its readers release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.writer import CtaClass

BARRIER_BYTES = 8


@dataclass(frozen=True)
class Ring:
    """``stages`` of ``stage_bytes`` announced bytes; ``barriers``: offset of the first barrier, in bytes: all full ones, then
    all empty ones."""

    stages: int
    stage_bytes: int
    barriers: int

    def full(self, stage: np.ndarray | int) -> np.ndarray | int:
        """Offset of the mbarrier that a stage's bytes complete."""
        return self.barriers + stage * BARRIER_BYTES

    def empty(self, stage: np.ndarray | int) -> np.ndarray | int:
        """Offset of the mbarrier that a stage's readers release."""
        return self.full(stage) + self.stages * BARRIER_BYTES

    def filled(self, cta: CtaClass, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """(try_wait for a full stage, expect of its bytes): event rows int32 [steps] of ring positions from ``first``."""
        place = first + np.arange(steps)
        full = self.full(place % self.stages)
        wait = cta.events(mbarrier=full, shared_address=full, parity=place // self.stages & 1)
        return wait, cta.events(mbarrier=full, shared_address=full, count=self.stage_bytes)

    def freed(self, cta: CtaClass, first: int, steps: int) -> np.ndarray:
        """try_wait for an empty stage: event rows int32 [steps]."""
        place = first + np.arange(steps)
        empty = self.empty(place % self.stages)
        return cta.events(mbarrier=empty, shared_address=empty, parity=(place // self.stages & 1) ^ 1)

    def released(self, cta: CtaClass, first: int, steps: int, count: int = 1) -> np.ndarray:
        """A reader's release of a stage: event rows int32 [steps]."""
        empty = self.empty((first + np.arange(steps)) % self.stages)
        return cta.events(mbarrier=empty, count=count, shared_address=empty)
