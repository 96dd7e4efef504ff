"""HardwareConfig: one chip as a frozen tree of plain values, in base units that the field names carry.

Words are vendor-neutral: an SM is also a compute unit or a workgroup processor, a sub-partition a SIMD, a warp a
wavefront, shared memory the LDS, a CTA a workgroup.  Registers are 32 bits wide and counted per SM (all lanes).
The values' sources and confidence travel beside the tree, by dotted path (``HardwareConfig.provenance``).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from simulator.errors import Unsupported
from simulator.hw.access_rules import SharedAccessRules
from simulator.hw.provenance import Provenance
from simulator.hw.timing import Section, Timing
from simulator.hw.validity import numbers, require_divides, require_not_above, require_power_of_two

REGISTER_BYTES = 4
"""A register is 32 bits: the unit in which every vendor counts, not a property of a chip."""


class Identity(Section):
    """What the chip is called, and which compiled kernels run on it (``instruction_set`` and compatible ones)."""

    vendor: str
    product: str
    architecture: str
    instruction_set: str
    compatible_instruction_sets: tuple[str, ...] = ()

    def runs(self, instruction_set: str) -> bool:
        """Whether kernels compiled for ``instruction_set`` execute on this chip."""
        return instruction_set in (self.instruction_set, *self.compatible_instruction_sets)


class Clock(Section):
    """SM clock. ``boost_hz`` is the highest that a kernel sees; what it sustains is in the timing section."""

    boost_hz: int = Field(gt=0)
    base_hz: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _base_below_boost(self) -> Self:
        if self.base_hz is not None and self.base_hz > self.boost_hz:
            raise ValueError(f"base_hz ({self.base_hz}) is above boost_hz ({self.boost_hz})")
        return self


class Power(Section):
    """Board power. The limit is what caps the clock of tensor-heavy kernels."""

    limit_watts: float = Field(gt=0)


class Sm(Section):
    """Count and launch limits of the SMs, with the rules by which registers are handed to warps.

    A warp's registers are rounded up to ``register_allocation_unit`` registers, and the warps that the register
    file holds are rounded down to ``warp_allocation_granularity`` (each sub-partition has its own part of the
    file).  Chips that hand registers to whole CTAs set ``is_register_allocation_per_cta``: the CTA's warps are
    rounded up to the granularity and its registers to the unit.  ``accumulator_alignment``: matrix accumulators
    live in the same file and start at a multiple of this many registers per thread.
    ``max_multi_warp_ctas``: CTAs of more than one warp need a hardware barrier, of which there are this many.
    """

    count: int = Field(gt=0)
    n_subpartitions: int = Field(gt=0)
    warp_size: int = Field(gt=0)
    max_warps: int = Field(gt=0)
    max_threads: int = Field(gt=0)
    max_ctas: int = Field(gt=0)
    max_multi_warp_ctas: int | None = Field(default=None, gt=0)
    max_threads_per_cta: int = Field(gt=0)
    n_registers: int = Field(gt=0)
    max_registers_per_thread: int = Field(gt=0)
    register_allocation_unit: int = Field(gt=0)
    warp_allocation_granularity: int = Field(gt=0)
    is_register_allocation_per_cta: bool = False
    accumulator_alignment: int | None = Field(default=None, gt=0)

    @property
    def register_file_bytes(self) -> int:
        return self.n_registers * REGISTER_BYTES

    @property
    def max_warps_per_subpartition(self) -> int:
        return self.max_warps // self.n_subpartitions

    @property
    def max_warps_per_cta(self) -> int:
        return -(-self.max_threads_per_cta // self.warp_size)

    @model_validator(mode="after")
    def _can_exist(self) -> Self:
        require_power_of_two(self, "warp_size")
        require_divides(self, "n_subpartitions", "n_registers")
        require_divides(self, "register_allocation_unit", "n_registers")
        require_divides(self, "n_subpartitions", "max_warps")
        require_not_above(self, "max_threads_per_cta", "max_threads")
        if self.max_threads > self.max_warps * self.warp_size:
            raise ValueError(
                f"max_threads ({self.max_threads}) is above max_warps x warp_size ({self.max_warps * self.warp_size})"
            )
        require_not_above(self, "warp_allocation_granularity", "max_warps")
        return self


class SharedMemory(Section):
    """Shared memory of an SM: how much, how it is handed out, and its banks.

    Every CTA takes ``reserved_per_cta_bytes`` on top of its own request; the sum is rounded up to
    ``allocation_unit_bytes``.  ``carveouts_bytes``: the sizes that the driver can choose from, ascending.
    """

    capacity_bytes: int = Field(gt=0)
    max_per_cta_bytes: int = Field(gt=0)
    reserved_per_cta_bytes: int = Field(ge=0)
    allocation_unit_bytes: int = Field(gt=0)
    carveouts_bytes: tuple[int, ...] = Field(min_length=1)
    n_banks: int = Field(gt=0)
    bank_width_bytes: int = Field(gt=0)
    access: SharedAccessRules | None = None

    @property
    def bandwidth_bytes_per_cycle(self) -> int:
        """Bytes of one conflict-free wavefront over all banks."""
        return self.n_banks * self.bank_width_bytes

    @model_validator(mode="after")
    def _can_exist(self) -> Self:
        require_power_of_two(self, "n_banks")
        require_power_of_two(self, "bank_width_bytes")
        if list(self.carveouts_bytes) != sorted(set(self.carveouts_bytes)) or self.carveouts_bytes[0] < 0:
            raise ValueError(f"carveouts_bytes {list(self.carveouts_bytes)} must be ascending, from 0 up")
        if self.carveouts_bytes[-1] > self.capacity_bytes:
            raise ValueError(
                f"carveouts_bytes reaches {self.carveouts_bytes[-1]}, above capacity_bytes ({self.capacity_bytes})"
            )
        if self.max_per_cta_bytes + self.reserved_per_cta_bytes > self.carveouts_bytes[-1]:
            raise ValueError(
                f"max_per_cta_bytes ({self.max_per_cta_bytes}) with reserved_per_cta_bytes "
                f"({self.reserved_per_cta_bytes}) is above the largest carve-out ({self.carveouts_bytes[-1]})"
            )
        return self


class L1Cache(Section):
    """L1 data cache geometry. ``combined_capacity_bytes``: L1 and shared memory together, where they share an SRAM."""

    line_bytes: int = Field(gt=0)
    sector_bytes: int = Field(gt=0)
    combined_capacity_bytes: int | None = Field(default=None, gt=0)

    @property
    def sectors_per_line(self) -> int:
        return self.line_bytes // self.sector_bytes

    @model_validator(mode="after")
    def _can_exist(self) -> Self:
        require_power_of_two(self, "line_bytes")
        require_power_of_two(self, "sector_bytes")
        require_divides(self, "sector_bytes", "line_bytes")
        return self


class L2Cache(Section):
    """L2 cache. With several partitions, an SM's near capacity is one partition's: far data is cached near as well."""

    capacity_bytes: int = Field(gt=0)
    n_partitions: int = Field(gt=0)

    @property
    def partition_bytes(self) -> int:
        return self.capacity_bytes // self.n_partitions

    @model_validator(mode="after")
    def _can_exist(self) -> Self:
        require_divides(self, "n_partitions", "capacity_bytes")
        return self


class Dram(Section):
    """Device memory: ``peak_bytes_per_second`` is bus width times data rate; what is reached is in the timing."""

    kind: str
    capacity_bytes: int = Field(gt=0)
    peak_bytes_per_second: int = Field(gt=0)
    n_channels: int | None = Field(default=None, gt=0)
    bus_bits: int | None = Field(default=None, gt=0)


class Cluster(Section):
    """CTAs of one cluster: the portable maximum, and the one that a kernel must ask for explicitly."""

    max_size: int = Field(gt=0)
    max_size_nonportable: int = Field(gt=0)

    @model_validator(mode="after")
    def _portable_is_smaller(self) -> Self:
        require_not_above(self, "max_size", "max_size_nonportable")
        return self


class ExecutionSections(NamedTuple):
    """The sections that running a kernel needs, all present."""

    clock: Clock
    l1: L1Cache
    l2: L2Cache
    dram: Dram
    timing: Timing


class HardwareConfig(Section):
    """One chip. Build it with ``simulator.hw.loader.load_hw``; optional sections are None where nothing is known."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    identity: Identity
    sm: Sm
    shared_memory: SharedMemory
    clock: Clock | None = None
    power: Power | None = None
    l1: L1Cache | None = None
    l2: L2Cache | None = None
    dram: Dram | None = None
    cluster: Cluster | None = None
    timing: Timing | None = None

    _provenance: Provenance = PrivateAttr(default_factory=Provenance)

    @property
    def provenance(self) -> Provenance:
        """Source and confidence of every value, by dotted path."""
        return self._provenance

    def values(self) -> dict[str, Any]:
        """The values as nested plain dictionaries, without the name and without absent sections."""
        return self.model_dump(mode="json", exclude={"name"}, exclude_none=True)

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical values: equal chips have equal digests, whatever their files are called."""
        canonical = json.dumps(self.values(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def missing_for_execution(self) -> list[str]:
        """Sections without which a kernel cannot be projected on this chip."""
        return [name for name in ExecutionSections._fields if getattr(self, name) is None]

    def execution_sections(self) -> ExecutionSections:
        """The sections that execution needs; raises Unsupported naming the ones that this chip lacks."""
        clock, l1, l2, dram, timing = self.clock, self.l1, self.l2, self.dram, self.timing
        if clock is None or l1 is None or l2 is None or dram is None or timing is None:
            missing = self.missing_for_execution()
            raise Unsupported(
                f"{self.name} cannot run kernels yet: its configuration lacks the section"
                f"{'s' if len(missing) > 1 else ''} {', '.join(missing)}; occupancy and access questions still work"
            )
        return ExecutionSections(clock, l1, l2, dram, timing)

    @model_validator(mode="after")
    def _can_exist(self) -> Self:
        combined = self.l1.combined_capacity_bytes if self.l1 else None
        if combined is not None and combined < self.shared_memory.capacity_bytes:
            raise ValueError(
                f"l1.combined_capacity_bytes ({combined}) is below "
                f"shared_memory.capacity_bytes ({self.shared_memory.capacity_bytes})"
            )
        for path, value in numbers(self.values()):
            if value < 0:
                raise ValueError(f"{path} is {value}; no hardware quantity is negative")
            name = path.rpartition(".")[2]
            if value == 0 and name.endswith("latency_cycles") and not name.startswith("extra_"):
                raise ValueError(f"{path} is 0; a latency is at least one cycle")
        return self
