"""The memory instructions whose bank and sector cost is computed, and which lane offsets each accepts."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from simulator.errors import UserError

INACTIVE = -1
"""Lane offset of a lane that takes no part in the access."""

MATRIX_ROWS = 8
MATRIX_ROW_BYTES = 16
"""An 8x8 matrix of 16-bit elements: eight rows of 16 bytes, one row address per lane (PTX ISA, ldmatrix)."""


class AccessKind(IntEnum):
    """One row per kind; the values are what compiled code sees."""

    LDS = 0
    STS = 1
    LDSM = 2
    LDSMT = 3
    STSM = 4
    ATOMS = 5
    ATOMS_RMW = 6
    ATOMS_CAS = 7
    LDG = 8
    STG = 9


class KindRules(NamedTuple):
    """``widths``: bytes per lane, for matrix kinds the number of 8x8 matrices.

    ``repeats_same_address``: lanes on one address are served one after the other instead of together.
    ``wavefronts_per_visit``: passes through the data array that serving a bank once costs (2: read, then write).
    """

    name: str
    widths: tuple[int, ...]
    is_shared: bool = True
    is_matrix: bool = False
    is_load: bool = False
    repeats_same_address: bool = False
    wavefronts_per_visit: int = 1


_LANE_WIDTHS = (1, 2, 4, 8, 16)
_MATRIX_COUNTS = (1, 2, 4)

KIND_RULES: dict[AccessKind, KindRules] = {
    AccessKind.LDS: KindRules("lds", _LANE_WIDTHS, is_load=True),
    AccessKind.STS: KindRules("sts", _LANE_WIDTHS),
    AccessKind.LDSM: KindRules("ldsm", _MATRIX_COUNTS, is_matrix=True),
    AccessKind.LDSMT: KindRules("ldsmt", _MATRIX_COUNTS, is_matrix=True),
    AccessKind.STSM: KindRules("stsm", _MATRIX_COUNTS, is_matrix=True),
    AccessKind.ATOMS: KindRules("atoms", (4,)),
    AccessKind.ATOMS_RMW: KindRules("atoms_rmw", (4,), repeats_same_address=True),
    AccessKind.ATOMS_CAS: KindRules("atoms_cas", (4, 8), repeats_same_address=True, wavefronts_per_visit=2),
    AccessKind.LDG: KindRules("ldg", _LANE_WIDTHS, is_shared=False, is_load=True),
    AccessKind.STG: KindRules("stg", _LANE_WIDTHS, is_shared=False),
}

KIND_NAMES = {rules.name: kind for kind, rules in KIND_RULES.items()}


def kind_named(name: str) -> AccessKind:
    """The kind called ``name`` (case does not matter); UserError lists the names."""
    try:
        return KIND_NAMES[name.strip().lower()]
    except KeyError:
        raise UserError(f"unknown access kind '{name}'; it is one of {', '.join(KIND_NAMES)}") from None


def alignment_bytes(kind: AccessKind, width: int) -> int:
    """What every lane offset must be a multiple of."""
    return MATRIX_ROW_BYTES if KIND_RULES[kind].is_matrix else width


def check_access(kind: AccessKind, width: int, lane_offsets: np.ndarray, n_lanes: int) -> None:
    """Refuse a width or lane offsets (bytes, [n_lanes], -1 = inactive) that no such instruction can have."""
    rules = KIND_RULES[kind]
    if width not in rules.widths:
        what = "number of 8x8 matrices" if rules.is_matrix else "width in bytes per lane"
        raise UserError(f"{rules.name} has no width {width}; its {what} is one of {_listed(rules.widths)}")
    if len(lane_offsets) != n_lanes:
        raise UserError(
            f"{rules.name} needs {n_lanes} lane offsets, one per lane of a warp (-1 for an inactive lane), "
            f"but got {len(lane_offsets)}"
        )
    if rules.is_matrix and n_lanes < rules.widths[-1] * MATRIX_ROWS:
        raise UserError(f"{rules.name} needs {rules.widths[-1] * MATRIX_ROWS} lanes; warps of this chip have {n_lanes}")
    unit = alignment_bytes(kind, width)
    for lane, offset in enumerate(lane_offsets.tolist()):
        if offset < INACTIVE:
            raise UserError(
                f"lane {lane} has the negative offset {offset}; offsets are bytes from 0 up, or -1 for an inactive lane"
            )
        if offset != INACTIVE and offset % unit:
            raise UserError(
                f"lane {lane} has the offset {offset}, which is not a multiple of {unit}: "
                f"{rules.name} with width {width} needs {unit}-byte alignment"
            )


def _listed(values: tuple[int, ...]) -> str:
    return " or ".join((", ".join(str(v) for v in values[:-1]), str(values[-1]))) if len(values) > 1 else str(values[0])
