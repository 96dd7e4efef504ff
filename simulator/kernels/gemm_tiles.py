"""Which CTA computes which tiles, in which order: raster, persistence, splits of k, clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.gemm_design import ProductDesign
from simulator.kernels.sampling import Extent


@dataclass(frozen=True)
class Work:
    """What CTAs of one class do. ``members`` int64 [n] CTA indices; ``m``, ``n`` int64 [n_units, n]: first row and
    column of each unit's tile, by member; ``k`` int64 [n_units, n]: its first step over k; ``k_steps`` int [n_units];
    ``valid`` (rows, columns) of each unit's tile inside C."""

    members: np.ndarray
    m: np.ndarray
    n: np.ndarray
    k: np.ndarray
    k_steps: tuple[int, ...]
    valid: tuple[tuple[int, int], ...]
    is_partial: bool


def raster(design: ProductDesign, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tile row and column of a tile index: groups of ``group_m`` rows are walked column by column."""
    width = design.group_m * design.tiles_n
    group = index // width
    first = group * design.group_m
    rows = np.minimum(design.tiles_m - first, design.group_m)
    return first + index % width % rows, index % width // rows


def n_ctas(design: ProductDesign) -> int:
    """CTAs of the launch (a persistent design must name them)."""
    tiles = cluster_tiles(design)
    if design.stream_k or design.persistent:
        if design.persistent_ctas is None:
            raise ValueError("a persistent launch needs persistent_ctas")
        most = tiles if design.persistent and not design.stream_k else tiles * design.k_steps
        return min(max(1, design.persistent_ctas // design.cluster), most) * design.cluster
    return tiles * design.split_k * design.cluster


def cluster_tiles(design: ProductDesign) -> int:
    """Tiles of clusters: a cluster computes ``cluster`` neighbouring tiles."""
    along_m, along_n = cluster_shape(design)
    return -(-design.tiles_m // along_m) * -(-design.tiles_n // along_n)


def cluster_shape(design: ProductDesign) -> tuple[int, int]:
    """Tiles of a cluster along m and n: CTAs that share B lie along m, those that share A along n."""
    return (1, design.cluster) if design.multicast == "a" else (design.cluster, 1)


def divide(design: ProductDesign, extent: Extent | None = None) -> list[Work]:
    """All work, by CTA class; ``extent``: at most so many units of a CTA and steps of a unit."""
    ctas = np.arange(n_ctas(design))
    group, rank = ctas // design.cluster, ctas % design.cluster
    tile, first, steps = _stream_units(design, group) if design.stream_k else _tile_units(design, group)
    if extent is not None:
        tile, first = tile[: extent.units], first[: extent.units]
        steps = np.minimum(steps[: extent.units], extent.steps)
    row, column = _place(design, tile, np.broadcast_to(rank, tile.shape))
    row, column = row * design.tile.m, column * design.tile.n
    rows = np.clip(design.m - row, 0, design.tile.m) * (steps > 0)
    columns = np.clip(design.n - column, 0, design.tile.n) * (steps > 0)
    kinds, number = np.unique(np.concatenate([steps, rows, columns]), axis=1, return_inverse=True)
    works = []
    for kind, shape in enumerate(kinds.T):
        members = np.flatnonzero(number.ravel() == kind)
        own = tuple(int(s) for s in shape[: len(steps)] if s > 0)
        n = len(own)
        valid = tuple(zip(shape[len(steps) :][:n].tolist(), shape[2 * len(steps) :][:n].tolist(), strict=True))
        works.append(
            Work(
                members=ctas[members],
                m=row[:n, members],
                n=column[:n, members],
                k=first[:n, members],
                k_steps=own,
                valid=valid,
                is_partial=design.split_k > 1 or design.stream_k,
            )
        )
    return works


Units = tuple[np.ndarray, np.ndarray, np.ndarray]
"""(tile, first k step, k steps; 0: none) of every unit and CTA, int64 [n_units, n_ctas] each."""


def _tile_units(design: ProductDesign, group: np.ndarray) -> Units:
    tiles = cluster_tiles(design)
    n_all = tiles * design.split_k
    n_groups = int(group[-1]) + 1
    rounds = -(-n_all // n_groups) if design.persistent else 1
    unit = group[None, :] + np.arange(rounds)[:, None] * n_groups
    split = np.minimum(unit // tiles, design.split_k - 1)
    total = -(-design.k // design.tile.k)
    steps = np.clip(total - split * design.k_steps, 1, design.k_steps)
    return unit % tiles, split * design.k_steps, np.where(unit < n_all, steps, 0)


def _stream_units(design: ProductDesign, group: np.ndarray) -> Units:
    """Stream-K: all k steps of all tiles in one row, cut into equal parts, one a CTA."""
    n_groups = int(group[-1]) + 1
    total = cluster_tiles(design) * design.k_steps
    cuts = np.arange(n_groups + 1) * total // n_groups
    most = int(np.max(-(-cuts[1:] // design.k_steps) - cuts[:-1] // design.k_steps))
    begin, end = cuts[group], cuts[group + 1]
    tile = begin // design.k_steps + np.arange(most)[:, None]
    low = np.maximum(begin, tile * design.k_steps)
    high = np.minimum(end, (tile + 1) * design.k_steps)
    return np.minimum(tile, cluster_tiles(design) - 1), low % design.k_steps, np.maximum(0, high - low)


def _place(design: ProductDesign, tile: np.ndarray, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tile row and column of a cluster tile's CTA."""
    along_m, along_n = cluster_shape(design)
    if design.cluster == 1:
        return raster(design, tile)
    enlarged = design.tile.model_copy(update={"m": design.tile.m * along_m, "n": design.tile.n * along_n})
    row, column = raster(design.model_copy(update={"tile": enlarged}), tile)
    return row * along_m + rank % along_m, column * along_n + rank // along_m
