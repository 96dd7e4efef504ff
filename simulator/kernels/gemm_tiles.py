"""Which CTA computes which tiles, in which order: raster, persistence, splits of k, clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.kernels.gemm_design import GemmDesign


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


def raster(design: GemmDesign, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tile row and column of a tile index: groups of ``group_m`` rows are walked column by column."""
    width = design.group_m * design.tiles_n
    group = index // width
    first = group * design.group_m
    rows = np.minimum(design.tiles_m - first, design.group_m)
    return first + index % width % rows, index % width // rows


def n_ctas(design: GemmDesign) -> int:
    """CTAs of the launch (a persistent design must name them)."""
    tiles = cluster_tiles(design)
    if design.stream_k or design.persistent:
        if design.persistent_ctas is None:
            raise ValueError("a persistent launch needs persistent_ctas")
        most = tiles if design.persistent and not design.stream_k else tiles * design.k_steps
        return min(max(1, design.persistent_ctas // design.cluster), most) * design.cluster
    return tiles * design.split_k * design.cluster


def cluster_tiles(design: GemmDesign) -> int:
    """Tiles of clusters: a cluster computes ``cluster`` neighbouring tiles."""
    along_m, along_n = cluster_shape(design)
    return -(-design.tiles_m // along_m) * -(-design.tiles_n // along_n)


def cluster_shape(design: GemmDesign) -> tuple[int, int]:
    """Tiles of a cluster along m and n: CTAs that share B lie along m, those that share A along n."""
    return (1, design.cluster) if design.multicast == "a" else (design.cluster, 1)


def divide(design: GemmDesign) -> list[Work]:
    """All work, by CTA class."""
    ctas = np.arange(n_ctas(design))
    group, rank = ctas // design.cluster, ctas % design.cluster
    units = _stream_units(design, group) if design.stream_k else _tile_units(design, group)
    classes: dict[tuple, list[int]] = {}
    for place, own in enumerate(units):
        shape = tuple((steps, *_valid(design, int(tile), int(rank[place]))) for tile, _, steps in own)
        classes.setdefault(shape, []).append(place)
    return [_work(design, ctas[places], rank[places], [units[p] for p in places], shape) for shape, places in classes.items()]


def _tile_units(design: GemmDesign, group: np.ndarray) -> list[list[tuple[int, int, int]]]:
    """(tile, first k step, k steps) of every CTA."""
    tiles = cluster_tiles(design)
    n_groups = int(group[-1]) + 1
    units = []
    for g in group.tolist():
        if design.persistent:
            units.append(
                [
                    (unit % tiles, unit // tiles * design.k_steps, _steps(design, unit // tiles))
                    for unit in range(g, tiles * design.split_k, n_groups)
                ]
            )
        else:
            units.append([(g % tiles, g // tiles * design.k_steps, _steps(design, g // tiles))])
    return units


def _steps(design: GemmDesign, split: int) -> int:
    """k steps of a split: the last may be short."""
    total = -(-design.k // design.tile.k)
    return max(1, min(design.k_steps, total - split * design.k_steps))


def _stream_units(design: GemmDesign, group: np.ndarray) -> list[list[tuple[int, int, int]]]:
    """Stream-K: all k steps of all tiles in one row, cut into equal parts, one a CTA."""
    n_groups = int(group[-1]) + 1
    total = cluster_tiles(design) * design.k_steps
    cuts = np.arange(n_groups + 1) * total // n_groups
    units = []
    for g in group.tolist():
        own = []
        at = int(cuts[g])
        while at < cuts[g + 1]:
            tile, step = divmod(at, design.k_steps)
            steps = min(design.k_steps - step, int(cuts[g + 1]) - at)
            own.append((tile, step, steps))
            at += steps
        units.append(own)
    return units


def _place(design: GemmDesign, tile: np.ndarray, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tile row and column of a cluster tile's CTA."""
    along_m, along_n = cluster_shape(design)
    if design.cluster == 1:
        return raster(design, tile)
    shape = design.model_copy(
        update={"tile": design.tile.model_copy(update={"m": design.tile.m * along_m, "n": design.tile.n * along_n})}
    )
    row, column = raster(shape, tile)
    return row * along_m + rank % along_m, column * along_n + rank // along_m


def _valid(design: GemmDesign, tile: int, rank: int) -> tuple[int, int]:
    row, column = _place(design, np.array([tile]), np.array([rank]))
    rows = min(design.tile.m, design.m - int(row[0]) * design.tile.m)
    columns = min(design.tile.n, design.n - int(column[0]) * design.tile.n)
    return max(0, rows), max(0, columns)


def _work(
    design: GemmDesign, members: np.ndarray, rank: np.ndarray, units: list[list[tuple[int, int, int]]], shape: tuple
) -> Work:
    tile = np.array([[u[0] for u in own] for own in units], np.int64).T
    first = np.array([[u[1] for u in own] for own in units], np.int64).T
    row, column = _place(design, tile, np.broadcast_to(rank, tile.shape))
    return Work(
        members=members,
        m=row * design.tile.m,
        n=column * design.tile.n,
        k=first,
        k_steps=tuple(s[0] for s in shape),
        valid=tuple((s[1], s[2]) for s in shape),
        is_partial=design.split_k > 1 or design.stream_k,
    )
