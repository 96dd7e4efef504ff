"""Special registers of a CTA as value rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from simulator.frontends.sass.launch import BoundLaunch
from simulator.frontends.sass.semantics.codes import FULL, LANES
from simulator.trace.kernel_trace import Launch

AXES = "XYZ"
WORD_BITS = 32


def lane_masks(launch: Launch) -> np.ndarray:
    """Mask of the existing threads of each warp, int64 [W]."""
    full, rest = divmod(launch.n_threads, LANES)
    return np.array([FULL] * full + ([(1 << rest) - 1] if rest else []), np.int64)


def cta_coordinates(launch: Launch, cta: np.ndarray | int) -> np.ndarray:
    """(x, y, z) of CTA indices, int64 [..., 3]."""
    index = np.asarray(cta, np.int64)
    x, y = launch.grid[0], launch.grid[1]
    return np.stack([index % x, index // x % y, index // (x * y)], axis=-1)


def cluster_ranks(launch: Launch, cta: np.ndarray | int) -> np.ndarray:
    """Rank of CTAs in their cluster (x fastest)."""
    inside = cta_coordinates(launch, cta) % np.array(launch.cluster)
    return inside[..., 0] + launch.cluster[0] * (inside[..., 1] + launch.cluster[1] * inside[..., 2])


class SpecialRegisters:
    """Values of the special registers that a kernel names, for any CTA of a launch."""

    def __init__(self, names: Sequence[str], bound: BoundLaunch):
        self.names = tuple(names)
        self.launch = bound.launch
        self.bound = bound
        threads = np.arange(bound.launch.n_warps * LANES, dtype=np.int64)
        x, y, _ = bound.launch.block
        self.thread = np.stack([threads % x, threads // x % y, threads // (x * y)], axis=-1)

    def unknown(self) -> np.ndarray:
        """FULL for registers without a defined value (clocks, SM numbers), int64 [n]."""
        return np.array([0 if self._values(name, 0) is not None else FULL for name in self.names], np.int64)

    def rows(self, cta: int) -> np.ndarray:
        """uint32 [n, W, L]."""
        shape = (self.launch.n_warps, LANES)
        rows = np.zeros((len(self.names), *shape), np.uint32)
        for row, name in zip(rows, self.names, strict=True):
            values = self._values(name, cta)
            row[:] = 0 if values is None else np.broadcast_to(values & FULL, shape)
        return rows

    def per_cta(self, position: int, ctas: np.ndarray) -> np.ndarray | None:
        """Value of one register in each of many CTAs, int64 [n]; None when it is the same in all CTAs."""
        name = self.names[position]
        coordinates = cta_coordinates(self.launch, ctas)
        if found := re.fullmatch(r"SR_CTAID\.([XYZ])", name):
            return np.asarray(coordinates[:, AXES.index(found[1])])
        if name == "SR_CgaCtaId":
            return cluster_ranks(self.launch, ctas)
        return None

    def _values(self, name: str, cta: int) -> np.ndarray | None:
        """Broadcastable to [W, L]; None when undefined."""
        per_cta = self.per_cta(self.names.index(name), np.array([cta]))
        if per_cta is not None:
            return per_cta
        shape = (self.launch.n_warps, LANES)
        if found := re.fullmatch(r"SR_TID\.([XYZ])", name):
            return self.thread[:, AXES.index(found[1])].reshape(shape)
        if name == "SR_TID":
            return (self.thread[:, 0] | self.thread[:, 1] << 16 | self.thread[:, 2] << 26).reshape(shape)
        if found := re.fullmatch(r"SR_NTID\.([XYZ])", name):
            return np.array(self.launch.block[AXES.index(found[1])])
        if found := re.fullmatch(r"SR_NCTAID\.([XYZ])", name):
            return np.array(self.launch.grid[AXES.index(found[1])])
        return self._lane_values(name)

    def _lane_values(self, name: str) -> np.ndarray | None:
        lanes = np.arange(LANES, dtype=np.int64)
        n_warps = self.launch.n_warps
        known = {
            "SR_LANEID": lanes,
            "SR_WARPID": np.arange(n_warps)[:, None],
            "SR_VIRTID": np.zeros(1, np.int64),
            "SR_VIRTCFG": np.zeros(1, np.int64),
            "SR_NWARPID": np.array(n_warps),
            "SR_EQMASK": 1 << lanes,
            "SR_LTMASK": (1 << lanes) - 1,
            "SR_LEMASK": (2 << lanes) - 1,
            "SR_GTMASK": FULL & ~((2 << lanes) - 1),
            "SR_GEMASK": FULL & ~((1 << lanes) - 1),
            "SR_CgaSize": np.array(int(np.prod(self.launch.cluster))),
            "SR_SWINHI": np.array(self.bound.shared_window >> WORD_BITS),
            "SR_LWINHI": np.array(self.bound.local_window >> WORD_BITS),
        }
        return known.get(name)
