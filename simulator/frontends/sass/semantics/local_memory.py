"""Local memory (the thread's frame): word w of all lanes is one row, so spilled registers move as rows."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.addresses import is_uniform
from simulator.frontends.sass.semantics.codes import LANES
from simulator.frontends.sass.semantics.compiled import internal
from simulator.frontends.sass.semantics.records import WORD_BYTES
from simulator.frontends.sass.semantics.sources import first_lane


@internal
def local_read(cta, warp, memory, row, active):
    """Frame words into the result registers; accesses that are not whole aligned words are unknown."""
    words, words_unknown = memory.local[warp.number], memory.local_unknown[warp.number]
    whole = is_whole(cta, active, row.x1)
    for k in range(row.n_dest):
        target, missing = row.dest + k, np.int64(0)
        for lane in range(LANES):
            if (active >> lane) & 1 == 0:
                continue
            word = cta.address[lane] // WORD_BYTES + k
            warp.values[target, lane] = words[word, lane]
            missing |= (((words_unknown[word] >> lane) & 1) if whole else np.int64(1)) << lane
        warp.unknown[target] = (warp.unknown[target] & ~active) | missing


@internal
def local_write(cta, warp, memory, row, active):
    """x3 registers from row c on into frame words; accesses that are not whole aligned words leave them unknown."""
    words, words_unknown = memory.local[warp.number], memory.local_unknown[warp.number]
    whole = is_whole(cta, active, row.x1)
    for k in range(row.x3):
        origin = row.c if row.c_hi else row.c + k
        for lane in range(LANES):
            if (active >> lane) & 1 == 0:
                continue
            word, bit = cta.address[lane] // WORD_BYTES + k, np.int64(1) << lane
            words[word, lane] = warp.values[origin, lane]
            is_unknown = (warp.unknown[origin] & bit) != 0 or not whole
            words_unknown[word] = words_unknown[word] | bit if is_unknown else words_unknown[word] & ~bit


@internal
def forget_local(cta, warp, memory, row, active):
    """Frame words whose new contents are not known."""
    words_unknown = memory.local_unknown[warp.number]
    for lane in range(LANES):
        if (active >> lane) & 1:
            for word in range(cta.address[lane] // WORD_BYTES, (cta.address[lane] + row.x1 - 1) // WORD_BYTES + 1):
                words_unknown[word] |= np.int64(1) << lane


@internal
def is_whole(cta, active, n_bytes):
    """Are all accesses whole aligned words?"""
    misaligned = np.int64(n_bytes % WORD_BYTES)
    for lane in range(LANES):
        misaligned |= (cta.address[lane] % WORD_BYTES) * ((active >> lane) & 1)
    return misaligned == 0


@internal
def local_row(cta, active):
    """Frame word that all active lanes access, -1 when they differ."""
    return cta.address[first_lane(active)] // WORD_BYTES if is_uniform(cta, active) else np.int64(-1)
