"""Is every mistake in a study file one sentence that says where it is and what would be valid?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.errors import UserError
from simulator.study.run import Study
from simulator.study.spec import load_spec, parse_spec
from tests.study.closed_form import DRAM, document, save_kernels

BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"kernels": []}, "the suite is empty"),
    ({"kernels": None}, "the suite is empty"),
    ({"kernels": [{"trace": "a.npz", "cubin": "b.cubin"}]}, "exactly one of trace, cubin, tile"),
    ({"kernels": [{"cubin": "b.cubin"}]}, "launch goes with cubin"),
    ({"kernels": [{"trace": "a.npz", "retune": True}]}, "retune goes with a tile design"),
    ({"kernels": [{"trace": "a.npz", "weight": 0}]}, "kernels[0].weight is 0"),
    ({"base": []}, "base"),
    ({"axis": []}, "axis is not a field"),
    ({"axes": [{"path": "sm.count"}]}, "exactly one of values, range, log_range"),
    ({"axes": [{"values": [1]}]}, "exactly one of path, paths, linked"),
    ({"axes": [{"linked": {"sm.count": [1, 2], DRAM: [1]}}]}, "same number of values"),
    ({"axes": [{"path": "sm.count", "range": {"from": 1, "to": 2}}]}, "range without steps"),
    ({"axes": [{"path": "sm.count", "values": [1, 2], "labels": ["one"]}]}, "1 labels for 2 values"),
    ({"axes": [{"path": "sm.count", "values": [1]}, {"path": "sm.count", "values": [2]}]}, "axis 'sm.count' is given twice"),
    ({"scenarios": [{"name": "b", "after": "a", "set": {"sm.count": 1}}]}, "not an earlier scenario"),
    ({"sampling": {"method": "lhs"}}, "method lhs needs points"),
    ({"sampling": {"method": "full", "points": 4}}, "method full takes no points"),
    ({"sampling": {"method": "random"}}, "sampling.method is 'random'"),
    ({"sensitivity": {"delta": 1.5}}, "sensitivity.delta is 1.5"),
    ({"proxies": {"time": "1"}}, "'time' cannot be the name of a proxy"),
    ({"instruction_budget": 5}, "instruction_budget is 5"),
]


@pytest.mark.parametrize(("change", "said"), BAD_FIELDS, ids=[said for _, said in BAD_FIELDS])
def test_is_a_bad_field_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_spec(document(**change), "s.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("s.yaml: ")
    assert "\n" not in str(caught.value)


BAD_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"base": "h2000"}, "did you mean h200"),
    ({"base": "l4"}, "cannot run kernels yet"),
    ({"axes": [{"path": "sm.shared_memory.n_banks", "values": [16, 32]}]}, "did you mean shared_memory.n_banks"),
    ({"axes": [{"path": "shared_memory", "values": [16]}]}, "is a section; choose one of its values"),
    ({"axes": [{"path": "identity.product", "values": ["x2"]}]}, "cannot be multiplied"),
    ({"axes": [{"path": DRAM, "values": ["4 parsec"]}]}, "wrong unit"),
    ({"axes": [{"path": DRAM, "log_range": {"from": 0, "to": 2, "steps": 3}}]}, "ends above 0"),
    ({"scenarios": [{"name": "s", "set": {"sm.cout": 1}}]}, "did you mean sm.count"),
    ({"sensitivity": {"parameters": ["sm.cout"]}}, "did you mean sm.count"),
    ({"proxies": {"cost": "sm.cout * 2"}}, "unknown name sm.cout; did you mean sm.count"),
    ({"proxies": {"cost": "max(1, 2)"}}, "calls a function"),
    ({"proxies": {"cost": "sm.count +"}}, "is not a formula"),
    ({"proxies": {"cost": "sm.count > 2"}}, "is a comparison"),
    ({"constraints": ["sm.count"]}, "compares nothing"),
    ({"objectives": ["tme"]}, "did you mean time"),
    ({"kernels": [{"trace": "nowhere.npz"}]}, "nowhere.npz does not exist"),
    ({"kernels": [{"trace": "copy.npz"}, {"trace": "copy.npz"}]}, "two kernels of the suite are called 'copy'"),
]


@pytest.mark.parametrize(("change", "said"), BAD_VALUES, ids=[said for _, said in BAD_VALUES])
def test_is_a_bad_value_named_before_anything_runs(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    save_kernels(tmp_path)
    with pytest.raises(UserError) as caught:
        Study(parse_spec(document(**change)), tmp_path).points()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_is_the_file_read_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(document()))
    assert load_spec(file) == parse_spec(document())
    file.write_text("- a list")
    with pytest.raises(UserError, match=r"s.yaml must hold a mapping of a study"):
        load_spec(file)


DESIGN = "kind: gemm\nm: 256\nn: 256\nk: 128\ndtype: bf16\ntile: {m: 128, n: 128, k: 64}\nstages: %d\nwarps: 4\n"


def test_does_a_tile_design_become_a_kernel_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "gemm.yaml").write_text(DESIGN % 2)
    study = Study(parse_spec(document(kernels=[{"tile": "gemm.yaml"}])), tmp_path)
    assert study.kernels[0].name == "gemm"
    assert study.kernels[0].trace.warp_instructions > 100


def test_is_a_design_that_cannot_be_built_refused(tmp_path: Path) -> None:
    (tmp_path / "gemm.yaml").write_text(DESIGN % 30)
    with pytest.raises(UserError, match="is not legal on h200"):
        Study(parse_spec(document(kernels=[{"tile": "gemm.yaml"}])), tmp_path)
    with pytest.raises(UserError, match="is not legal on h200"):
        Study(parse_spec(document(kernels=[{"tile": "gemm.yaml", "retune": True}])), tmp_path)
