"""The cycle stack: every cycle of a kernel's span belongs to one cause, exactly.

Counted are the ticks of every sub-partition that had a warp, from the launch to the end.  The engine books them by role,
phase and cause (sm/stalls.py); here the parts that only the whole run tells apart are separated: bank conflicts from other
shared-memory time, operand fetch from tensor time, prologue and epilogue from the steady phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.device.machine import Plan, Run
from simulator.isa.effects import (
    CAUSE_CONFLICTS,
    CAUSE_DRAM_BANDWIDTH,
    CAUSE_EPILOGUE,
    CAUSE_ISSUE,
    CAUSE_L2,
    CAUSE_LAUNCH,
    CAUSE_PROLOGUE,
    CAUSE_SHARED,
    CAUSE_TAIL,
    CAUSE_TENSOR,
    CAUSES,
    EPILOGUE,
    N_CAUSES,
    PHASES,
    PROLOGUE,
    STALL_REASONS,
)
from simulator.projection.shared_traffic import SharedTraffic
from simulator.sm.inputs import CYCLE
from simulator.sm.layout import N_SMS, P_TENSOR_BUSY, P_TENSOR_STRETCHED, SM_SIZE, SMS

KEEP_THEIR_NAME = (CAUSE_TENSOR, CAUSE_TAIL, CAUSE_LAUNCH)
"""Causes that are not renamed to the phase in which they occur."""
CAUSE_OF_BOUND = {
    "tensor": CAUSE_TENSOR,
    "issue": CAUSE_ISSUE,
    "shared_memory": CAUSE_SHARED,
    "l2": CAUSE_L2,
    "dram": CAUSE_DRAM_BANDWIDTH,
    "launch": CAUSE_LAUNCH,
}


@dataclass(frozen=True)
class CycleStack:
    """``ticks`` by cause, they sum to ``total_ticks``; ``by_role`` and ``by_phase``: ticks by cause of the same cycles, cut
    by the role of the warp that issued next and by the phase it was in; ``stalls_by_role``: shares by stall reason."""

    ticks: dict[str, int]
    total_ticks: int
    by_role: dict[str, dict[str, int]]
    by_phase: dict[str, dict[str, int]]
    stalls_by_role: dict[str, dict[str, float]]

    @property
    def shares(self) -> dict[str, float]:
        """Fractions of the kernel's cycles by cause; they sum to 1."""
        return shares_of(self.ticks)

    def to_json(self) -> dict[str, object]:
        """The exact sums, and the cuts by role and phase as shares that sum to 1 each."""
        return {
            "ticks": self.ticks,
            "total_ticks": self.total_ticks,
            "role_shares": _weights(self.by_role),
            "by_role": {role: shares_of(ticks) for role, ticks in self.by_role.items()},
            "phase_shares": _weights(self.by_phase),
            "by_phase": {phase: shares_of(ticks) for phase, ticks in self.by_phase.items()},
            "stalls_by_role": self.stalls_by_role,
        }


def shares_of(ticks: Mapping[str, int]) -> dict[str, float]:
    """Ticks as fractions of their sum, 0 if there are none."""
    total = sum(ticks.values())
    return {name: value / total if total else 0.0 for name, value in ticks.items()}


