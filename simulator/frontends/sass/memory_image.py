"""Global buffers whose contents are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.warp_state import Memory, new_frames

NOT_FOUND = -1


@dataclass(frozen=True)
class BufferImage:
    """Contents of a global buffer at ``address``: ``elements`` one after another, each ``repeat`` times, ``n_bytes`` of them."""

    address: int
    n_bytes: int
    elements: np.ndarray
    repeat: int = 1


def new_memory(n_warps: int, frame_bytes: int, buffers: Sequence[BufferImage] = ()) -> Memory:
    """Memory of a CTA, with global ``buffers`` of known contents."""
    contents = [np.ascontiguousarray(buffer.elements).view(np.uint8) for buffer in buffers]
    units = np.array([buffer.elements.itemsize for buffer in buffers], np.int64)
    return Memory(
        *new_frames(n_warps, frame_bytes),
        start=np.array([buffer.address for buffer in buffers], np.int64),
        end=np.array([buffer.address + buffer.n_bytes for buffer in buffers], np.int64),
        offset=np.cumsum([0, *map(len, contents)], dtype=np.int64)[:-1],
        span=units * np.array([buffer.repeat for buffer in buffers], np.int64),
        unit=units,
        content=np.concatenate(contents) if buffers else np.zeros(0, np.uint8),
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
    """(little-endian word of up to 4 bytes, is it known). Words across repeated elements are not."""
    buffer = find_buffer(memory, address)
    if buffer == NOT_FOUND or memory.overwritten[buffer] or address + n_bytes > memory.end[buffer]:
        return np.int64(0), False
    at, unit = address - memory.start[buffer], memory.unit[buffer]
    if memory.span[buffer] > unit:
        inside = at % unit
        if inside + n_bytes > unit:
            return np.int64(0), False
        at = at // memory.span[buffer] * unit + inside
    at += memory.offset[buffer]
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
