"""How numbers are written for people: one place, so that text and HTML agree."""

from __future__ import annotations

import math

SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

SPELLING = {
    "l1": "L1",
    "l2": "L2",
    "dram": "DRAM",
    "hbm": "HBM",
    "tma": "TMA",
    "smem": "shared memory",
    "ctas": "CTAs",
    "mma": "MMA",
    "sm": "SM",
    "pct": "%",
    "insts": "instructions",
}


def whole(value: float) -> str:
    """412345.4 -> "412,345"."""
    return f"{value:,.0f}" if math.isfinite(value) else "-"


def scaled(value: float, unit: str = "") -> str:
    """334036992 -> "334 M"; three significant digits and a decimal prefix."""
    if not math.isfinite(value):
        return "-"
    for scale, prefix in SCALES:
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {prefix}{unit}"
    digits = f"{value:.0f}" if value == int(value) else _digits(value)
    return f"{digits} {unit}".rstrip()


def percent(share: float) -> str:
    """0.2134 -> "21.3 %"."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else "-"


def signed_percent(value: float) -> str:
    """-3.71 (already in per cent) -> "-3.7 %"."""
    return f"{value:+.1f} %" if math.isfinite(value) else "-"


def plural(count: int, noun: str) -> str:
    """3, "warp" -> "3 warps"."""
    return f"{count} {noun}{'s' if count != 1 else ''}"


def duration(time_us: float) -> str:
    """2383.8 -> "2.38 ms", 4.7 -> "4.70 us"."""
    if time_us >= 1e6:
        return f"{_digits(time_us / 1e6)} s"
    if time_us >= 1e3:
        return f"{_digits(time_us / 1e3)} ms"
    return f"{_digits(time_us)} us"


def words(name: str) -> str:
    """A field or reason name as words: "long_scoreboard" -> "long scoreboard", "l2" -> "L2"."""
    return " ".join(SPELLING.get(word, word) for word in name.split("_"))


def _digits(value: float) -> str:
    """Three significant digits without an exponent."""
    size = abs(value)
    n_decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{n_decimals}f}"
