"""Are convolutions and row normalizations tuned as GEMM is: legal rows, a screen that knows what binds, kept and exported?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from simulator.cli.app import run
from simulator.errors import UserError
from simulator.hw.loader import load_hw, with_overrides
from simulator.projection.tile_card import check_design, project_parts, ready_to_build
from simulator.study.suite import problems_of_suite
from simulator.tuning.batch import read_shapes
from simulator.tuning.convolution_space import ConvolutionProblem
from simulator.tuning.envelope import Neighbourhood
from simulator.tuning.families import family_of_problem, parse_problem, problem_of, title
from simulator.tuning.gemm_columns import GemmProblem, smem_bytes
from simulator.tuning.search import Effort, tune
from simulator.tuning.simulate import Job, simulate_design

HW = load_hw("h200")
SUITES = Path(__file__).resolve().parents[2] / "kernel_traces" / "suites"


def asked(kind: str, **values: Any) -> Any:
    return parse_problem({"kind": kind, **values}, "test")


LAYER = asked("convolution", batch=16, image=14, channels=128, filters=128, filter=3, padding=1)
POINTWISE = asked("convolution", batch=16, image=28, channels=64, filters=128, filter=1)
WIDE_STRIDE = asked("convolution", batch=2, image=100, channels=64, filters=64, filter=9, stride=9)
NORM = asked("layer_norm", rows=4096, columns=2048)
ODD = asked("softmax", rows=100, columns=1001, dtype="fp16", result="fp32")
PROBLEMS = [LAYER, POINTWISE, WIDE_STRIDE, NORM, ODD, asked("rms_norm", rows=1, columns=8192)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=title)
def test_is_every_row_a_legal_design(problem: BaseModel) -> None:
    family = family_of_problem(problem)
    designs = family.space(problem, HW)
    assert np.isfinite(family.estimate(problem, designs, HW).time_us).all()
    for row in np.random.default_rng(0).choice(len(designs), 20, replace=False).tolist():
        design = family.design_of(problem, designs.row(row))
        assert check_design(design, HW) == [] and problem_of(design) == problem
        assert family.row_of(design) == designs.row(row)


def test_do_convolutions_differ_from_products_where_they_must() -> None:
    designs = family_of_problem(LAYER).space(LAYER, HW)
    assert set(np.unique(designs["multicast"])) == {0, 2} and designs["stream_k"].max() == 0 and designs["stages"].min() == 2
    assert (smem_bytes(designs, LAYER) <= HW.shared_memory.max_per_cta_bytes).all()
    assert family_of_problem(WIDE_STRIDE).space(WIDE_STRIDE, HW)["loads"].min() == 1  # no im2col box takes such strides


def test_is_a_convolution_of_one_tap_screened_as_its_product() -> None:
    product = GemmProblem(m=16 * 28 * 28, n=128, k=64)
    designs = family_of_problem(POINTWISE).space(POINTWISE, HW)
    times = [family_of_problem(p).estimate(p, designs, HW).time_us for p in (POINTWISE, product)]
    assert (times[0] == times[1]).all()


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("timing.dram.read_bytes_per_second", 1e12, POINTWISE),
        ("timing.tensor_async.columns_per_cycle", 0.25, LAYER),
        ("timing.dram.read_bytes_per_second", 1e12, NORM),
        ("timing.launch.latency_cycles", 9000, ODD),
        ("timing.pipes.transcendental.interval_cycles", 100, asked("softmax", rows=32768, columns=2048)),
    ],
)  # fmt: skip
def test_does_the_screen_feel_what_binds(path: str, value: float, problem: BaseModel) -> None:
    family = family_of_problem(problem)
    designs = family.space(problem, HW)
    changed = with_overrides(HW, (f"{path}={value}",))
    assert family.estimate(problem, designs, changed).time_us.min() > 1.05 * family.estimate(problem, designs, HW).time_us.min()


@pytest.mark.parametrize("problem", [POINTWISE, asked("layer_norm", rows=1024, columns=2048)], ids=title)
def test_does_the_screen_leave_the_good_ones_in(problem: BaseModel) -> None:
    """The best of a search is at most as slow as the best of designs taken at random."""
    family = family_of_problem(problem)
    designs = family.space(problem, HW)
    rows = np.random.default_rng(2).choice(len(designs), 4, replace=False).tolist()
    others = [simulate_design(Job(family.design_of(problem, designs.row(row)), HW, whole=True)).time_us for row in rows]
    assert tune(problem, HW, Effort(5, 1)).best.time_us <= 1.03 * min(others)


def test_is_a_long_persistent_kernel_that_writes_sampled_as_it_is() -> None:
    """Its first rows' results fit the L2, all of them do not."""
    problem = asked("softmax", rows=65536, columns=1024)
    row = {"warps": 4, "rows_per_cta": 4, "passes": 1, "turn_vectors": 0, "vector_bytes": 16, "persistent": 1, "masked": 1}
    design = family_of_problem(problem).design_of(problem, row)
    ready, resident, _ = ready_to_build(design, HW)
    whole = simulate_design(Job(design, HW, whole=True))
    assert project_parts(ready, HW, resident).time_us == pytest.approx(whole.time_us, rel=0.08)


