"""Where a kernel spends its warps' time: each machine instruction with its issues, waits and traffic.

Issues, wavefronts, sectors and bytes are exact counts of the launch.  Stall cycles are those of the simulated warps, scaled
to the launch; as in hardware profilers they belong to the instruction that waits to issue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import LINE_BYTES, SELECTED, STALL_REASONS
from simulator.lower.events import EventUse, shared_costs
from simulator.projection.run import SECTOR_BYTES, Replay
from simulator.sm.inputs import CYCLE, E_COUNT, E_PATTERN, Program
from simulator.trace.kernel_trace import KernelTrace


@dataclass(frozen=True)
class CodeLine:
    """One instruction. ``issues``: warp instructions of the launch; ``stall_cycles``: warp cycles spent waiting to issue it,
    ``stalls``: the same by reason; shared-memory ``wavefronts`` and the fewest possible; ``sectors`` of global accesses and
    the fewest possible for their ``bytes``."""

    address: int
    text: str
    source: str
    issues: int
    stall_cycles: float
    share: float
    stalls: dict[str, float]
    wavefronts: int
    ideal_wavefronts: int
    sectors: int
    ideal_sectors: int
    bytes: int

    @property
    def top_reason(self) -> str:
        """The reason that most of its stall cycles have."""
        return max(self.stalls, key=lambda reason: self.stalls[reason]) if self.stalls else ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def annotate(replay: Replay, hw: HardwareConfig, lines: Mapping[int, tuple[str, int]] | None = None) -> list[CodeLine]:
    """Every instruction that the kernel executes, in address order. ``replay`` must have kept its profile; ``lines``:
    source line by address."""
    trace, run = replay.trace, replay.run
    scale = trace.warp_instructions / max(1, run.represented) / CYCLE
    waits = run.row_stalls.sum(0).astype(float) * scale
    waits[:, SELECTED] = 0.0
    total = max(1.0, float(waits.sum()))
    traffic = row_traffic(trace, replay.program, hw)
    return [
        CodeLine(
            address=int(trace.static.address[row]),
            text=trace.static.text[row],
            source=_source(lines or {}, int(trace.static.address[row])),
            issues=int(traffic["issues"][row]),
            stall_cycles=float(waits[row].sum()),
            share=float(waits[row].sum()) / total,
            stalls={name: float(v) for name, v in zip(STALL_REASONS, waits[row], strict=True) if v > 0},
            wavefronts=int(traffic["wavefronts"][row]),
            ideal_wavefronts=int(traffic["wavefronts"][row] - traffic["conflicts"][row]),
            sectors=int(traffic["sectors"][row]),
            ideal_sectors=int(traffic["ideal_sectors"][row]),
            bytes=int(traffic["bytes"][row]),
        )
        for row in np.flatnonzero(traffic["issues"])
    ]


def hottest(code: list[CodeLine], n: int) -> list[CodeLine]:
    """The ``n`` instructions with most stall cycles."""
    return sorted(code, key=lambda line: -line.stall_cycles)[:n]


def _source(lines: Mapping[int, tuple[str, int]], address: int) -> str:
    if address not in lines:
        return ""
    file, number = lines[address]
    return f"{PurePath(file).name}:{number}"


def row_traffic(trace: KernelTrace, program: Program, hw: HardwareConfig) -> dict[str, np.ndarray]:
    """Issues, wavefronts, conflicts, sectors, fewest sectors and bytes of each static row over the launch, int64 [n_static]."""
    wavefronts, conflicts = shared_costs(trace, hw)
    sectors, n_bytes = global_traffic(trace, program)
    by_event = {
        "wavefronts": wavefronts,
        "conflicts": conflicts,
        "sectors": sectors,
        "ideal_sectors": np.where(sectors > 0, -(-n_bytes // SECTOR_BYTES), 0),
        "bytes": n_bytes,
    }
    totals = {name: np.zeros(len(trace.static), np.int64) for name in ("issues", *by_event)}
    n_ctas = np.bincount(trace.cta_class, minlength=trace.n_classes)
    for warps, count in zip(trace.streams, n_ctas, strict=True):
        for stream in warps:
            totals["issues"] += count * np.bincount(stream.instruction, minlength=len(trace.static))
            used = (stream.event >= 0) & (stream.active > 0)
            rows, events = stream.instruction[used], stream.event[used]
            for name, cost in by_event.items():
                np.add.at(totals[name], rows, count * cost[events])
    return totals


def global_traffic(trace: KernelTrace, program: Program) -> tuple[np.ndarray, np.ndarray]:
    """(sectors, bytes) that each event requests of global and local memory, int64 [n_events] each.

    Global accesses at the first misalignment that occurs."""
    use = EventUse(trace)
    events = trace.events
    sectors = np.zeros(len(events), np.int64)
    n_bytes = np.zeros(len(events), np.int64)
    pattern = program.event_table[:, E_PATTERN]
    is_global = pattern >= 0
    counts = np.array([int(mask).bit_count() for mask in program.line_mask], np.int64)
    before = np.concatenate([[0], np.cumsum(counts)])
    first = pattern[is_global] * program.misalignment_slot[LINE_BYTES]
    sectors[is_global] = before[program.variant_start[first + 1]] - before[program.variant_start[first]]
    lanes = (trace.lane_patterns >= 0).sum(1)
    distinct = np.array([len(np.unique(p[p >= 0])) for p in trace.lane_patterns], np.int64) if len(lanes) else lanes
    n_bytes[is_global] = distinct[events.pattern[is_global]] * np.maximum(use.width[is_global], 1)
    local = np.isin(use.base, ("LDL", "STL"))
    words = program.event_table[local, E_COUNT]
    sectors[local], n_bytes[local] = words * (LINE_BYTES // SECTOR_BYTES), words * LINE_BYTES
    boxes = events.tensor >= 0
    n_bytes[boxes] = events.count[boxes]
    sectors[boxes] = -(-events.count[boxes] // SECTOR_BYTES)
    return sectors, n_bytes
