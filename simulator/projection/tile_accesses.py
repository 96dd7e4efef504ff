"""Shared-memory accesses of a design: wavefronts and conflicts of each, and a verified layout where there are conflicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.table import pipe_of
from simulator.lower.access_advice import Suggestion, advise
from simulator.lower.access_answer import bank_rules
from simulator.lower.access_kinds import AccessKind
from simulator.lower.shared_access import shared_cost
from simulator.trace.kernel_trace import KernelTrace

KINDS = {"LDS": AccessKind.LDS, "STS": AccessKind.STS, "LDSM": AccessKind.LDSM, "STSM": AccessKind.STSM, "LDGSTS": AccessKind.STS}


@dataclass(frozen=True)
class TileAccess:
    """One kind of shared access. ``executions``: warp instructions of a CTA; wavefronts and conflicts are of one execution
    of the worst pattern (``lane_offsets``, bytes) and, ``total_``, of all of the CTA's."""

    name: str
    width_bytes: int
    executions: int
    wavefronts: int
    ideal_wavefronts: int
    bank_conflicts: int
    total_wavefronts: int
    total_bank_conflicts: int
    suggestion: Suggestion | None
    lane_offsets: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def shared_accesses(trace: KernelTrace, hw: HardwareConfig) -> list[TileAccess]:
    """Accesses of the first CTA class, by opcode and width; what conflicts most comes first."""
    counted = _count(trace)
    found = []
    for (opcode, width), patterns in counted.items():
        kind = KINDS[opcode.split(".")[0]]
        n_matrices = kind in (AccessKind.LDSM, AccessKind.STSM)
        access_width = max(width // 4, 1) if n_matrices else width
        numbers = np.array(list(patterns))
        times = np.array(list(patterns.values()))
        offsets = trace.lane_patterns[numbers].astype(np.int64)
        cost = shared_cost(kind, access_width, offsets, bank_rules(hw))
        worst = int(np.argmax(cost.bank_conflicts))
        advice = advise(kind, access_width, offsets[worst], bank_rules(hw)) if cost.bank_conflicts[worst] else None
        found.append(
            TileAccess(
                name=opcode,
                width_bytes=width,
                executions=int(times.sum()),
                wavefronts=int(cost.wavefronts[worst]),
                ideal_wavefronts=int(cost.ideal_wavefronts[worst]),
                bank_conflicts=int(cost.bank_conflicts[worst]),
                total_wavefronts=int((cost.wavefronts * times).sum()),
                total_bank_conflicts=int((cost.bank_conflicts * times).sum()),
                suggestion=advice.suggestion if advice else None,
                lane_offsets=tuple(offsets[worst].tolist()),
            )
        )
    found += _port_uses(trace, hw)
    return sorted(found, key=lambda access: -access.total_bank_conflicts)


def _count(trace: KernelTrace) -> dict[tuple[str, int], dict[int, int]]:
    """(opcode, width) -> pattern -> executions of a CTA."""
    static = trace.static
    base = static.mnemonics
    counted: dict[tuple[str, int], dict[int, int]] = {}
    for stream in trace.streams[0]:
        on = np.isin(base[stream.instruction], list(KINDS)) & (stream.active > 0) & (stream.event >= 0)
        rows, events = stream.instruction[on], stream.event[on]
        column = np.where(base[rows] == "LDGSTS", trace.events.shared_pattern[events], trace.events.pattern[events])
        uses, times = np.unique(np.stack([rows, column]), axis=1, return_counts=True)
        for row, pattern, n in zip(*uses.tolist(), times.tolist(), strict=True):
            key = (static.opcode[row], int(static.width_bytes[row]))
            patterns = counted.setdefault(key, {})
            patterns[pattern] = patterns.get(pattern, 0) + n
    return counted


def _port_uses(trace: KernelTrace, hw: HardwareConfig) -> list[TileAccess]:
    """Operands of asynchronous multiply-adds and rows of bulk copies: whole wavefronts, which their layouts make so."""
    port = hw.shared_memory.bandwidth_bytes_per_cycle
    static = trace.static
    pipes = np.array([pipe_of(opcode) for opcode in static.opcode])
    found: dict[str, list[int]] = {}
    for stream in trace.streams[0]:
        on = stream.active > 0
        for row, n in zip(*np.unique(stream.instruction[on], return_counts=True), strict=True):
            if pipes[row] == "tensor_async":
                columns, k_bytes, a_is_shared, _ = static.argument[row].tolist()
                n_bytes = (columns + 64 * a_is_shared) * k_bytes
                entry = found.setdefault(f"{static.opcode[row]} operands", [0, -(-n_bytes // port), 0])
                entry[0] += int(n)
        copies = on & (pipes[stream.instruction] == "bulk_load")
        for tensor, n in zip(*np.unique(trace.events.tensor[stream.event[copies]], return_counts=True), strict=True):
            box = trace.tensor_maps[tensor]
            rows = int(np.prod(box.box[1:]))
            wavefronts = rows * -(-box.box[0] * box.element_bytes // port)
            ideal = -(-rows * box.box[0] * box.element_bytes // port)
            entry = found.setdefault(f"bulk copy of {box.name}", [0, wavefronts, wavefronts - ideal])
            entry[0] += int(n)
    return [TileAccess(name, 0, n, each, each - lost, 0, n * each, 0, None) for name, (n, each, lost) in found.items()]
