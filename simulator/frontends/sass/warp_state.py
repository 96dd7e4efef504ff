"""Fresh state of a CTA, and the reasons for which its interpreter stops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulator.frontends.sass.semantics.codes import FULL, LANES, TRUE_PREDICATE
from simulator.frontends.sass.semantics.records import CTA, DIFFERENCE, WARP, WORD_BYTES, records

SCRATCH_ROWS = 8

READY, AT_CTA_BARRIER, FINISHED = range(3)
"""Status of a warp."""

REGISTERS, PREDICATES = 2, 2
"""Results of a row that a remembered evaluation holds."""

(
    COMPLETE,
    LOG_FULL,
    EVENTS_FULL,
    PATTERNS_FULL,
    DIFFERS,
    UNKNOWN_BRANCH,
    UNKNOWN_ADDRESS,
    UNKNOWN_OPERAND,
    BAD_ADDRESS,
    TRAPPED,
    DEADLOCK,
    LIMIT,
    BAD_TARGET,
) = range(13)
"""Why the interpreter stopped."""


class Layout(NamedTuple):
    """Where the groups of value rows begin: general registers from 0, then uniform registers, a row of zeros, special
    registers, constants, and ``SCRATCH_ROWS`` rows that verbs write before a result is committed."""

    uniform: int
    zero: int
    special: int
    constant: int
    scratch: int
    n_rows: int


class Memory(NamedTuple):
    """Memory of a CTA beyond the shared window. ``local`` uint32 [W, words, L], ``local_unknown`` and
    ``local_difference`` int64 [W, words]: frames of the threads. Global buffers with known contents: buffer k covers
    bytes ``start[k]`` to ``end[k]``, its contents begin at ``offset[k]`` of ``content`` (uint8), where every ``span[k]`` bytes
    of the buffer are ``unit[k]`` bytes that repeat; ``overwritten[k]``: the kernel stored to it, so that its contents count
    as unknown."""

    local: np.ndarray
    local_unknown: np.ndarray
    local_difference: np.ndarray
    start: np.ndarray
    end: np.ndarray
    offset: np.ndarray
    span: np.ndarray
    unit: np.ndarray
    content: np.ndarray
    overwritten: np.ndarray


class Differences(NamedTuple):
    """Differences between CTAs as compiled code sees them. ``record``: DIFFERENCE records by handle; ``key`` int64
    [size, 3] and ``result`` int64 [size] (a power of two): hash table of combinations (operation, x, y) -> handle.
    ``evaluation`` int64 [size, 2] and ``outcome`` int64 [size, 4]: hash table of evaluated rows -> handles of two registers
    and two predicates."""

    record: np.recarray
    key: np.ndarray
    result: np.ndarray
    evaluation: np.ndarray
    outcome: np.ndarray


class CtaState(NamedTuple):
    """``cta``: one CTA record; ``warps``: WARP records [W]; ``memory``."""

    cta: np.recarray
    warps: np.recarray
    memory: Memory


def new_state(n_warps: int, memory: Memory) -> CtaState:
    """State for a CTA of ``n_warps`` warps; ``reset_state`` makes it ready."""
    return CtaState(records(CTA, 1), records(WARP, n_warps), memory)


def new_frames(n_warps: int, frame_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays ``local``, ``local_unknown``, ``local_difference`` of ``Memory``."""
    words = -(-frame_bytes // WORD_BYTES)
    shape = (n_warps, words)
    return np.zeros((*shape, LANES), np.uint32), np.zeros(shape, np.int64), np.zeros(shape, np.int64)


def reset_state(state: CtaState, layout: Layout, special: np.ndarray, special_unknown: np.ndarray,
                special_difference: np.ndarray, lanes: np.ndarray, rank: int) -> None:
    """Start of a CTA. ``special`` uint32 [n_special, W, L]: values of the special registers; ``special_unknown`` and
    ``special_difference`` int64 [n_special]; ``lanes`` int64 [W]: threads that exist; ``rank`` in the cluster. Constants
    and launch values in the CTA record stay as they are."""
    warps, memory, cta = state.warps, state.memory, state.cta[0]
    warps["values"][:, : layout.special] = 0
    warps["values"][:, layout.special : layout.constant] = special.transpose(1, 0, 2)
    for name in ("unknown", "difference"):
        warps[name][:, : layout.n_rows] = 0
    warps["unknown"][:, layout.special : layout.constant] = special_unknown
    warps["difference"][:, layout.special : layout.constant] = special_difference
    for name in (WARP.names or ())[4:]:
        warps[name] = 0
    for first in (0, TRUE_PREDICATE + 1):
        warps["predicate"][:, first + TRUE_PREDICATE] = FULL
    warps["number"] = np.arange(len(warps))
    warps["mask"] = lanes
    warps["exited"] = FULL & ~lanes
    memory.local[:] = 0
    memory.local_unknown[:] = FULL
    memory.local_difference[:] = 0
    cta.shared_unknown[: cta.shared_limit] = 1
    cta.shared_difference[: -(-cta.shared_limit // WORD_BYTES)] = 0
    cta.arrived[:] = 0
    cta.expected[:] = 0
    cta.rank = rank
    cta.override_row, cta.next_warp, cta.reason = -1, 0, COMPLETE


def new_differences(records_of: int = 256, slots: int = 1 << 12) -> Differences:
    """Empty tables with room for ``records_of`` differences."""
    return Differences(
        record=records(DIFFERENCE, records_of),
        key=np.zeros((slots, 3), np.int64),
        result=np.zeros(slots, np.int64),
        evaluation=np.zeros((slots, 2), np.int64),
        outcome=np.zeros((slots, REGISTERS + PREDICATES), np.int64),
    )
