"""Puts a machine together in its heap: sizes, records, and what points at what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.isa.effects import CAUSE_OF_REASON, GROUP_WARPS, N_CAUSES, N_PHASES, N_REASONS
from simulator.memory.calendar import EMPTY, calendar_size, make_idle
from simulator.memory.layout import N_MEMORY_HEADER, Arena, empty_memory, lay_out_memory
from simulator.sm.layout import (
    C_BASES,
    C_FIRST_WARP,
    C_MEMBERS,
    C_SM,
    CAUSE_OF,
    CTA_RUN,
    CTA_SIZE,
    CTAS,
    END_OF_HEADER,
    EVENT_FIELDS,
    EVENT_ROOM,
    EVENTS,
    EXPLAINS,
    FINISHED,
    GROUP_SIZE,
    GROUPS,
    L1_LINE_SIZE,
    L1_SETS,
    L1_WAYS,
    L1S,
    MBARRIER_SIZE,
    MEMBER_BASES,
    MEMBER_DOMAIN,
    MEMBER_LAG,
    MEMBER_PARTITION,
    MEMBER_SIZE,
    N_BASES,
    N_CHIP_SMS,
    N_LARGE,
    N_MBARRIERS,
    N_MEMBERS,
    N_RUNS,
    N_SLOTS,
    N_SMS,
    N_SUBPARTITIONS,
    N_WARPS,
    NEVER,
    OPERAND_SHIFT,
    P_L1,
    P_MEMBERS,
    P_N_MEMBERS,
    P_NUMBER,
    P_OPERANDS,
    P_PORT,
    P_SMSPS,
    PORT_SHIFT,
    PORT_WINDOWS,
    PORTS,
    RUN_STEP,
    S_DIRTY,
    S_LAST,
    S_ROSTER,
    S_ROSTER_SIZE,
    SM_SIZE,
    SMS,
    SMSP_SIZE,
    SMSPS,
    SPANS,
    STACKS,
    STALL_STRIDE,
    STALLS,
    W_BLOCK,
    W_CTA,
    W_GROUP,
    W_LANE,
    W_PENDING,
    W_READY,
    W_SM,
    W_SMSP,
    W_STACK,
    W_STALLS,
    WARP_FIELDS,
    WARP_SIZE,
    WARPS,
)


@dataclass(frozen=True)
class MachineShape:
    """Sizes of a simulated machine. ``members[s]``: chip SMs that simulated SM s stands for, itself first;
    ``partition_of``, ``domain_of`` by chip SM: L2 partition next to it, request coalescer in front of it;
    L2 sizes per partition; ``lag_of`` by chip SM: lag of its requests, as a multiple (2**-SHARE_SHIFT) of the typical one;
    ``run_step``: places in a round between runs of CTAs on neighbouring SMs; ``roles``: role of each warp of a CTA (all 0
    when empty); ``n_profiled``: static rows whose stalls are kept apart (0: none are); ``n_events``: room of the event log."""

    members: list[list[int]]
    partition_of: np.ndarray
    domain_of: np.ndarray
    n_slots: int
    n_warps: int
    n_mbarriers: int
    n_ctas: int
    n_bases: int
    l1_sets: int
    l1_ways: int
    n_partitions: int
    l2_sets: int
    l2_ways: int
    n_domains: int
    merge_slots: int
    lag_of: np.ndarray
    run_step: int
    roles: tuple[int, ...] = ()
    n_profiled: int = 0
    explains: bool = True
    n_events: int = 0

    @property
    def n_sms(self) -> int:
        return len(self.members)

    @property
    def n_chip_sms(self) -> int:
        return sum(map(len, self.members))

    @property
    def n_roles(self) -> int:
        return max(self.roles, default=0) + 1


def make_machine(shape: MachineShape, memory_parameters: np.ndarray, sm_parameters: np.ndarray) -> np.ndarray:
    """A heap with idle SMs and empty memories."""
    n_sms, n_slots, n_warps = shape.n_sms, shape.n_slots, shape.n_warps
    n_members = max(map(len, shape.members))
    n_roster = -(-n_slots * n_warps // N_SUBPARTITIONS)
    n_ctas = n_sms * n_slots
    cta_size = C_MEMBERS + n_members + max(1, shape.n_mbarriers) * MBARRIER_SIZE
    smsp_size = S_ROSTER + n_roster
    sm_size = P_MEMBERS + MEMBER_SIZE * n_members
    n_roles = shape.n_roles
    arena = Arena(END_OF_HEADER)
    memory = lay_out_memory(arena, shape.n_partitions, shape.l2_sets, shape.l2_ways, shape.n_domains, shape.merge_slots)
    header = {
        N_SMS: n_sms,
        N_SLOTS: n_slots,
        N_WARPS: n_warps,
        N_MEMBERS: n_members,
        N_CHIP_SMS: shape.n_chip_sms,
        N_RUNS: shape.n_chip_sms // CTA_RUN,
        RUN_STEP: shape.run_step,
        N_LARGE: sum(len(chip_sms) == n_members for chip_sms in shape.members),
        N_MBARRIERS: shape.n_mbarriers,
        N_BASES: shape.n_bases,
        MEMBER_BASES: arena.take(n_ctas * shape.n_bases * n_members),
        WARP_SIZE: WARP_FIELDS,
        CTA_SIZE: cta_size,
        SMSP_SIZE: smsp_size,
        SM_SIZE: sm_size,
        SMS: arena.take(n_sms * sm_size),
        CTAS: arena.take(n_ctas * cta_size),
        WARPS: arena.take(n_ctas * n_warps * WARP_FIELDS),
        GROUPS: arena.take(n_ctas * -(-n_warps // GROUP_WARPS) * GROUP_SIZE),
        SMSPS: arena.take(n_sms * N_SUBPARTITIONS * smsp_size),
        L1_SETS: max(1, shape.l1_sets),
        L1_WAYS: shape.l1_ways,
        L1S: arena.take(n_sms * max(1, shape.l1_sets) * shape.l1_ways * L1_LINE_SIZE),
        PORTS: arena.take(2 * n_sms * calendar_size(PORT_WINDOWS)),
        STALLS: arena.take(n_roles * max(1, shape.n_profiled) * N_REASONS),
        STALL_STRIDE: N_REASONS if shape.n_profiled else 0,
        EXPLAINS: int(shape.explains),
        STACKS: arena.take(n_roles * N_PHASES * N_CAUSES),
        CAUSE_OF: arena.take(N_REASONS),
        EVENTS: arena.take(shape.n_events * EVENT_FIELDS),
        EVENT_ROOM: shape.n_events,
        SPANS: arena.take(2 * shape.n_ctas),
    }
    x = np.zeros(arena.size, np.int64)
    empty_memory(x, memory)
    x[: len(memory_parameters)] = memory_parameters
    x[N_MEMORY_HEADER : N_MEMORY_HEADER + len(sm_parameters)] = sm_parameters
    x[list(header)] = list(header.values())
    x[header[SPANS] : header[SPANS] + 2 * shape.n_ctas] = EMPTY
    x[header[L1S] : header[PORTS] : L1_LINE_SIZE] = EMPTY
    for reason, cause in CAUSE_OF_REASON.items():
        x[header[CAUSE_OF] + reason] = cause
    _link(x, shape)
    return x


def _link(x: np.ndarray, shape: MachineShape) -> None:
    """Point the records at each other."""
    n_groups = -(-shape.n_warps // GROUP_WARPS)
    for s, chip_sms in enumerate(shape.members):
        sm = x[SMS] + s * x[SM_SIZE]
        x[sm + P_N_MEMBERS] = len(chip_sms)
        x[sm + P_SMSPS] = x[SMSPS] + s * N_SUBPARTITIONS * x[SMSP_SIZE]
        x[sm + P_L1] = x[L1S] + s * x[L1_SETS] * x[L1_WAYS] * L1_LINE_SIZE
        x[sm + P_NUMBER] = s
        x[sm + P_PORT] = x[PORTS] + 2 * s * calendar_size(PORT_WINDOWS)
        x[sm + P_OPERANDS] = x[sm + P_PORT] + calendar_size(PORT_WINDOWS)
        make_idle(x, x[sm + P_PORT], PORT_SHIFT, PORT_WINDOWS)
        make_idle(x, x[sm + P_OPERANDS], OPERAND_SHIFT, PORT_WINDOWS)
        for m, chip_sm in enumerate(chip_sms):
            member = sm + P_MEMBERS + MEMBER_SIZE * m
            x[member + MEMBER_PARTITION] = shape.partition_of[chip_sm]
            x[member + MEMBER_DOMAIN] = shape.domain_of[chip_sm]
            x[member + MEMBER_LAG] = shape.lag_of[chip_sm]
        for q in range(N_SUBPARTITIONS):
            smsp = x[sm + P_SMSPS] + q * x[SMSP_SIZE]
            x[smsp + S_LAST] = EMPTY
            x[smsp + S_DIRTY] = 1
        for slot in range(shape.n_slots):
            number = s * shape.n_slots + slot
            cta = x[CTAS] + number * x[CTA_SIZE]
            x[cta + C_SM] = sm
            x[cta + C_BASES] = x[MEMBER_BASES] + number * shape.n_bases * x[N_MEMBERS]
            x[cta + C_FIRST_WARP] = x[WARPS] + number * shape.n_warps * WARP_FIELDS
            for lane in range(shape.n_warps):
                w = x[cta + C_FIRST_WARP] + lane * WARP_FIELDS
                smsp = x[sm + P_SMSPS] + (slot * shape.n_warps + lane) % N_SUBPARTITIONS * x[SMSP_SIZE]
                x[w + W_LANE] = lane
                x[w + W_CTA] = cta
                x[w + W_GROUP] = x[GROUPS] + (number * n_groups + lane // GROUP_WARPS) * GROUP_SIZE
                x[w + W_SMSP] = smsp
                x[w + W_SM] = sm
                x[w + W_READY] = NEVER
                x[w + W_BLOCK] = FINISHED
                x[w + W_PENDING] = EMPTY
                role = shape.roles[lane] if shape.roles else 0
                x[w + W_STALLS] = x[STALLS] + role * max(1, shape.n_profiled) * N_REASONS
                x[w + W_STACK] = x[STACKS] + role * N_PHASES * N_CAUSES
                x[smsp + S_ROSTER + x[smsp + S_ROSTER_SIZE]] = w
                x[smsp + S_ROSTER_SIZE] += 1
