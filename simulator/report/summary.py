"""What a report says of a projection, as plain texts and bars; the text and the HTML page only arrange it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.projection.diagnosis import MEANING
from simulator.projection.projection import Projection
from simulator.report.format import duration, percent, plural, scaled, whole, words

SMALLEST_SHARE = 0.005
"""Stall reasons below this share are summed up as one."""

STALL_MEANING = {
    "selected": "issued an instruction",
    "wait": "fixed latency of the previous instruction",
    "long_scoreboard": "waits for global, local or L2 data",
    "short_scoreboard": "waits for shared memory or a special-function result",
    "barrier": "waits for other warps at a CTA barrier",
    "mbarrier": "waits for a bulk copy or another warp at an mbarrier",
    "gmma": "waits for asynchronous tensor work",
    "mio_throttle": "shared-memory and special-function queue is full",
    "lg_throttle": "queue of global accesses is full",
    "math_pipe_throttle": "the arithmetic pipe is busy",
    "not_selected": "ready, another warp was chosen",
    "drain": "waits for stores at exit",
    "dispatch_stall": "dispatch port or register file is busy",
    "membar": "waits for a memory fence",
    "branch_resolving": "waits for a branch target",
    "no_instruction": "waits for instruction fetch",
}


@dataclass(frozen=True)
class Bar:
    """One bar of a chart: ``share`` 0..1 of the full width; ``value`` as printed; ``note`` explains the label."""

    name: str
    label: str
    share: float
    value: str
    note: str = ""


@dataclass(frozen=True)
class Fact:
    """A labelled figure, with an optional remark."""

    label: str
    value: str
    note: str = ""


def headline(projection: Projection) -> str:
    """The answer in one line."""
    return (
        f"{whole(projection.cycles)} cycles, {duration(projection.time_us)} at {projection.clock_mhz:.0f} MHz, "
        f"bound by {words(projection.bound_by)}"
    )


def interval_text(interval: Mapping[str, Any], cycles: float, time_us: float) -> str:
    """Where measured kernels of this class lie, in cycles, time and words; empty without an interval."""
    if not interval:
        return ""
    low, high = interval["low"], interval["high"]
    times = f"{duration(low / cycles * time_us)} to {duration(high / cycles * time_us)}"
    return f"Interval {whole(low)} to {whole(high)} cycles, {times}: {interval['basis']}"


def facts(projection: Projection) -> list[Fact]:
    """Occupancy, waves, instructions and shared memory."""
    occupancy = projection.occupancy
    limiters = occupancy.get("limiters") or []
    found = [
        Fact(
            "Occupancy",
            percent(float(occupancy["occupancy"])) if "occupancy" in occupancy else "-",
            _occupancy_note(projection, [words(str(name)) for name in limiters]),
        ),
        Fact("Waves", f"{projection.waves:.2f}", f"the tail takes {percent(projection.tail_fraction)} of the time"),
        Fact("Warp instructions", scaled(projection.warp_instructions), whole(projection.warp_instructions)),
    ]
    wavefronts, conflicts = projection.smem.get("wavefronts", 0), projection.smem.get("bank_conflicts", 0)
    if wavefronts:
        share = f"{scaled(conflicts)} are bank conflicts ({percent(conflicts / wavefronts)})"
        found.append(Fact("Shared-memory wavefronts", scaled(wavefronts), share))
    else:
        found.append(Fact("Shared-memory wavefronts", "0", "the kernel does not use shared memory"))
    return found


def _occupancy_note(projection: Projection, limiters: list[str]) -> str:
    occupancy = projection.occupancy
    parts = []
    if "ctas_per_sm" in occupancy:
        parts.append(f"{plural(int(occupancy['ctas_per_sm']), 'CTA')} per SM")
    if "warps_per_sm" in occupancy:
        parts.append(plural(int(occupancy["warps_per_sm"]), "warp"))
    if limiters:
        parts.append("limited by " + " and ".join(limiters))
    return ", ".join(parts)


def stall_bars(projection: Projection) -> list[Bar]:
    """Issue slots by reason, the largest first; small ones as one last bar."""
    ordered = sorted(projection.stalls.items(), key=lambda item: -item[1])
    large = [item for item in ordered if item[1] >= SMALLEST_SHARE]
    bars = [Bar(name, words(name), share, percent(share), STALL_MEANING.get(name, "")) for name, share in large]
    rest = sum(share for _, share in ordered[len(large) :])
    if rest > 0:
        names = ", ".join(words(name) for name, share in ordered[len(large) :] if share > 0)
        bars.append(Bar("rest", "other", rest, percent(rest), names))
    return bars


def stack_bars(projection: Projection) -> list[Bar]:
    """The cycle stack, the largest cause first; small ones as one last bar."""
    ordered = sorted(projection.cycle_stack.items(), key=lambda item: -item[1])
    large = [item for item in ordered if item[1] >= SMALLEST_SHARE]
    bars = [Bar(name, words(name), share, percent(share), MEANING.get(name, "")) for name, share in large]
    rest = sum(share for _, share in ordered[len(large) :])
    if rest >= SMALLEST_SHARE / 10:
        bars.append(Bar("rest", "other", rest, percent(rest), ", ".join(words(name) for name, _ in ordered[len(large) :])))
    return bars


def diagnosis_lines(projection: Projection) -> list[str]:
    """What the diagnosis says beyond the cycle stack, whose bars carry the sentences of their causes."""
    return [
        f"{'Outside the kernel' if place == 'outside' else 'Kernel'}: {sentence}"
        for place, sentences in projection.diagnosis.items()
        for sentence in sentences
        if not sentence.endswith(tuple(MEANING.values()))
    ]


def bound_bars(projection: Projection) -> list[Bar]:
    """Each lower bound as a share of the projected cycles, the tightest first."""
    ordered = sorted(projection.bounds.items(), key=lambda item: -item[1])
    return [
        Bar(name, words(name), cycles / projection.cycles, whole(cycles), percent(cycles / projection.cycles))
        for name, cycles in ordered
        if cycles > 0
    ]


def byte_bars(projection: Projection) -> list[Bar]:
    """Bytes moved at each level, with the rate that they mean."""
    largest = max(projection.bytes.values(), default=0)
    seconds = projection.time_us * 1e-6
    return [
        Bar(name, words(name), n_bytes / largest if largest else 0.0, scaled(n_bytes, "B"), _rate(n_bytes, seconds))
        for name, n_bytes in projection.bytes.items()
    ]


def weak_inputs(projection: Projection) -> list[Fact]:
    """The least certain hardware numbers that this projection rests on."""
    return [
        Fact(str(entry.get("path", "")), str(entry.get("confidence", "")), _remark(entry))
        for entry in projection.weakest_inputs
    ]


def effort(projection: Projection) -> str:
    """How much was simulated, and how long it took."""
    simulated = projection.simulated
    parts = []
    if "fraction" in simulated:
        parts.append(f"{percent(simulated['fraction'])} of the launch simulated")
    if "seconds" in simulated:
        parts.append(f"in {simulated['seconds']:.2f} s")
    return " ".join(parts)


def dominant_stall(projection: Projection) -> str:
    """The reason that holds most issue slots, apart from issuing."""
    waiting = {name: share for name, share in projection.stalls.items() if name != "selected"}
    if not waiting:
        return "-"
    name = max(waiting, key=lambda reason: waiting[reason])
    return f"{words(name)} {100 * waiting[name]:.0f} %"


def _remark(entry: dict) -> str:
    known = ("path", "confidence")
    return ", ".join(f"{words(str(key))} {value}" for key, value in entry.items() if key not in known)


def _rate(n_bytes: float, seconds: float) -> str:
    return f"{scaled(n_bytes / seconds, 'B')}/s" if seconds > 0 else ""
