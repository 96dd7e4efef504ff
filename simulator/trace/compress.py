"""Loop compression of instruction streams: a stream is a few pieces, each repeated.

The (instruction, active lanes) sequence of a warp is periodic where the kernel loops.  A loop starts again with a
step back to a lower instruction; between two such steps lies one iteration.  Equal streams are stored once.
Events are kept as differences, which the file's compression reduces to almost nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.trace.kernel_trace import Stream

ACTIVE_BITS = 8


@dataclass(frozen=True)
class CompressedStreams:
    """``pool`` int64: distinct pieces one after another (instruction << 8 | active lanes); ``piece`` int64 [n, 3]:
    (first, length, repeats) in the pool; pieces of sequence s are rows ``sequence_start[s]`` on; ``sequence`` int32
    [n_streams] the sequence of each stream; ``event`` int32: event rows of all streams, as differences, stream i from
    ``event_start[i]`` on."""

    pool: np.ndarray
    piece: np.ndarray
    sequence_start: np.ndarray
    sequence: np.ndarray
    event: np.ndarray
    event_start: np.ndarray


def compress_streams(streams: Sequence[Stream]) -> CompressedStreams:
    """Pieces of all streams, in order."""
    known: dict[bytes, int] = {}
    pool: list[np.ndarray] = []
    pieces: list[tuple[int, int, int]] = []
    starts = [0]
    sequence = []
    size = 0
    for stream in streams:
        code = stream.instruction.astype(np.int64) << ACTIVE_BITS | stream.active
        key = hashlib.sha256(code).digest()
        if key not in known:
            known[key] = len(known)
            for first, length, repeats in find_loops(code):
                pieces.append((size, length, repeats))
                pool.append(code[first : first + length])
                size += length
            starts.append(len(pieces))
        sequence.append(known[key])
    starts_at = np.concatenate([[0], np.cumsum([len(stream) for stream in streams])]).astype(np.int64)
    event = np.zeros(starts_at[-1], np.int32)
    for first, stream in zip(starts_at.tolist(), streams, strict=False):
        event[first : first + len(stream)] = np.diff(stream.event, prepend=np.int32(0))
    return CompressedStreams(
        pool=np.concatenate(pool) if pool else np.zeros(0, np.int64),
        piece=np.array(pieces, np.int64).reshape(-1, 3),
        sequence_start=np.array(starts, np.int64),
        sequence=np.array(sequence, np.int32),
        event=event,
        event_start=starts_at,
    )


def expand_streams(c: CompressedStreams) -> list[Stream]:
    """The streams again, exactly; equal ones share their instructions and lanes."""
    sequences = []
    for s in range(len(c.sequence_start) - 1):
        rows = c.piece[c.sequence_start[s] : c.sequence_start[s + 1]]
        parts = [np.tile(c.pool[first : first + length], repeats) for first, length, repeats in rows]
        code = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        sequences.append(((code >> ACTIVE_BITS).astype(np.int32), (code & ((1 << ACTIVE_BITS) - 1)).astype(np.uint8)))
    streams = []
    for i, s in enumerate(c.sequence):
        event = np.cumsum(c.event[c.event_start[i] : c.event_start[i + 1]], dtype=np.int32)
        instruction, active = sequences[s]
        streams.append(Stream(instruction, active, event))
    return streams


def find_loops(code: np.ndarray) -> list[tuple[int, int, int]]:
    """Cut a sequence into (first, length, repeats) pieces whose repetition gives it back."""
    turns = np.flatnonzero(np.diff(code >> ACTIVE_BITS) < 0) + 1
    pieces: list[tuple[int, int, int]] = []
    done = 0
    for turn, following in zip(turns[:-1].tolist(), turns[1:].tolist(), strict=True):
        if turn < done:
            continue
        period = following - turn
        rest = code[turn:]
        differs = np.flatnonzero(rest[period:] != rest[:-period])
        matching = int(differs[0]) if len(differs) else len(rest) - period
        repeats = matching // period + 1
        if repeats > 1:
            if turn > done:
                pieces.append((done, turn - done, 1))
            pieces.append((turn, period, repeats))
            done = turn + period * repeats
    if done < len(code):
        pieces.append((done, len(code) - done, 1))
    return pieces
