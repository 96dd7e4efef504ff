"""Parts of a kernel that reports tell apart: phases of a warp (before, in and after its main loop) and roles of warps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.isa.effects import BULK_LOAD, EPILOGUE, GLOBAL_COPY, PIPE_TENSOR, PROLOGUE, STEADY, TENSOR_ASYNC
from simulator.sm.inputs import I_EFFECT, I_PIPE
from simulator.trace.kernel_trace import KernelTrace, Stream

MOST_CLASSES = 4
"""CTA classes that are looked at, the commonest first; the others run mostly the same rows."""
SMALLEST_LOOP = 0.1
"""A main loop makes up at least a tenth of its warp's instructions."""
NESTED = 0.5
"""A loop of which half is an inner loop is not the main loop: the inner one is."""
SAME_ROLE = 0.5
"""Warps that share half of their instructions have one role."""
UNSEEN = -1


def commonest_classes(trace: KernelTrace) -> list[int]:
    """CTA classes by the number of their CTAs, the largest first."""
    counts = np.bincount(trace.cta_class, minlength=trace.n_classes)
    return [int(c) for c in np.argsort(-counts, kind="stable")[:MOST_CLASSES]]


def phases_of(trace: KernelTrace) -> np.ndarray:
    """Phase of each static row (isa.effects.PHASES), int64 [n_static]; a warp without a main loop is in its steady phase."""
    phase = np.full(len(trace.static), UNSEEN, np.int64)
    for c in commonest_classes(trace):
        for stream in trace.streams[c]:
            mark_phases(phase, stream.instruction.astype(np.int64))
    return np.where(phase == UNSEEN, STEADY, phase)


def mark_phases(phase: np.ndarray, rows: np.ndarray) -> None:
    """Set the phase of the rows that a warp executes and that have none yet, the loop's own first."""
    loop = main_loop(rows)
    executed = np.unique(rows)
    if loop is None:
        fresh = executed[phase[executed] == UNSEEN]
        phase[fresh] = STEADY
        return
    first, last = loop
    inside = executed[(executed >= first) & (executed <= last)]
    phase[inside] = STEADY
    entry = int(np.argmax((rows >= first) & (rows <= last)))
    before = np.unique(rows[:entry])
    for outside, value in ((before, PROLOGUE), (executed, EPILOGUE)):
        fresh = outside[phase[outside] == UNSEEN]
        phase[fresh] = value


def main_loop(rows: np.ndarray) -> tuple[int, int] | None:
    """First and last static row of the loop in which a warp spends most instructions, None without a loop to speak of."""
    loops = {loop: n for loop, n in _loops(rows) if n >= SMALLEST_LOOP * len(rows)}
    best: tuple[int, int] | None = None
    for loop, n in sorted(loops.items(), key=lambda item: item[0][1] - item[0][0]):
        inner = [m for other, m in loops.items() if other != loop and loop[0] <= other[0] and other[1] <= loop[1]]
        if all(m < NESTED * n for m in inner) and (best is None or n > loops[best]):
            best = loop
    return best


def _loops(rows: np.ndarray) -> Iterator[tuple[tuple[int, int], int]]:
    """(first row, last row) of each backward jump, and how many executed instructions lie between them."""
    back = np.flatnonzero(rows[1:] <= rows[:-1])
    jumps = np.unique(np.stack([rows[back + 1], rows[back]], 1), axis=0) if len(back) else np.zeros((0, 2), np.int64)
    histogram = np.bincount(rows) if len(rows) else np.zeros(0, np.int64)
    total = np.concatenate([[0], np.cumsum(histogram)])
    for first, last in jumps:
        yield (int(first), int(last)), int(total[last + 1] - total[first])


def roles_of(trace: KernelTrace, static: np.ndarray) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the roles and the role of each warp of a CTA: producers copy for others, consumers use tensor cores.

    ``static``: Program.static. Warps that run the same code are "all" one role.
    """
    warps = trace.streams[commonest_classes(trace)[0]]
    histograms = [_executed(stream, len(static)) for stream in warps]
    groups: list[int] = []
    for histogram in histograms:
        like = next((g for g in dict.fromkeys(groups) if _overlap(histogram, histograms[g]) >= SAME_ROLE), len(groups))
        groups.append(like)
    if len(set(groups)) == 1:
        return ("all",), (0,) * len(groups)
    kinds = [_kind(histograms[g], static) for g in groups]
    names = tuple(dict.fromkeys(kinds))
    return names, tuple(names.index(kind) for kind in kinds)


def _executed(stream: Stream, n_static: int) -> np.ndarray:
    return np.bincount(stream.instruction[stream.active > 0], minlength=n_static)


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.minimum(a, b).sum()) / max(1.0, float(np.maximum(a, b).sum()))


def _kind(histogram: np.ndarray, static: np.ndarray) -> str:
    used = static[histogram > 0]
    if (used[:, I_EFFECT] == TENSOR_ASYNC).any() or (used[:, I_PIPE] == PIPE_TENSOR).any():
        return "consumer"
    if np.isin(used[:, I_EFFECT], (BULK_LOAD, GLOBAL_COPY)).any():
        return "producer"
    return "other"
