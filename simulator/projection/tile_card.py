"""The pre-check of a design that nobody has written yet: legality, occupancy, conflicts, time, and what to change."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from simulator.errors import Unsupported, UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels.families import Family, family_of
from simulator.kernels.legality import Violation, check_registers, nearest_legal
from simulator.kernels.sampling import Sample, choose_sample
from simulator.projection.html import html_card
from simulator.projection.occupancy import Occupancy, occupancy
from simulator.projection.plan import Budget
from simulator.projection.sampled import Parts, SampledProjection, project_sampled
from simulator.projection.tile_accesses import TileAccess, shared_accesses

CARD_BUDGET = Budget(instructions=400_000, lines=50_000, fewest_sms=2)
COMPARISON_BUDGET = Budget(instructions=100_000, lines=50_000, fewest_sms=2)
LINES_BUDGETS = Budget(400_000, 500_000, fewest_sms=4), Budget(100_000, 200_000, fewest_sms=2)
"""The same for families whose CTAs all read a few lines (a row of weights): more lines are followed, because each would
otherwise stand for many others, all in one partition."""
N_BOTTLENECKS = 3
N_SUGGESTIONS = 3
N_COMPARED = 3
"""Single-step changes of a quick card: the first legal ones of the family, which lists them by what they are usually worth."""
NOTICEABLE = 0.02
TERA, MEGA = 1e12, 1e6


@dataclass(frozen=True)
class Suggestion:
    """A single-step change, simulated like the design itself: ``saves`` share of its cycles (negative: costs)."""

    change: str
    saves: float
    design: dict[str, Any]


@dataclass(frozen=True)
class TileCard:
    """What ``kernelcast tile`` answers; parts that an illegal design has not are None. ``bound_share``: of the time, what
    the tightest bound explains; ``dram_share``: least bytes per second over the DRAM's peak, of families that move data."""

    hw: str
    design: BaseModel
    violations: list[Violation]
    nearest_legal: BaseModel | None
    occupancy: Occupancy | None = None
    registers: int | None = None
    warnings: tuple[str, ...] = ()
    accesses: tuple[TileAccess, ...] = ()
    projection: SampledProjection | None = None
    tflops: float | None = None
    gigabytes_per_second: float | None = None
    bound_share: float | None = None
    dram_share: float | None = None
    bottlenecks: tuple[tuple[str, float], ...] = ()
    tried: tuple[Suggestion, ...] = ()
    library_us: float | None = None
    seconds: float = 0.0

    @property
    def is_legal(self) -> bool:
        return not self.violations

    @property
    def suggestions(self) -> list[Suggestion]:
        """The changes that save most, at least NOTICEABLE."""
        return [one for one in self.tried if one.saves >= NOTICEABLE][:N_SUGGESTIONS]

    def to_row(self) -> dict[str, Any]:
        """The design and what it is worth as plain values: rows of several cards are a tidy pandas frame. An illegal
        design has its ``violation`` and no time."""
        design = self.design.model_dump(mode="json", exclude_none=True)
        row = {name: "x".join(map(str, value.values())) if isinstance(value, dict) else value for name, value in design.items()}
        row |= {"hw": self.hw, "legal": self.is_legal, "violation": self.violations[0].message if self.violations else None}
        if self.projection is None or self.occupancy is None:
            return row
        row |= {"registers": self.registers, "smem_bytes": self.occupancy.smem_allocated_per_cta}
        row |= {"ctas_per_sm": self.occupancy.ctas_per_sm, "occupancy": self.occupancy.occupancy}
        row |= {"bank_conflicts": sum(access.total_bank_conflicts for access in self.accesses)}
        row |= {name: getattr(self.projection, name) for name in ("cycles", "time_us", "bound_by")}
        rates = {"tflops": self.tflops, "gigabytes_per_second": self.gigabytes_per_second}
        return row | rates | {"share_of_bound": self.bound_share}

    def _repr_html_(self) -> str:
        """Legality, then occupancy, conflicts and what single-step changes are worth."""
        subject = f"{getattr(self.design, 'title', '') or self.design.model_dump()['kind']} on {self.hw}"
        if self.projection is None or self.occupancy is None:
            lines = [(one.message, one.change or "") for one in self.violations]
            return html_card(subject, "not legal", {"violation, and the nearest legal change": lines})
        p, resident = self.projection, self.occupancy
        limits = " and ".join(name.replace("smem", "shared memory") for name in resident.limiters)
        bound_by = p.bound_by.replace("_", " ")
        worst = [access for access in self.accesses if access.bank_conflicts]
        return html_card(
            subject,
            f"legal; {p.cycles:,.0f} cycles, {p.time_us:,.1f} us at {p.clock_mhz:.0f} MHz, bound by {bound_by}",
            {
                "occupancy": [(f"CTAs per SM: {resident.ctas_per_sm}", f"limited by {limits}")],
                "bank conflicts": [
                    (f"{one.name}: {one.wavefronts} wavefronts", one.suggestion.text if one.suggestion else "")
                    for one in worst
                ],
                "waits": [(name.replace("_", " "), f"{share:.1%}") for name, share in self.bottlenecks],
                "changes, cycles saved": [(one.change, f"{one.saves:+.1%}") for one in self.tried],
            },
        )

    def to_json(self) -> dict[str, Any]:
        """The contract's keys; what does not exist is absent."""
        document: dict[str, Any] = {
            "hw": self.hw,
            "design": self.design.model_dump(mode="json", exclude_none=True),
            "legal": self.is_legal,
            "violations": [violation.to_json() for violation in self.violations],
        }
        if self.violations and self.nearest_legal is not None:
            document["nearest_legal"] = self.nearest_legal.model_dump(mode="json", exclude_none=True)
        if self.projection is None or self.occupancy is None:
            return document
        p = self.projection
        if self.dram_share is not None:
            document["dram_share"] = self.dram_share
        document |= {
            "occupancy": self.occupancy.to_json(),
            "registers_per_thread": self.registers,
            "smem_accesses": [access.to_json() for access in self.accesses],
            "projection": {
                "cycles": p.cycles,
                "time_us": p.time_us,
                "clock_mhz": p.clock_mhz,
                **({"interval": p.interval} if p.interval else {}),
                "tflops": self.tflops,
                "gigabytes_per_second": self.gigabytes_per_second,
                "bound_by": p.bound_by,
                "bounds": p.bounds,
                "share_of_bound": self.bound_share,
                "warp_instructions": p.warp_instructions,
                "smem": p.smem,
                "bytes": p.bytes,
                "stalls": p.stalls,
                "simulated": {"parts": p.parts, "seconds": p.seconds},
            },
            "bottlenecks": [{"name": name, "share": share} for name, share in self.bottlenecks],
            "suggestions": [_plain(one) for one in self.suggestions],
            "tried": [_plain(one) for one in self.tried],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
        }
        if self.library_us is not None:
            document["vendor_library_us"] = self.library_us
        return document


