"""Shared-memory wavefronts: how many passes over the banks one warp instruction needs, for many patterns at once.

The rule, for banks of ``bank_width_bytes`` (a *word*) and lane offsets in bytes:

1. Lanes are served in *phases* of as many lanes as all banks together can answer: the whole warp up to one word per
   lane, a half-warp for two words, a quarter-warp for four; matrix accesses in phases of eight rows.
2. Within a phase a bank answers one word per wavefront, and a word only once whatever the number of lanes that want
   it; so a phase costs the largest number of distinct words in one bank.  Phases add up.
3. A 64- or 128-bit *load* serves two neighbouring phases as one when every active lane reads the address of its
   neighbour (lane XOR 1), or every active lane that of the lane two away (XOR 2); inactive lanes agree with anything.
   A full broadcast is the simplest case.  Stores and atomics never merge.
4. Atomic read-modify-writes serve equal addresses one after the other; a compare-and-swap visits the bank twice.  A
   32-bit increment by one (ATOMS.POPC.INC) combines equal addresses like a load.
5. A phase without an active lane is free, but an instruction costs at least one wavefront.

Bank conflicts are the wavefronts beyond one (compare-and-swap: one visit) per served phase.

Sources: rules 1 and 2, the CUDA programming guide; rule 3, the vendor's statement in forums.developer.nvidia.com
topic 77228; all of them exact on the 1,287 shared-memory patterns measured with hardware counters on Hopper silicon
in tests/data/access_patterns.csv and tests/data/access_patterns_masked.csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from simulator.lower.access_kinds import KIND_RULES, MATRIX_ROW_BYTES, MATRIX_ROWS, AccessKind


class BankRules(NamedTuple):
    """Banks of a chip and how it groups lanes (see simulator.hw.access_rules for the last two)."""

    n_banks: int
    bank_width_bytes: int
    merges_paired_loads: bool = True
    wide_load_lane_order: tuple[int, ...] = ()


class SharedCost(NamedTuple):
    """Per pattern, int64 [n_patterns]: passes over the banks, the same without conflicts, and the conflicts."""

    wavefronts: np.ndarray
    ideal_wavefronts: np.ndarray
    bank_conflicts: np.ndarray


class PhasePlan(NamedTuple):
    """How the lanes of each pattern are grouped. Arrays are int64 [n_patterns].

    ``unit_bytes`` what one lane asks for, at least one word; ``phase_lanes`` lanes per phase; ``n_lanes`` lanes (or
    rows) that take part at all; ``merges``, ``repeats`` 0 or 1; ``visit_wavefronts`` wavefronts per bank visit;
    ``lane_order`` int64 [n_patterns or 1, lanes]: lane numbers in service order.
    """

    unit_bytes: np.ndarray
    phase_lanes: np.ndarray
    n_lanes: np.ndarray
    merges: np.ndarray
    repeats: np.ndarray
    visit_wavefronts: np.ndarray
    lane_order: np.ndarray


def shared_wavefronts_batch(
    kind: ArrayLike,
    width_bytes: ArrayLike,
    lane_offsets: np.ndarray,
    n_banks: int,
    bank_width_bytes: int,
    merges_paired_loads: bool = True,
    wide_load_lane_order: Sequence[int] = (),
) -> SharedCost:
    """Cost of ``lane_offsets`` (int bytes, [n_patterns, lanes], -1 = inactive) for each pattern.

    ``kind`` (AccessKind) and ``width_bytes`` (bytes per lane; matrix kinds: number of 8x8 matrices) are scalars or
    [n_patterns].  Offsets are taken as they are: ``access_kinds.check_access`` refuses impossible ones.
    """
    rules = BankRules(n_banks, bank_width_bytes, merges_paired_loads, tuple(wide_load_lane_order))
    offsets = np.ascontiguousarray(lane_offsets, dtype=np.int64)
    plan = phase_plan(kind, width_bytes, offsets.shape, rules)
    wavefronts, conflicts = _serve_patterns(offsets, *plan, rules.n_banks, rules.bank_width_bytes)
    return SharedCost(wavefronts, wavefronts - conflicts * plan.visit_wavefronts, conflicts)


def shared_wavefronts(
    kind: AccessKind, width_bytes: int, lane_offsets: Sequence[int] | np.ndarray, n_banks: int, bank_width_bytes: int
) -> int:
    """Wavefronts of one pattern; see ``shared_wavefronts_batch``."""
    one = np.asarray(lane_offsets, dtype=np.int64)[None, :]
    return int(shared_wavefronts_batch(kind, width_bytes, one, n_banks, bank_width_bytes).wavefronts[0])


def shared_cost(kind: AccessKind, width_bytes: int, lane_offsets: np.ndarray, rules: BankRules) -> SharedCost:
    """``shared_wavefronts_batch`` for one kind and width under ``rules``; ``lane_offsets`` [n_patterns, lanes]."""
    return shared_wavefronts_batch(kind, width_bytes, lane_offsets, *rules)


def phase_plan(kind: ArrayLike, width_bytes: ArrayLike, shape: tuple[int, ...], rules: BankRules) -> PhasePlan:
    """The grouping of lanes for patterns of ``shape`` = (n_patterns, lanes)."""
    n_patterns, warp_lanes = shape
    kinds = np.broadcast_to(np.asarray(kind, np.int64), n_patterns)
    widths = np.broadcast_to(np.asarray(width_bytes, np.int64), n_patterns)
    table = _kind_table()[kinds]
    is_matrix, is_load, repeats, visits = (table[:, column] for column in range(4))
    unit = np.where(is_matrix, MATRIX_ROW_BYTES, np.maximum(widths, rules.bank_width_bytes))
    answered = np.maximum(rules.n_banks * rules.bank_width_bytes // unit, 1)
    phase_lanes = np.where(is_matrix, MATRIX_ROWS, np.minimum(answered, warp_lanes))
    n_lanes = np.where(is_matrix, np.minimum(widths * MATRIX_ROWS, warp_lanes), warp_lanes)
    merges = is_load * int(rules.merges_paired_loads) * (unit > rules.bank_width_bytes)
    return PhasePlan(
        unit, phase_lanes, n_lanes, merges, repeats, visits, _lane_order(is_load * widths, warp_lanes, rules)
    )


def _kind_table() -> np.ndarray:
    """int64 [n_kinds, 4]: is_matrix, is_load, repeats_same_address, wavefronts_per_visit."""
    rows = [KIND_RULES[kind] for kind in AccessKind]
    return np.array(
        [(r.is_matrix, r.is_load, r.repeats_same_address, r.wavefronts_per_visit) for r in rows], dtype=np.int64
    )


def _lane_order(load_widths: np.ndarray, warp_lanes: int, rules: BankRules) -> np.ndarray:
    ascending = np.arange(warp_lanes, dtype=np.int64)[None, :]
    if len(rules.wide_load_lane_order) != warp_lanes:
        return ascending
    wide = np.asarray(rules.wide_load_lane_order, np.int64)[None, :]
    return np.where((load_widths == WIDE_LOAD_BYTES)[:, None], wide, ascending)


WIDE_LOAD_BYTES = 16
"""The widest access of a lane: 128 bits."""


@njit(cache=True)
def _serve_patterns(  # type: ignore[no-untyped-def]
    offsets, unit_bytes, phase_lanes, n_lanes, merges, repeats, visit_wavefronts, lane_order, n_banks, bank_width
):
    """Wavefronts and bank conflicts of every pattern; arguments as in PhasePlan."""
    n_patterns, warp_lanes = offsets.shape
    wavefronts = np.empty(n_patterns, np.int64)
    conflicts = np.empty(n_patterns, np.int64)
    units = np.empty(warp_lanes, np.int64)
    load = np.zeros(n_banks, np.int64)
    for p in range(n_patterns):
        lanes = offsets[p]
        order = lane_order[p if len(lane_order) > 1 else 0]
        span = phase_lanes[p]
        if merges[p] and span < n_lanes[p] and (_agree(lanes, 1) or _agree(lanes, 2)):
            span *= 2
        visits = 0
        phases = 0
        for first in range(0, n_lanes[p], span):
            n_units = _gather(lanes, order, first, min(first + span, n_lanes[p]), unit_bytes[p], repeats[p], units)
            visits += _serve_phase(units, n_units, unit_bytes[p] // bank_width, load)
            phases += n_units > 0
        if phases == 0:
            visits = 1
            phases = 1
        wavefronts[p] = visits * visit_wavefronts[p]
        conflicts[p] = visits - phases
    return wavefronts, conflicts


@njit(cache=True)
def _agree(lanes, distance):  # type: ignore[no-untyped-def]
    """Whether any two active lanes whose numbers differ by XOR ``distance`` have the same address."""
    for lane in range(len(lanes)):
        other = lanes[lane ^ distance]
        if lanes[lane] >= 0 and other >= 0 and lanes[lane] != other:
            return False
    return True


@njit(cache=True)
def _gather(lanes, order, first, last, unit_bytes, repeats, units):  # type: ignore[no-untyped-def]
    """Fill ``units`` with what the active lanes order[first:last] want; equal ones once unless they repeat."""
    n_units = 0
    for place in range(first, last):
        offset = lanes[order[place]]
        if offset < 0:
            continue
        unit = offset // unit_bytes
        known = False
        if not repeats:
            for seen in range(n_units):
                if units[seen] == unit:
                    known = True
                    break
        if not known:
            units[n_units] = unit
            n_units += 1
    return n_units


@njit(cache=True)
def _serve_phase(units, n_units, unit_words, load):  # type: ignore[no-untyped-def]
    """Wavefronts of one phase: the most words that one bank has to deliver. ``load`` [n_banks] is scratch."""
    n_banks = len(load)
    load[:] = 0
    most = 0
    for i in range(n_units):
        for word in range(unit_words):
            bank = (units[i] * unit_words + word) % n_banks
            load[bank] += 1
            most = max(most, load[bank])
    return most
