"""Rows of a database that nobody had to simulate for."""

from __future__ import annotations

from typing import Any

from simulator.hw.loader import load_hw
from simulator.tuning.database import Entry, entry_of
from simulator.tuning.envelope import Envelope, Fallback
from simulator.tuning.families import parse_problem, problem_of, shape_of, tunable
from simulator.tuning.gemm_columns import GemmProblem
from simulator.tuning.search import Tuned
from simulator.tuning.simulate import Simulated
from tests.kernels.designs import design

ALIGNED = {"m": 1, "n": 8, "k": 8}


def gemm(**values: Any) -> Any:
    """A GEMM problem, small unless said otherwise."""
    return parse_problem({"kind": "gemm", "m": 256, "n": 256, "k": 256} | values, "test")


def entry(chip: str = "h200", low: dict[str, int] | None = None, high: dict[str, int] | None = None, **changes: Any) -> Entry:
    """A row with the design that ``changes`` describe (see tests.kernels.designs)."""
    best = design(**changes)
    problem = problem_of(best)
    shape = shape_of(best)
    ranked = Simulated(best, 10.0 + best.stages, 20_000.0, 1800.0, "tensor", 0.5, 0.25, 2, 128, 65536, whole=True)
    tuned = Tuned(problem, chip, load_hw("h200").digest(), (ranked,), (), (), 100, 0.1, 1.0)
    envelope = Envelope(low or shape, high or shape, ALIGNED, 0.1)
    direct = design(**changes, epilogue="direct")
    fallback = Fallback(direct, tunable("gemm").requirements(direct), 0.3)
    return entry_of(tuned, envelope, fallback)


ENTRIES = [
    entry(stages=2, low={"m": 128, "n": 128, "k": 128}, high={"m": 512, "n": 512, "k": 512}),
    entry(m=1024, stages=3, low={"m": 512, "n": 128, "k": 128}, high={"m": 4096, "n": 512, "k": 512}),
    entry(m=16, n=4096, k=4096, stages=4),
    entry(dtype="fp16", stages=5, tile={"m": 64, "n": 64, "k": 64}),
    entry(bias=True, activation="gelu", stages=6, tile={"m": 64, "n": 64, "k": 64}),
]
QUESTIONS = [
    (256, 256, 256, "bf16", "exact", 2),
    (1024, 256, 256, "bf16", "exact", 3),
    (512, 512, 512, "bf16", "envelope", 2),  # in both envelopes, as far from both tuned shapes: the first in order
    (2048, 256, 128, "bf16", "envelope", 3),
    (16, 4096, 2048, "bf16", "fallback", 4),
    (300, 257, 256, "bf16", "fallback", 2),  # inside an envelope, but 257 columns are no whole stores
    (8192, 8192, 8192, "fp16", "fallback", 5),
    (256, 256, 256, "bf16 bias=true activation=gelu", "exact", 6),
]
"""m, n, k, dtype; where the answer comes from, and its stages."""


def problem(**values: Any) -> GemmProblem:
    found = gemm(**values)
    assert isinstance(found, GemmProblem)
    return found