def _plain(one: Suggestion) -> dict[str, Any]:
    return {"change": one.change, "saves": one.saves, "design": one.design}


def check_design(design: BaseModel, hw: HardwareConfig) -> list[Violation]:
    """Every limit that a design breaks, the registers of its generated code included."""
    family = family_of(design)
    found = family.check(design, hw)
    if found:
        return found
    registers, threads, _ = family.resources(design)
    return check_registers(registers, threads, hw)


def ready_to_build(design: BaseModel, hw: HardwareConfig) -> tuple[BaseModel, Occupancy, int]:
    """(design with what depends on the chip's size filled in, its occupancy, registers per thread)."""
    family = family_of(design)
    registers, threads, smem = family.resources(design)
    resident = occupancy(hw, registers, threads, smem, cluster=getattr(design, "cluster", 1))
    return family.launched_on(design, hw.sm.count, resident.ctas_per_sm), resident, registers


def make_card(design: BaseModel, hw: HardwareConfig, library_us: float | None = None, n_compared: int = N_COMPARED) -> TileCard:
    """The card of one design. ``library_us``: measured time of the vendor's library, if there is one; ``n_compared``: how
    many single-step changes are simulated too."""
    started = time.perf_counter()
    violations = check_design(design, hw)
    if violations:
        return TileCard(hw.name, design, violations, nearest_legal(design, hw, check_design))
    family = family_of(design)
    ready, resident, registers = ready_to_build(design, hw)
    sample = choose_sample(family.extent_of(ready), family.sample_steps)
    parts = _parts(family, ready, hw, resident)
    projection = project_sampled(parts, sample, _budgets(family)[0])
    first = parts.lowered(sample.extents[0]).trace
    seconds = projection.time_us / MEGA
    bound = max(projection.bounds.values())
    stalls = sorted(((n, s) for n, s in projection.stalls.items() if n != "selected"), key=lambda item: -item[1])
    return TileCard(
        hw=hw.name,
        design=design,
        violations=[],
        nearest_legal=None,
        occupancy=resident,
        registers=registers,
        warnings=first.warnings,
        accesses=tuple(shared_accesses(first, hw)),
        projection=projection,
        tflops=family.flops(design) / seconds / TERA,
        gigabytes_per_second=family.least_bytes(design) / seconds / 1e9,
        bound_share=bound / projection.cycles,
        dram_share=_dram_share(family, design, hw, seconds),
        bottlenecks=tuple(stalls[:N_BOTTLENECKS]),
        tried=tuple(_compare(family, design, ready, parts, n_compared)) if n_compared else (),
        library_us=library_us,
        seconds=time.perf_counter() - started,
    )


