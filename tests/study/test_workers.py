"""Is a study the same whoever computes it?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulator.hw.loader import load_hw
from simulator.projection.run import project_trace
from simulator.study.execute import Backend, Dask, Processes, Serial
from simulator.study.results import StudyResults
from simulator.study.run import Study
from simulator.study.spec import parse_spec
from simulator.study.store import ResultStore
from simulator.trace.io import save_trace
from simulator.validation.warm_up import empty_kernel

LAUNCH = "timing.launch.latency_cycles"


def small_study(folder: Path) -> Study:
    """Two kernels of one instruction, replayed by the engine itself."""
    trace = empty_kernel("sm_90a")
    save_trace(trace, folder / "one.npz")
    save_trace(replace(trace, registers_per_thread=32), folder / "two.npz")
    document = {
        "name": "small",
        "base": "h200",
        "kernels": [{"trace": "one.npz"}, {"trace": "two.npz"}],
        "axes": [{"path": LAUNCH, "values": ["x1", "x2"]}],
        "sensitivity": {"parameters": [LAUNCH, "timing.l2.far_extra_cycles"]},
    }
    return Study(parse_spec(document), folder)


def results_of(backend: Backend, folder: Path, store: str) -> StudyResults:
    return small_study(folder).run(backend, ResultStore(folder / store))


def test_are_the_tables_byte_identical_on_every_backend(tmp_path: Path) -> None:
    found = {}
    for name, backend in (("serial", Serial()), ("processes", Processes(2)), ("dask", Dask("local:2"))):
        file = tmp_path / f"{name}.parquet"
        results_of(backend, tmp_path, name).frame.to_parquet(file, index=False)
        found[name] = file.read_bytes()
    assert found["serial"] == found["processes"] == found["dask"]


def test_does_the_tornado_agree_with_the_engine(tmp_path: Path) -> None:
    results = results_of(Serial(), tmp_path, "store")
    table = results.tornado.pivot(index="parameter", columns="kernel", values="elasticity")
    assert (table.loc["timing.l2.far_extra_cycles"].abs() < 0.001).all()
    times = []
    for factor in (0.75, 1.25):
        chip = load_hw("h200", [f"{LAUNCH}={3100 * factor}"])
        times.append(project_trace(empty_kernel("sm_90a"), chip).time_us)
    row = results.tornado.query(f"parameter == '{LAUNCH}' and kernel == 'one'").iloc[0]
    base = results.outcomes[results.base.id, "one"]["time_us"]
    assert [row["time_down"] * base, row["time_up"] * base] == pytest.approx(times, rel=1e-12)
