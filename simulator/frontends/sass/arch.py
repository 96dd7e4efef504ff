"""Per-architecture tables of the SASS front end: where the driver puts launch values in constant bank 0.

Offsets were read from compiled probes of every special register (one kernel per architecture that stores each
``%ntid``, ``%cluster_nctaid``, ``&parameter``...). Parameters have no row: their base is in ``.nv.info``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from simulator.errors import Unsupported

ABSENT = -1


@dataclass(frozen=True)
class ConstantBank:
    """Byte offsets in constant bank 0; ABSENT where the architecture has no such entry.

    ``block``, ``grid``: three u32 each. ``stack``: u32 initial stack pointer (R1). ``shared_window``, ``local_window``:
    u64 generic base addresses. ``parameter_address``: u64 generic address of the first parameter.
    ``global_descriptor``: u64 named by desc[URn]. ``dynamic_smem``: u32 bytes.
    ``is_cluster``: u32, 1 when the launch names a cluster shape. ``cluster``: three u32 CTAs per cluster;
    ``cluster_reciprocal``: three f32; ``n_clusters``: three u32; ``cluster_size``: u32 CTAs of a cluster."""

    block: int
    grid: int
    stack: int
    dynamic_smem: int
    global_descriptor: int
    local_window: int
    shared_window: int = ABSENT
    parameter_address: int = ABSENT
    is_cluster: int = ABSENT
    cluster: int = ABSENT
    cluster_reciprocal: int = ABSENT
    n_clusters: int = ABSENT
    cluster_size: int = ABSENT


@dataclass(frozen=True)
class Architecture:
    """What differs between instruction-set generations. ``reserved_smem_bytes``: bytes at the start of the shared
    window that belong to the system and are counted in the size of a kernel's shared section."""

    first: int
    last: int
    constant_bank: ConstantBank
    reserved_smem_bytes: int


# From sm_100 on, the cluster entries lie in a record that SR_CgaSize selects; the offsets are those of value 1.
ARCHITECTURES = (
    Architecture(
        first=70,
        last=89,
        constant_bank=ConstantBank(
            block=0x0, grid=0xC, stack=0x28, dynamic_smem=0x2C, global_descriptor=0x118,
            shared_window=0x18, local_window=0x20,
        ),
        reserved_smem_bytes=0,
    ),
    Architecture(
        first=90,
        last=99,
        constant_bank=ConstantBank(
            block=0x0, grid=0xC, stack=0x28, dynamic_smem=0x2C, global_descriptor=0x208,
            local_window=0x20, parameter_address=0x198, is_cluster=0x140, cluster=0x144,
            cluster_reciprocal=0x150, n_clusters=0x15C, cluster_size=0x188,
        ),
        reserved_smem_bytes=1024,
    ),
    Architecture(
        first=100,
        last=129,
        constant_bank=ConstantBank(
            block=0x360, grid=0x370, stack=0x37C, dynamic_smem=0x20C, global_descriptor=0x358,
            local_window=0x2F8, parameter_address=0x348, is_cluster=0x36C, cluster=0x200,
            cluster_reciprocal=0x210, n_clusters=0x220, cluster_size=0x22C,
        ),
        reserved_smem_bytes=1024,
    ),
)


def architecture(name: str) -> Architecture:
    """Table of an architecture such as "sm_90a". Unsupported when no table covers it."""
    found = re.fullmatch(r"sm_(\d+)[af]?", name)
    number = int(found[1]) if found else 0
    for row in ARCHITECTURES:
        if row.first <= number <= row.last:
            return row
    known = ", ".join(f"sm_{row.first}..sm_{row.last}" for row in ARCHITECTURES)
    raise Unsupported(f"architecture {name} is not supported; the front end reads {known}")
