"""Which CTA attends to which keys: blocks of queries, causal trip counts, splits of the sequence, and classes of CTAs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.sampling import Extent


@dataclass(frozen=True)
class Work:
    """What CTAs of one class do. ``members`` int64 [n]: CTA indices; ``row``, ``head``, ``sequence``, ``split`` int64 [n]:
    first row of Q, its head (of ``block_heads``), sequence of the batch, part of the keys; ``first_key`` int64 [n];
    ``steps`` of ``block_n`` keys, the last ``masked`` of which have keys that some row does not see; ``valid_rows`` of the
    block and ``valid_keys`` of the last step inside Q and K."""

    members: np.ndarray
    row: np.ndarray
    head: np.ndarray
    sequence: np.ndarray
    split: np.ndarray
    first_key: np.ndarray
    steps: int
    masked: int
    valid_rows: int
    valid_keys: int


def n_ctas(design: AttentionDesign, extent: Extent | None = None) -> int:
    """CTAs of the launch, or of ``extent.units`` of its rounds: all are taken to be equally full."""
    whole = design.blocks_m * design.split_kv * design.block_heads * design.batch
    return whole if extent is None else min(whole, extent.units * -(-whole // units(design)))


def units(design: AttentionDesign) -> int:
    """Rounds in which the chip takes the CTAs. Causal blocks last differently, so that their launch has no rounds."""
    return 1 if design.causal or design.resident_ctas is None else -(-n_ctas(design) // design.resident_ctas)


def key_steps(design: AttentionDesign, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(steps, of which without a mask) of blocks of queries, int64 [n], before any split. A causal row sees the keys up to
    its own position counted from the ends of both sequences."""
    if not design.causal:
        whole = np.full(block.shape, design.most_steps)
        return whole, whole - (design.keys % design.block_n > 0)
    share = design.group if design.pack_gqa else 1
    ahead = design.keys - design.seq_q
    last = (np.minimum(design.rows, (block + 1) * design.block_m) - 1) // share
    first = block * design.block_m // share
    return -(-(last + ahead + 1) // design.block_n), (first + ahead + 1) // design.block_n


def divide(design: AttentionDesign, extent: Extent | None = None) -> list[Work]:
    """All work, by CTA class. ``extent``: the CTA with the most steps does so many, every other its share of them."""
    cta = np.arange(n_ctas(design, extent))
    block = cta % design.blocks_m
    if design.causal and design.order == "longest_first":
        block = design.blocks_m - 1 - block
    split = cta // design.blocks_m % design.split_kv
    head = cta // (design.blocks_m * design.split_kv) % design.block_heads
    sequence = cta // (design.blocks_m * design.split_kv * design.block_heads)
    total, unmasked = key_steps(design, block)
    begin = split * design.steps_per_split
    end = np.minimum(total, begin + design.steps_per_split)
    steps = np.maximum(0, end - begin)
    masked = np.maximum(0, end - np.maximum(begin, unmasked)) * (steps > 0)
    valid_keys = np.clip(design.keys - (end - 1) * design.block_n, 0, design.block_n) * (steps > 0)
    if extent is not None and extent.steps < design.steps_per_split:
        steps, masked = _shortened(steps, masked, extent.steps, design.steps_per_split)
    row = block * design.block_m
    first_key = begin * design.block_n
    valid_rows = np.minimum(design.block_m, design.rows - row)
    in_page = first_key % (design.page_size or 1)
    kinds, number = np.unique(np.stack([steps, masked, valid_rows, valid_keys, in_page]), axis=1, return_inverse=True)
    works = []
    for kind, values in enumerate(kinds.T.tolist()):
        own = np.flatnonzero(number.ravel() == kind)
        places = (row[own], head[own], sequence[own], split[own], first_key[own])
        works.append(Work(cta[own], *places, *values[:4]))
    return works


def _shortened(steps: np.ndarray, masked: np.ndarray, most: int, whole: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps in proportion (at least one where there were any); the masked ones remain as far as they fit."""
    less = np.maximum((steps > 0).astype(np.int64), np.round(steps * most / whole).astype(np.int64))
    return less, np.minimum(masked, less)