def project_parts(ready: BaseModel, hw: HardwareConfig, resident: Occupancy) -> SampledProjection:
    """A design (as ``ready_to_build`` gives it) from parts of its work, at the fidelity of a card."""
    family = family_of(ready)
    sample = choose_sample(family.extent_of(ready), family.sample_steps)
    return project_sampled(_parts(family, ready, hw, resident), sample, _budgets(family)[0])


def _dram_share(family: Family, design: BaseModel, hw: HardwareConfig, seconds: float) -> float | None:
    if not family.moves_data or hw.dram is None or not hw.dram.peak_bytes_per_second:
        return None
    return family.least_bytes(design) / seconds / hw.dram.peak_bytes_per_second


def _parts(family: Family, ready: BaseModel, hw: HardwareConfig, resident: Occupancy) -> Parts:
    return Parts(lambda extent: family.build(ready, hw.identity.instruction_set, extent), hw, resident)


def _compare(family: Family, design: BaseModel, ready: Any, parts: Parts, n_compared: int) -> list[Suggestion]:
    """Legal single-step changes, the one that saves most first; both sides run at the same, smallest fidelity. ``parts``: of
    the design itself."""
    hw, budget = parts.hw, _budgets(family)[1]
    base = project_sampled(parts, _comparison_sample(family, ready), budget, settles_clock=False)
    found: list[Suggestion] = []
    for change, other in family.neighbours(design):
        if len(found) == n_compared:
            break
        try:
            if check_design(other, hw):
                continue
            other_ready, other_resident, _ = ready_to_build(other, hw)
            sample = _comparison_sample(family, other_ready)
            p = project_sampled(_parts(family, other_ready, hw, other_resident), sample, budget, settles_clock=False)
        except (UserError, Unsupported):
            continue
        found.append(Suggestion(change, float(1 - p.cycles / base.cycles), other.model_dump(mode="json", exclude_none=True)))
    return sorted(found, key=lambda one: -one.saves)


def _budgets(family: Family) -> tuple[Budget, Budget]:
    """Of the card and of comparisons."""
    return LINES_BUDGETS if family.shares_lines else (CARD_BUDGET, COMPARISON_BUDGET)


def _comparison_sample(family: Family, design: Any) -> Sample:
    return choose_sample(family.extent_of(design), family.sample_steps // 2)
