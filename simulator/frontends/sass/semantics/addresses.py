"""Lane addresses of memory operands, into ``cta.address``."""

from __future__ import annotations

import numpy as np

from simulator.frontends.sass.semantics.codes import LANES, WORD
from simulator.frontends.sass.semantics.compiled import internal

CTA_RANK_SHIFT = 24
SHARED_OFFSET = (1 << CTA_RANK_SHIFT) - 1
"""Bits of a shared address that are an offset in the window; the rank of a CTA in its cluster lies above."""


@internal
def global_addresses(cta, warp, row):
    """64-bit addresses: register pair a + uniform pair b + x0."""
    values = warp.values
    a, a_high, b, b_high, offset = row.a, row.a_hi, row.b, row.b_hi, row.x0
    for lane in range(LANES):
        base = (np.int64(values[a_high, lane]) << 32) | np.int64(values[a, lane])
        uniform = (np.int64(values[b_high, lane]) << 32) | np.int64(values[b, lane])
        cta.address[lane] = base + uniform + offset


@internal
def window_addresses(cta, warp, row):
    """32-bit addresses in the shared or local window: register a (times a_mod) + uniform register b + x0."""
    values, a, b, scale, offset = warp.values, row.a, row.b, row.a_mod, row.x0
    for lane in range(LANES):
        cta.address[lane] = (np.int64(values[a, lane]) * scale + np.int64(values[b, lane]) + offset) & WORD


@internal
def shared_addresses(cta, warp, row):
    """Offsets in the CTA's shared window; rank bits are dropped."""
    window_addresses(cta, warp, row)
    for lane in range(LANES):
        cta.address[lane] &= SHARED_OFFSET


@internal
def frame_addresses(cta, warp, row):
    """Byte offsets in the thread's local-memory frame."""
    window_addresses(cta, warp, row)
    for lane in range(LANES):
        cta.address[lane] -= cta.frame_base


@internal
def copy_target_addresses(cta, warp, row):
    """Shared side of an asynchronous copy: register c + uniform register c_hi + x2."""
    values, c, c_uniform, offset = warp.values, row.c, row.c_hi, row.x2
    for lane in range(LANES):
        cta.address[lane] = (np.int64(values[c, lane]) + np.int64(values[c_uniform, lane]) + offset) & SHARED_OFFSET


@internal
def target_ranks(cta, active):
    """Bits of the cluster ranks that shared addresses name; 0 when all are in the own CTA. Leaves window offsets."""
    ranks = np.int64(0)
    for lane in range(LANES):
        if (active >> lane) & 1:
            ranks |= np.int64(1) << (cta.address[lane] >> CTA_RANK_SHIFT)
        cta.address[lane] &= SHARED_OFFSET
    return np.int64(0) if ranks == np.int64(1) << cta.rank else ranks


@internal
def is_inside(cta, active, n_bytes, limit):
    """Do the accesses of all active lanes lie in 0 .. limit?"""
    outside = 0
    for lane in range(LANES):
        at = cta.address[lane]
        if (active >> lane) & 1 and (at < 0 or at + n_bytes > limit):
            outside += 1
    return outside == 0


@internal
def is_uniform(cta, active):
    """Do all active lanes hold the same address?"""
    first, found = np.int64(0), False
    for lane in range(LANES):
        if (active >> lane) & 1:
            if found and cta.address[lane] != first:
                return False
            first, found = cta.address[lane], True
    return True
