"""Global buffers whose contents are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.warp_state import Memory, new_frames

NOT_FOUND = -1


def new_memory(n_warps: int, frame_bytes: int, buffers: Sequence[tuple[int, np.ndarray]] = ()) -> Memory:
    """Memory of a CTA. ``buffers``: (address, contents as uint8) of global buffers."""
    sizes = [len(content) for _, content in buffers]
    return Memory(
        *new_frames(n_warps, frame_bytes),
        start=np.array([address for address, _ in buffers], np.int64),
        end=np.array([address + size for (address, _), size in zip(buffers, sizes, strict=True)], np.int64),
        offset=np.cumsum([0, *sizes], dtype=np.int64)[:-1],
        content=np.concatenate([content for _, content in buffers]) if buffers else np.zeros(0, np.uint8),
        overwritten=np.zeros(len(buffers), np.uint8),
    )


@internal
def find_buffer(memory, address):
    """Buffer that holds an address, NOT_FOUND if none."""
    for k in range(len(memory.start)):
        if memory.start[k] <= address < memory.end[k]:
            return k
    return NOT_FOUND


@internal
def read_word(memory, address, n_bytes):
    """(little-endian word of up to 4 bytes, is it known)."""
    buffer = find_buffer(memory, address)
    if buffer == NOT_FOUND or memory.overwritten[buffer] or address + n_bytes > memory.end[buffer]:
        return np.int64(0), False
    at = memory.offset[buffer] + address - memory.start[buffer]
    word = np.int64(0)
    for k in range(n_bytes):
        word |= np.int64(memory.content[at + k]) << (8 * k)
    return word, True


@internal
def overwrite(memory, address):
    """A store reached this address: what its buffer holds is not known any more."""
    buffer = find_buffer(memory, address)
    if buffer != NOT_FOUND:
        memory.overwritten[buffer] = 1
