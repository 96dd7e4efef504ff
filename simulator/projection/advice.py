"""Rules that turn evidence into advice. A rule that applies proposes a remedy; what it gains is replayed, and advice
without a gain is not given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.hw.config import HardwareConfig
from simulator.isa.effects import EPILOGUE, FIXED, N_CAUSES, PIPE_TRANSCENDENTAL, STEADY
from simulator.projection.annotated_code import CodeLine, global_traffic
from simulator.projection.ideals import IDEALS, PERFECT_TAIL, Edit, with_free_pipes, without_conflicts
from simulator.projection.more_bulk_stages import with_bulk_copies_ahead
from simulator.projection.more_stages import group_bytes, groups_per_stage, with_copies_ahead
from simulator.projection.plan import DEFAULT_INSTRUCTION_BUDGET
from simulator.projection.projection import Projection
from simulator.projection.remedies import narrow_rows, rasters, with_dense_accesses, with_longer_rows, without_rows
from simulator.projection.run import Replay, project_replay, replay_trace
from simulator.projection.what_if import replayed_cycles
from simulator.sm.inputs import I_EFFECT, I_PHASE, I_PIPE
from simulator.trace.kernel_trace import KernelTrace

SMALLEST_GAIN = 0.02
"""Advice that saves less than 2 % of the cycles is not given."""
CONFLICT_SHARE = 0.05
EXPOSED_SHARE = 0.15
TAIL_SHARE = 0.08
SCATTER = 1.5
EPILOGUE_SHARE = 0.1
SOFTMAX_SHARE = 0.1
NARROW_ROW = 1.25
SPILL_SHARE = 0.005
REREAD = 1.3
CLIFF = 0.25
MOST_MORE_STAGES = 8
PATIENCE = 2
"""Stages without a gain before no more are tried: one may cost a CTA per SM, and the next make up for it."""
ASYNCHRONOUS = ("UTMALDG", "LDGSTS", "UBLKCP")


@dataclass(frozen=True)
class Case:
    """What rules look at: a projection, its replay with profile, its annotated code."""

    projection: Projection
    replay: Replay
    code: list[CodeLine]
    hw: HardwareConfig
    instruction_budget: int = DEFAULT_INSTRUCTION_BUDGET

    def share(self, *causes: str) -> float:
        """Share of the cycles that the stack attributes to causes."""
        return sum(self.projection.cycle_stack.get(cause, 0.0) for cause in causes)

    def issue_share(self, *prefixes: str) -> float:
        """Share of the warp instructions whose opcode begins with one of ``prefixes``."""
        mine = sum(line.issues for line in self.code if line.text.split()[-1:] and _opcode(line).startswith(prefixes))
        return mine / max(1, self.projection.warp_instructions)

    def cycles_with(self, trace: KernelTrace | None = None, edit: Edit | None = None) -> float:
        """Cycles of the kernel with another trace or an edited program."""
        replay = replay_trace(trace or self.replay.trace, self.hw, self.instruction_budget, edit=edit)
        return project_replay(replay, self.hw, 0.0).cycles


@dataclass(frozen=True)
class Advice:
    """``threshold``: when the rule applies; ``evidence``: the figures that it saw; ``where``: instructions, the worst first;
    ``gain``: share of the cycles that the replayed remedy saves."""

    rule: str
    advice: str
    threshold: str
    evidence: dict[str, Any]
    where: list[str]
    cycles: float
    gain_cycles: float
    gain: float


@dataclass(frozen=True)
class Finding:
    """A rule that applies, with the cycles that its remedy would take."""

    advice: str
    evidence: dict[str, Any]
    where: list[str]
    cycles: float


Rule = Callable[[Case], Finding | None]


def advise_on(case: Case) -> list[Advice]:
    """Advice with a replayed gain, the largest first."""
    found = []
    for name, (rule, threshold) in RULES.items():
        finding = rule(case)
        if finding is None:
            continue
        gain = 1 - finding.cycles / case.projection.cycles
        if gain >= SMALLEST_GAIN:
            saved = case.projection.cycles - finding.cycles
            found.append(Advice(name, finding.advice, threshold, finding.evidence, finding.where, finding.cycles, saved, gain))
    return sorted(found, key=lambda advice: -advice.gain)


def bank_conflicts(case: Case) -> Finding | None:
    """Accesses that take more wavefronts than their bytes need."""
    worst = sorted((c for c in case.code if c.wavefronts > c.ideal_wavefronts), key=lambda c: c.ideal_wavefronts - c.wavefronts)
    smem = case.projection.smem
    if not worst or smem["bank_conflicts"] < CONFLICT_SHARE * smem["wavefronts"]:
        return None
    ways = worst[0].wavefronts / max(1, worst[0].ideal_wavefronts)
    return Finding(
        f"swizzle or pad the shared-memory tile: {worst[0].text.split()[0]} takes {ways:.0f} times the wavefronts that it needs",
        {"bank_conflicts": smem["bank_conflicts"], "wavefronts": smem["wavefronts"], "ways": ways},
        _places(worst),
        case.cycles_with(edit=without_conflicts),
    )


def occupancy_limit(case: Case, resource: str) -> Finding | None:
    """One more CTA per SM is within reach, and latency is exposed."""
    occupancy = case.projection.occupancy
    if occupancy["limiters"] != [resource] or case.projection.waves <= 1:
        return None
    above = [c for c in occupancy["cliffs"] if c["ctas_per_sm"] > occupancy["ctas_per_sm"] and list(c["change"]) == [resource]]
    if not above:
        return None
    reach = int(above[0]["reaches"][resource])
    trace = case.replay.trace
    evidence = {"ctas_per_sm": occupancy["ctas_per_sm"], "reachable": above[0]["ctas_per_sm"], "needed": reach}
    if resource == "registers":
        evidence["registers_per_thread"] = trace.registers_per_thread
        changed = replace(trace, registers_per_thread=reach)
        amounts = f"{reach} instead of {trace.registers_per_thread} registers per thread"
    else:
        evidence["smem_bytes"] = trace.smem_bytes_per_cta
        if trace.smem_bytes_per_cta - reach > CLIFF * trace.smem_bytes_per_cta:
            return None
        static = min(trace.static_smem_bytes, reach)
        launch = replace(trace.launch, dynamic_smem_bytes=reach - static)
        changed = replace(trace, static_smem_bytes=static, launch=launch)
        amounts = f"{reach:,} instead of {trace.smem_bytes_per_cta:,} bytes of shared memory"
    advice = f"use {amounts}: {above[0]['ctas_per_sm']} CTAs per SM"
    return Finding(advice, evidence, [], case.cycles_with(changed))


def too_few_stages(case: Case) -> Finding | None:
    """Copies into shared memory whose latency is exposed. Copies are replayed one stage earlier after another, until that
    gains nothing more or shared memory is full; those of warps that do nothing else with their latency hidden."""
    exposed = case.share("hbm_bandwidth", "hbm_latency", "tma_latency", "l2")
    if exposed < EXPOSED_SHARE or not case.issue_share(*ASYNCHRONOUS):
        return None
    evidence: dict[str, Any] = {"exposed_latency": exposed}
    waiting = sorted(case.code, key=lambda c: -(c.stalls.get("mbarrier", 0) + c.stalls.get("long_scoreboard", 0)))
    if with_stages(case.replay.trace, 1) is not None:
        n_stages, cycles = _more_stages(case)
        evidence["more_stages"] = n_stages
        advice = f"add {n_stages} pipeline stage{'s' if n_stages > 1 else ''}: copies into shared memory are waited for"
    else:
        ideal = next(ideal for ideal in IDEALS if ideal.name == "hidden_memory_latency")
        cycles = replayed_cycles(case.replay.trace, case.hw, ideal, case.instruction_budget) or case.projection.cycles
        advice = "add pipeline stages: copies into shared memory are waited for (the gain is that of all latency hidden)"
    return Finding(advice, evidence, _places(waiting), cycles)


def _more_stages(case: Case) -> tuple[int, float]:
    """(stages that are enough beside those that the kernel has, cycles with them)."""
    best = 0, case.projection.cycles
    for n_stages in range(1, MOST_MORE_STAGES + 1):
        deeper = with_stages(case.replay.trace, n_stages)
        if deeper is None or deeper.smem_bytes_per_cta > case.hw.shared_memory.max_per_cta_bytes:
            break
        cycles = case.cycles_with(deeper)
        if cycles <= best[1] * (1 - SMALLEST_GAIN):
            best = n_stages, cycles
        elif n_stages - best[0] >= PATIENCE:
            break
    return best


def with_stages(trace: KernelTrace, n_more: int) -> KernelTrace | None:
    """The kernel with its copies ``n_more`` pipeline stages earlier; None where its copies are not understood."""
    if group_bytes(trace):
        return with_copies_ahead(trace, n_more * groups_per_stage(trace))
    return with_bulk_copies_ahead(trace, n_more)


def tail(case: Case) -> Finding | None:
    """The last wave leaves SMs idle."""
    if case.share("tail") < TAIL_SHARE:
        return None
    cycles = replayed_cycles(case.replay.trace, case.hw, PERFECT_TAIL, case.instruction_budget)
    if cycles is None:
        return None
    n_ctas, per_wave = case.replay.trace.launch.n_ctas, case.hw.sm.count * case.projection.occupancy["ctas_per_sm"]
    return Finding(
        f"fill whole waves: {n_ctas % per_wave} CTAs are left over after {n_ctas // per_wave} waves of {per_wave}",
        {"waves": case.projection.waves, "tail": case.share("tail")},
        [],
        cycles,
    )


def uncoalesced(case: Case) -> Finding | None:
    """Global accesses that touch more sectors than their bytes fill."""
    worst = sorted(
        (c for c in case.code if c.sectors >= SCATTER * max(1, c.ideal_sectors)), key=lambda c: c.ideal_sectors - c.sectors
    )
    if not worst:
        return None
    trace = case.replay.trace
    sectors, n_bytes = global_traffic(trace, case.replay.program)
    scattered = (trace.events.tensor < 0) & (trace.events.pattern >= 0) & (sectors * 32 >= SCATTER * np.maximum(n_bytes, 32))
    return Finding(
        f"make neighbouring lanes access neighbouring words: {worst[0].text.split()[0]} touches "
        f"{worst[0].sectors / max(1, worst[0].ideal_sectors):.1f} times the sectors that it needs",
        {"sectors": worst[0].sectors, "ideal_sectors": worst[0].ideal_sectors},
        _places(worst),
        case.cycles_with(with_dense_accesses(trace, scattered)),
    )


def spills(case: Case) -> Finding | None:
    """Registers that went to local memory and back."""
    share = case.issue_share("LDL", "STL")
    if share < SPILL_SHARE:
        return None
    rows = np.array([opcode.startswith(("LDL", "STL")) for opcode in case.replay.trace.static.opcode])
    lines = sorted((c for c in case.code if _opcode(c).startswith(("LDL", "STL"))), key=lambda c: -c.stall_cycles)
    return Finding(
        "avoid register spills: a smaller tile per thread, more warps, or a higher register limit",
        {"local_instructions": share, "local_bytes_per_thread": case.replay.trace.local_bytes_per_thread},
        _places(lines),
        case.cycles_with(without_rows(case.replay.trace, rows)),
    )


def serial_epilogue(case: Case) -> Finding | None:
    """Arithmetic after the main loop that nothing overlaps."""
    if case.share("epilogue") < EPILOGUE_SHARE:
        return None
    static = case.replay.program.static
    rows = (static[:, I_PHASE] == EPILOGUE * N_CAUSES) & (static[:, I_EFFECT] == FIXED)
    if not rows.any():
        return None
    return Finding(
        "overlap the epilogue with the next tile's main loop (persistent CTAs, an epilogue warpgroup), or shorten it",
        {"epilogue": case.share("epilogue")},
        _places(sorted((c for c in case.code if rows[_row(case, c)]), key=lambda c: -c.stall_cycles)),
        case.cycles_with(without_rows(case.replay.trace, rows)),
    )


def exposed_softmax(case: Case) -> Finding | None:
    """Exponentials in the main loop that do not overlap with tensor work."""
    static = case.replay.program.static
    in_loop = (static[:, I_PIPE] == PIPE_TRANSCENDENTAL) & (static[:, I_PHASE] == STEADY * N_CAUSES)
    executed = [c for c in case.code if in_loop[_row(case, c)]]
    has_mma = any("MMA" in _opcode(c) for c in case.code)
    if not executed or not has_mma or case.share("other_issue", "dependency") < SOFTMAX_SHARE:
        return None
    return Finding(
        "let the exponentials of one warpgroup run while another's MMAs do (ping-pong), or do fewer of them",
        {"issue_and_dependency": case.share("other_issue", "dependency"), "tensor": case.share("tensor")},
        _places(sorted(executed, key=lambda c: -c.stall_cycles)),
        case.cycles_with(edit=with_free_pipes),
    )


def small_boxes(case: Case) -> Finding | None:
    """Bulk copies that are limited by their rows, not by their bytes."""
    slowest = float(narrow_rows(case.replay.program, case.hw).max(initial=1.0))
    if slowest < NARROW_ROW or not case.issue_share("UTMALDG", "UTMASTG"):
        return None
    return Finding(
        "copy boxes with longer rows (128 bytes): the copy engine's time is per row",
        {"row_time_over_byte_time": slowest},
        _places([c for c in case.code if _opcode(c).startswith("UTMA")]),
        case.cycles_with(with_longer_rows(case.replay.trace)),
    )


def raster(case: Case) -> Finding | None:
    """Memory is read more often than the data is large, and another order of CTAs reads it less often."""
    trace = case.replay.trace
    n_bytes = sum(buffer.n_bytes for buffer in trace.buffers)
    read = case.projection.bytes["dram_read"]
    if not n_bytes or read < REREAD * n_bytes or case.share("hbm_bandwidth", "hbm_latency", "l2") < EXPOSED_SHARE:
        return None
    tried = {name: case.cycles_with(order) for name, order in rasters(trace)}
    if not tried:
        return None
    best = min(tried, key=lambda name: tried[name])
    return Finding(
        f"launch the tiles in another order ({best}): CTAs that run together then share more of their data in the L2",
        {"dram_read": read, "buffers": n_bytes, "times_read": read / n_bytes},
        [],
        tried[best],
    )


def _registers(case: Case) -> Finding | None:
    return occupancy_limit(case, "registers")


def _shared_memory(case: Case) -> Finding | None:
    return occupancy_limit(case, "smem")


RULES: dict[str, tuple[Rule, str]] = {
    "bank_conflicts": (bank_conflicts, f"bank conflicts >= {CONFLICT_SHARE:.0%} of the wavefronts"),
    "register_limit": (_registers, "registers alone limit the CTAs per SM"),
    "occupancy_cliff": (_shared_memory, f"shared memory alone limits the CTAs per SM; {CLIFF:.0%} less makes room"),
    "too_few_stages": (too_few_stages, f"exposed copy and memory latency >= {EXPOSED_SHARE:.0%} of the cycles"),
    "tail": (tail, f"tail >= {TAIL_SHARE:.0%} of the cycles"),
    "uncoalesced": (uncoalesced, f"an access touches >= {SCATTER} times the sectors that its bytes fill"),
    "spills": (spills, f"local memory >= {SPILL_SHARE:.1%} of the instructions"),
    "serial_epilogue": (serial_epilogue, f"epilogue >= {EPILOGUE_SHARE:.0%} of the cycles"),
    "exposed_softmax": (exposed_softmax, f"issue and dependency >= {SOFTMAX_SHARE:.0%} beside MMA and exponentials"),
    "small_boxes": (small_boxes, f"box rows take >= {NARROW_ROW} times the time of their bytes"),
    "raster": (raster, f"memory read >= {REREAD} times the buffers, memory and L2 >= {EXPOSED_SHARE:.0%} of the cycles"),
}  # fmt: skip
N_PLACES = 3


def _places(lines: list[CodeLine]) -> list[str]:
    return [f"0x{c.address:x} {c.text}" + (f" ({c.source})" if c.source else "") for c in lines[:N_PLACES]]


def _opcode(line: CodeLine) -> str:
    """Mnemonic of a printed instruction, without its guard."""
    words = line.text.split()
    return (words[1] if words and words[0].startswith("@") and len(words) > 1 else words[0]) if words else ""


def _row(case: Case, line: CodeLine) -> int:
    return int(np.searchsorted(case.replay.trace.static.address, line.address))
