"""KernelTrace: what a kernel does, on any chip of its instruction set.

A trace holds one static instruction table, and per *CTA class* and warp a stream of executed
instructions whose memory, barrier and tensor operands are rows of an event table.  CTAs that run the
same streams are one class; what differs between its members (global addresses, tensor coordinates) is
the class representative's value plus a per-CTA difference: ``cta_base[cta, column]``.

Nothing here knows a chip: shared-memory wavefronts, sectors and timings are computed by ``lower``.
Addresses are bytes.  "Lane offsets" are bytes relative to a pattern origin, -1 where a lane is inactive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

FORMAT_VERSION = 1
LANES = 32
NO_SCOREBOARD = 7
NONE = -1
"""No event, no pattern, no base column."""


@dataclass(frozen=True)
class Launch:
    """Grid and block of one launch (x, y, z), cluster shape, dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic_smem_bytes: int = 0

    @property
    def n_ctas(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def n_threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def n_warps(self) -> int:
        return -(-self.n_threads // LANES)


@dataclass(frozen=True)
class Origin:
    """Where a trace came from: the binary, its digest (sha256 hex), and the tool that built it."""

    source: str
    digest: str
    builder: str


@dataclass(frozen=True)
class TensorMap:
    """A tiled bulk-copy descriptor. ``shape``, ``box``: elements, innermost first; ``strides_bytes``: of
    dimensions 1.. (the innermost is dense); ``swizzle_bytes`` 0, 32, 64 or 128; ``address``: global base;
    ``row_share``: share of the box's rows that a copy fills, on average, where the other rows belong to other copies
    (an im2col box that goes on in the next image row is written as one copy for each row); ``l2_promotion_bytes``: 0, 64,
    128 or 256, what an L2 miss of the copy fills (CUtensorMapL2promotion)."""

    name: str
    element_bytes: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: int
    address: int
    row_share: float = 1.0
    l2_promotion_bytes: int = 128


@dataclass(frozen=True)
class Buffer:
    """A global allocation of the launch: distinct buffers never overlap."""

    name: str
    address: int
    n_bytes: int


@dataclass(frozen=True)
class StaticTable:
    """One row per machine instruction of the kernel, in address order. All columns have length n_static.

    ``address`` byte offset in the kernel; ``opcode`` full mnemonic ("IMAD.WIDE.U32"); ``text`` printable
    form. Control word: ``stall`` cycles to the warp's next issue, ``write_scoreboard`` and
    ``read_scoreboard`` (0..5, 7 = none), ``wait_mask`` bit s = wait for scoreboard s, ``yield_hint`` 1 = the
    scheduler is asked to switch, ``reuse`` operand-cache mask.
    ``width_bytes``: bytes per lane of a memory access (LDSM, STSM: number of 8x8 matrices x 4), else 0.
    ``argument``: static operand of the effect, int32 [n_static, 4], meaning by opcode family:
      asynchronous MMA (HGMMA, QGMMA, IGMMA, BGMMA): (n, k_bytes, 1 if A is read from shared memory,
        1 if this instruction commits the group)
      MMA (HMMA, IMMA, DMMA, QMMA): (m, n, k, element bits of A)
      WARPGROUP.DEPBAR, DEPBAR: (groups that may stay pending, scoreboard or -1, 0, 0)
      BAR: (barrier id or -1 if in a register, thread count or 0, 0, 0)
      everything else: zeros
    ``registers_written``, ``registers_read``: first three general-register numbers, -1 padded, int16 [n_static, 3]
    """

    address: np.ndarray
    opcode: tuple[str, ...]
    text: tuple[str, ...]
    stall: np.ndarray
    yield_hint: np.ndarray
    write_scoreboard: np.ndarray
    read_scoreboard: np.ndarray
    wait_mask: np.ndarray
    reuse: np.ndarray
    width_bytes: np.ndarray
    argument: np.ndarray
    registers_written: np.ndarray
    registers_read: np.ndarray

    def __len__(self) -> int:
        return len(self.opcode)

    @property
    def mnemonics(self) -> np.ndarray:
        """Opcodes without their modifiers ("IMAD" of "IMAD.WIDE.U32"), str [n_static]."""
        return np.array([opcode.split(".")[0] for opcode in self.opcode], str)


@dataclass(frozen=True)
class EventTable:
    """Operands of executed memory, barrier and tensor instructions; one row per event, shared by streams.

    ``pattern``  int32: row of ``lane_patterns`` for the global or shared side of the access, NONE if none
    ``address``  int64: global: byte address of the pattern origin (a multiple of 128) for the class
                 representative; local memory: byte offset in the thread's frame; bulk copy without a
                 tensor map: global address
    ``shared_address`` int32: byte offset in the CTA's shared window: origin of a shared pattern
                 (a multiple of 1024), bulk-copy destination or source, mbarrier
    ``shared_pattern`` int32: shared side of LDGSTS (``pattern`` is its global side), NONE elsewhere
    ``tensor``   int32: row of ``tensor_maps``, NONE if none
    ``coordinate`` int32 [n, 5]: tensor coordinates of the representative, innermost first
    ``base``     int32 [n, 5]: columns of ``cta_base`` to add: [0] to ``address``, or [d] to coordinate d; NONE = 0
    ``count``    int64: bytes of a bulk copy or of expect_tx; arrival count of an mbarrier init;
                 threads of BAR (0 = all)
    ``mbarrier`` int32: byte offset of the mbarrier in the shared window that a bulk copy completes on, or that
                 SYNCS acts on, NONE if none
    ``parity``   int32: phase parity that a try_wait waits for; BAR: barrier id; SYNCS init/arrive: 0
    ``cta_mask`` int32: multicast mask or target rank bits of a cluster access, 0 = own CTA
    """

    pattern: np.ndarray
    address: np.ndarray
    shared_address: np.ndarray
    shared_pattern: np.ndarray
    tensor: np.ndarray
    coordinate: np.ndarray
    base: np.ndarray
    count: np.ndarray
    mbarrier: np.ndarray
    parity: np.ndarray
    cta_mask: np.ndarray

    def __len__(self) -> int:
        return len(self.pattern)


@dataclass(frozen=True)
class Stream:
    """What one warp of one CTA class executes, in order. Arrays of equal length:
    ``instruction`` int32 static row; ``active`` uint8 number of lanes whose guard holds (0..32; the
    instruction issues even when 0); ``event`` int32 row of the event table or NONE."""

    instruction: np.ndarray
    active: np.ndarray
    event: np.ndarray

    def __len__(self) -> int:
        return len(self.instruction)


@dataclass(frozen=True)
class KernelTrace:
    """See the module text. ``streams[class][warp]``; ``cta_class`` int32 [n_ctas], CTA index = x + gx*(y + gy*z);
    ``cta_base`` int64 [n_ctas, n_columns] (difference to the class representative);
    ``lane_patterns`` int32 [n_patterns, 32]."""

    kernel: str
    arch: str
    launch: Launch
    registers_per_thread: int
    static_smem_bytes: int
    local_bytes_per_thread: int
    static: StaticTable
    streams: tuple[tuple[Stream, ...], ...]
    events: EventTable
    lane_patterns: np.ndarray
    cta_class: np.ndarray
    cta_base: np.ndarray
    tensor_maps: tuple[TensorMap, ...]
    buffers: tuple[Buffer, ...]
    origin: Origin
    warnings: tuple[str, ...] = field(default=())

    @property
    def n_classes(self) -> int:
        return len(self.streams)

    @property
    def smem_bytes_per_cta(self) -> int:
        return self.static_smem_bytes + self.launch.dynamic_smem_bytes

    @property
    def warp_instructions(self) -> int:
        """Warp instructions of the whole launch."""
        per_class = np.array([sum(len(s) for s in warps) for warps in self.streams], np.int64)
        return int(per_class[self.cta_class].sum())