def _weights(groups: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    return shares_of({name: sum(ticks.values()) for name, ticks in groups.items()})


def cycle_stack(
    run: Run,
    plan: Plan,
    n_ctas: int,
    roles: Sequence[str],
    shared: SharedTraffic,
    cycles: float,
    drain_cycles: float,
    bound_by: str,
) -> CycleStack:
    """Divide ``cycles`` of a replay. What lies beyond the replay's end is the launch's drain, then the tightest bound's."""
    cells = run.stack.copy()
    separate(cells, CAUSE_TENSOR, CAUSE_SHARED, *stretched(run.machine))
    separate(cells, CAUSE_SHARED, CAUSE_CONFLICTS, *conflicted(shared))
    leave_idle(cells, idle_beyond_simulated(run, plan, n_ctas))
    n_used = int(cells.sum()) // max(1, run.end_ticks)
    beyond = max(0, round(cycles * CYCLE) - run.end_ticks)
    drain = min(beyond, round(drain_cycles * CYCLE))
    cells[0, EPILOGUE, CAUSE_LAUNCH] += drain * n_used
    cells[0, EPILOGUE, CAUSE_OF_BOUND.get(bound_by, CAUSE_ISSUE)] += (beyond - drain) * n_used
    ticks = named(folded(cells))
    return CycleStack(
        ticks=ticks,
        total_ticks=int(cells.sum()),
        by_role={role: named(folded(cells[r : r + 1])) for r, role in enumerate(roles)},
        by_phase={phase: named(cells[:, p].sum(0)) for p, phase in enumerate(PHASES) if cells[:, p].any()},
        stalls_by_role={role: _stall_shares(run.row_stalls[r].sum(0)) for r, role in enumerate(roles)},
    )


def separate(cells: np.ndarray, whole: int, part: int, numerator: int, denominator: int) -> None:
    """Move a fraction of each cell's time of one cause to another; sums stay what they are."""
    if denominator <= 0:
        return
    moved = np.array([int(v) * numerator // denominator for v in cells[..., whole].ravel()], np.int64).reshape(cells.shape[:-1])
    cells[..., whole] -= moved
    cells[..., part] += moved


def idle_beyond_simulated(run: Run, plan: Plan, n_ctas: int) -> int:
    """Ticks, over the simulated sub-partitions, in which SMs that are not simulated have no CTA of the last wave.

    A simulated SM is busy as long as one of the SMs that it stands for is; the others idle meanwhile.
    """
    left = n_ctas % (plan.n_chip_sms * plan.n_slots)
    if not left or not len(run.cta_span):
        return 0
    n_running = min(left, plan.n_sms)
    share = n_running / plan.n_sms - min(1.0, left / plan.n_chip_sms)
    last = run.cta_span[np.argsort(run.cta_span[:, 1])[-n_running:]]
    duration = float((last[:, 1] - last[:, 0]).mean())
    return max(0, round(share * duration * CYCLE * run.n_subpartitions))


def leave_idle(cells: np.ndarray, ticks: int) -> None:
    """Move ``ticks`` of work to the tail, from all causes but launch and tail in proportion; sums stay what they are."""
    working = [cause for cause in range(N_CAUSES) if cause not in (CAUSE_LAUNCH, CAUSE_TAIL)]
    total = int(cells[..., working].sum())
    for cause in working:
        separate(cells, cause, CAUSE_TAIL, min(ticks, total), total)


def stretched(machine: np.ndarray) -> tuple[int, int]:
    """(ticks by which operand fetch prolonged MMAs, ticks of all MMAs), over the simulated SMs."""
    x = machine
    sms = [x[SMS] + s * x[SM_SIZE] for s in range(x[N_SMS])]
    return sum(int(x[sm + P_TENSOR_STRETCHED]) for sm in sms), sum(int(x[sm + P_TENSOR_BUSY]) for sm in sms)


def conflicted(shared: SharedTraffic) -> tuple[int, int]:
    """(bank conflicts, wavefronts of all accesses but operand fetch)."""
    accesses = shared.wavefronts - shared.tensor_wavefronts
    return min(shared.bank_conflicts, accesses), accesses


def folded(cells: np.ndarray) -> np.ndarray:
    """Ticks by cause, int64 [N_CAUSES]: time before and after the main loop is the prologue's and the epilogue's."""
    total = cells.sum((0, 1))
    for phase, cause in ((PROLOGUE, CAUSE_PROLOGUE), (EPILOGUE, CAUSE_EPILOGUE)):
        for other in range(N_CAUSES):
            if other not in (*KEEP_THEIR_NAME, cause):
                moved = cells[:, phase, other].sum()
                total[other] -= moved
                total[cause] += moved
    return total


def named(ticks: np.ndarray) -> dict[str, int]:
    """By name, causes that took no time left out."""
    return {name: int(value) for name, value in zip(CAUSES, ticks, strict=True) if value}


def _stall_shares(ticks: np.ndarray) -> dict[str, float]:
    total = max(1, int(ticks.sum()))
    return {name: int(value) / total for name, value in zip(STALL_REASONS, ticks, strict=True) if value}
