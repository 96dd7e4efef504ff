"""Small validation runs whose errors are known beforehand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def four_cases() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A measured file of four cases and its predictions, 10 % and 30 % off in the reported split."""
    cases = pd.DataFrame(
        {
            "id": ["1", "2", "3", "4"],
            "kernel": ["gemm", "gemm", "gemm", "lib"],
            "cubin": ["a", "a", "a", ""],
            "launch": ["{}", "{}", "{}", ""],
            "cycles": [1000, 1000, 1000, 1000],
            "ncu_time_ns": [1000, 90000, 1000, 1000],
            "split": ["check", "check", "fit", "check"],
        }
    )
    predictions = pd.DataFrame(
        {
            "id": ["1", "2", "3", "4"],
            "predicted_cycles": [1100, 700, 1000, None],
            "status": ["ok", "ok", "ok", "unsupported"],
            "reason": ["", "", "", "library kernel"],
        }
    )
    return cases, predictions


def many_cases(n: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``n`` cases of two classes and two durations, half of them in each split; measured over projected cycles are log-normal,
    widest for memory kernels. Problems have about 16 configurations in each split."""
    generator = np.random.default_rng(3)
    is_memory = generator.random(n) < 0.5
    predicted = generator.choice([2e4, 2e5], n)
    ratio = np.exp(generator.normal(0.0, np.where(is_memory, 0.2, 0.05)))
    measured = pd.DataFrame(
        {
            "id": [str(i) for i in range(n)],
            "kernel": np.where(is_memory, "copy", "gemm"),
            "dtype": "bf16",
            "shape": [f'{{"M": {i // 64}}}' for i in range(n)],
            "config": [f'{{"BM": {i % 64}}}' for i in range(n)],
            "cubin": "a",
            "launch": "{}",
            "cycles": predicted * ratio,
            "ncu_time_ns": predicted * ratio,
            "split": np.where(np.arange(n) % 2, "check", "fit"),
            "stall_wait": 0.5,
            "stall_selected": 1.0,
            "stall_gmma": 0.5,
            "l2_hit_sectors": 80,
            "l2_miss_sectors": 20,
        }
    )
    predictions = pd.DataFrame(
        {
            "id": measured["id"],
            "predicted_cycles": predicted,
            "predicted_ncu_time_ns": predicted,
            "predicted_stall_wait": 1.0,
            "predicted_stall_selected": 1.0,
            "predicted_l2_read_sectors": 60,
            "predicted_l2_write_sectors": 40,
            "predicted_l2_miss_sectors": 25,
            "kernel_class": np.where(is_memory, "memory", "tensor"),
            "hw_digest": "d",
            "simulator": "1+abc",
            "status": "ok",
            "reason": "",
        }
    )
    return measured, predictions


def written(folder: Path, measured: pd.DataFrame, predictions: pd.DataFrame) -> tuple[Path, Path]:
    """Both as CSV files in ``folder``."""
    measured.to_csv(folder / "m.csv", index=False)
    predictions.to_csv(folder / "p.csv", index=False)
    return folder / "m.csv", folder / "p.csv"
