"""A kernel whose asynchronous copies into shared memory are issued some groups earlier, as a deeper pipeline issues them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from simulator.trace.kernel_trace import KernelTrace, Stream

COPY, COMMIT, WAIT = "LDGSTS", "LDGDEPBAR", "DEPBAR"
OTHER_GROUPS = ("UTMASTG", "UTMAREDG", "UTMACMDFLUSH", "UBLKCP")
"""Stores by bulk copy are waited for by the same instruction, in groups of their own."""
TO_FRONT, TAKES_PLACE, STAYS = range(3)
"""Turns of instructions that go to the same place."""


def with_copies_ahead(trace: KernelTrace, n_groups: int) -> KernelTrace:
    """Every group of copies is issued in the place of the one ``n_groups`` before it, the first ones at the front; waits allow
    as many more groups to be pending, so that they wait for the same copies as before. Shared memory grows by as many
    groups."""
    base = trace.static.mnemonics
    streams = tuple(tuple(_ahead(stream, base, n_groups) for stream in warps) for warps in trace.streams)
    waits = np.zeros(len(base), bool)
    for stream in (s for warps in trace.streams for s in warps):
        waits |= _waits_for_copies(stream, base)
    argument = trace.static.argument.copy()
    argument[waits, 0] += n_groups
    launch = replace(trace.launch, dynamic_smem_bytes=trace.launch.dynamic_smem_bytes + n_groups * group_bytes(trace))
    return replace(trace, streams=streams, static=replace(trace.static, argument=argument), launch=launch)


def group_bytes(trace: KernelTrace) -> int:
    """Shared memory that the largest group of copies fills, bytes of a CTA; 0 without groups."""
    base = trace.static.mnemonics
    if COMMIT not in base:
        return 0
    largest = 0
    for warps in trace.streams:
        sizes = [_bytes_of_groups(stream, base, trace.static.width_bytes) for stream in warps]
        n = max(map(len, sizes))
        total = sum((np.pad(size, (0, n - len(size))) for size in sizes), np.zeros(n, np.int64))
        largest = max(largest, int(total.max(initial=0)))
    return largest


def groups_per_stage(trace: KernelTrace) -> int:
    """Groups that a stage of the pipeline is copied in: commits between two waits for copies, most often."""
    base = trace.static.mnemonics
    between: Counter[int] = Counter()
    for stream in (s for warps in trace.streams for s in warps):
        waits = np.flatnonzero(_waits_for_copies(stream, base)[stream.instruction])
        commits = np.diff(_group_of(stream, base)[waits])
        between.update(commits[commits > 0].tolist())
    return between.most_common(1)[0][0] if between else 1


def _group_of(stream: Stream, base: np.ndarray) -> np.ndarray:
    """Number of commits before each instruction of a stream."""
    is_commit = base[stream.instruction] == COMMIT
    return np.cumsum(is_commit) - is_commit


def _bytes_of_groups(stream: Stream, base: np.ndarray, width: np.ndarray) -> np.ndarray:
    copied = (base[stream.instruction] == COPY) * stream.active.astype(np.int64) * width[stream.instruction]
    return np.bincount(_group_of(stream, base), weights=copied).astype(np.int64)


def _ahead(stream: Stream, base: np.ndarray, n_groups: int) -> Stream:
    kind = base[stream.instruction]
    commits = np.flatnonzero(kind == COMMIT)
    if not len(commits):
        return stream
    group = _group_of(stream, base)
    copies = np.flatnonzero((kind == COPY) & (group < len(commits)))
    first_of = commits.copy()
    np.minimum.at(first_of, group[copies], copies)
    return moved_ahead(stream, copies, group[copies], first_of, n_groups, closed_by=int(commits[0]))


def moved_ahead(
    stream: Stream, pieces: np.ndarray, group: np.ndarray, first_of: np.ndarray, n_groups: int, closed_by: int | None = None
) -> Stream:
    """The stream with its ``pieces`` (places, with their ``group``) before the first one of the group ``n_groups`` earlier
    (``first_of``, places), those of the first groups at the front, each with a copy of the instruction ``closed_by``."""
    n_front = min(n_groups, len(first_of)) if closed_by is not None else 0
    target = group - n_groups
    index = np.concatenate([np.arange(len(stream)), np.full(n_front, closed_by or 0)])
    # Instructions that go before the same one (where) take turns; what stays comes last.
    where, turn, among = index.copy(), np.full(len(index), STAYS), np.zeros(len(index), np.int64)
    where[pieces] = first_of[np.maximum(target, 0)]
    turn[pieces] = np.where(target >= 0, TAKES_PLACE, TO_FRONT)
    among[pieces] = np.where(target >= 0, 0, 2 * group)
    where[len(stream) :], turn[len(stream) :], among[len(stream) :] = first_of[0], TO_FRONT, 2 * np.arange(n_front) + 1
    chosen = index[np.lexsort((index, among, turn, where))]
    return Stream(stream.instruction[chosen], stream.active[chosen], stream.event[chosen])


def _waits_for_copies(stream: Stream, base: np.ndarray) -> np.ndarray:
    """Static rows that wait for groups of copies: what was committed last before them is a copy, bool [n_static]."""
    kind = base[stream.instruction]
    last = np.maximum.accumulate(np.where(np.isin(kind, (COMMIT, *OTHER_GROUPS)), np.arange(len(stream)), -1))
    waiting = (kind == WAIT) & (last >= 0)
    waiting[waiting] = kind[last[waiting]] == COMMIT
    rows = np.zeros(len(base), bool)
    rows[stream.instruction[waiting]] = True
    return rows
