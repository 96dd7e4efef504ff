"""The cycle stack in words: what bounds the kernel, and what outside of the kernel costs it time."""

from __future__ import annotations

from collections.abc import Mapping

WORTH_SAYING = 0.05
"""Shares of the time below 5 % are not mentioned."""
N_NAMED = 3
ACRONYMS = ("hbm", "l2", "tma")
OUTSIDE = ("launch",)
MEANING = {
    "tensor": "the tensor cores compute",
    "other_issue": "instructions issue, or arithmetic pipes are busy; waits beside that are hidden",
    "shared_memory": "shared-memory bandwidth is the limit",
    "bank_conflicts": "shared-memory bank conflicts take the port",
    "tma_latency": "bulk copies are waited for: their latency is exposed",
    "l2": "reads wait for the L2 (latency, or the way to it)",
    "hbm_bandwidth": "reads queue for memory bandwidth",
    "hbm_latency": "memory latency is exposed: too little is in flight",
    "barrier": "warps wait for each other at barriers",
    "dependency": "instructions wait for the fixed latency of earlier ones, or for shared memory's",
    "instruction_fetch": "branches and instruction fetch",
    "prologue": "before the main loop: the pipeline fills",
    "epilogue": "after the main loop: results are converted and written",
    "tail": "SMs idle at the end: the last wave is not full, or its CTAs end at different times",
    "launch": "launching the grid and its CTAs",
}


def diagnose(
    shares: Mapping[str, float], n_ctas: int, n_sms: int, clock_hz: float, boost_hz: float
) -> dict[str, list[str]]:
    """Sentences about the ``kernel`` and about what lies ``outside`` of it; ``shares``: the cycle stack."""
    ordered = sorted(((share, cause) for cause, share in shares.items() if cause not in OUTSIDE), reverse=True)
    kernel = [_sentence(cause, share) for share, cause in ordered[:N_NAMED] if share >= WORTH_SAYING]
    if n_ctas < n_sms:
        kernel.append(f"only {n_ctas} of {n_sms} SMs have a CTA: a finer split would use the rest of the chip")
    outside = [_sentence(cause, shares[cause]) for cause in OUTSIDE if shares.get(cause, 0.0) >= WORTH_SAYING]
    lost = 1 - clock_hz / boost_hz
    if lost >= WORTH_SAYING:
        outside.append(
            f"the clock is {clock_hz / 1e6:.0f} MHz of {boost_hz / 1e6:.0f} under the power limit: at full clock the same cycles "
            f"would take {100 * lost:.0f} % less time"
        )
    if not outside:
        outside.append("nothing: launch and clock cost less than 5 %; gaps between kernels on the host are not part of this")
    return {"kernel": kernel or ["no cause takes 5 % of the time"], "outside": outside}


def _sentence(cause: str, share: float) -> str:
    name = " ".join(part.upper() if part in ACRONYMS else part for part in cause.split("_"))
    return f"{100 * share:.0f} % {name}: {MEANING[cause]}"