@pytest.mark.parametrize("problem", [LAYER, NORM], ids=title)
def test_is_there_an_envelope_and_a_fallback_by_the_screen(problem: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    family = family_of_problem(problem)
    designs = family.space(problem, HW)
    best = family.design_of(problem, designs.row(int(np.argmin(family.estimate(problem, designs, HW).time_us))))
    around = Neighbourhood(best, problem, HW)
    monkeypatch.setattr(around, "holds_simulated", lambda shapes, loss: [True] * len(shapes))
    found, fallback = around.envelope(), around.fallback()
    assert found.holds(around.shape) and 0 <= fallback.expected_loss < np.inf
    assert check_design(fallback.design, HW) == []


def test_is_a_layer_kept_looked_up_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = ["--db", str(tmp_path / "d.db")]
    norm = ["softmax", "--rows", "256", "--columns", "512"]
    layer = [
        *("convolution", "--batch", "2", "--image", "8", "--channels", "64"),
        *("--filters", "32", "--filter", "3", "--padding", "1"),
    ]
    for line in (norm, layer):
        assert run(["tune", *line, "--hw", "h200", "--simulate", "2", "--top", "1", *db]) == 0
    assert "GB/s" in capsys.readouterr().out
    elsewhere = [*layer[:2], "16", *layer[3:]]
    assert run(["tune", "--query", *elsewhere, *db]) == 0
    assert "convolution 16x64x32 bf16 image=8x8 filter=3x3 padding=1x1 on h200" in capsys.readouterr().out
    for suffix in (".py", ".h", ".csv", ".json"):
        assert run(["tune", "--export", str(tmp_path / f"d{suffix}"), *db]) == 0
    names: dict[str, Any] = {}
    exec((tmp_path / "d.py").read_text(), names)
    where, design = names["convolution"](2, 64, 32, "bf16 image=8x8 filter=3x3 padding=1x1")
    assert where == "exact" and design["tile_m"] > 0


def test_do_the_suites_give_the_problems_to_tune() -> None:
    layers = problems_of_suite(SUITES / "resnet50_convolution.yaml")
    assert all(isinstance(one, ConvolutionProblem) for one in layers)
    assert {one.kind for one in problems_of_suite(SUITES / "norms.yaml")} == {"layer_norm", "rms_norm", "softmax"}  # type: ignore[attr-defined]


def test_is_a_file_of_layers_read(tmp_path: Path) -> None:
    path = tmp_path / "layers.csv"
    path.write_text("batch,image,channels,filters,filter,padding\n4,14x7,64,64,3x1,1\n")
    (found,) = read_shapes(path, "convolution")
    assert title(found) == "convolution 4x64x64 bf16 image=14x7 filter=3x1 padding=1x1"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "convolution", "batch": 1, "image": 2, "channels": 64, "filters": 8, "filter": 5}, "filter spans 5 pixels"),
        ({"kind": "convolution", "batch": 1, "image": 9, "channels": 3, "filters": 8, "filter": 3}, "pad channels to 8"),
        ({"kind": "softmax", "rows": 1, "columns": 8, "dtype": "fp12"}, "dtype is 'fp12'"),
        ({"kind": "softmax", "rows": 1, "columns": 8, "weights": "scale"}, "softmax has no weights"),
    ],
)
def test_is_an_impossible_problem_one_sentence(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        tune(parse_problem(values, "test"), HW)
    assert "\n" not in str(caught.value)
