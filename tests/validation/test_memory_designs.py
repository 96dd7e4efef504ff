"""Are designs of measured memory-bound kernels like what their compilers made of the same parameters?"""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from simulator.data_files import data_folder
from simulator.errors import Unsupported
from simulator.hw.loader import load_hw
from simulator.kernels.families import family_of, load_design
from simulator.projection.tile_card import check_design
from simulator.validation.memory_designs import DESIGNS, errors, memory_design

HELD_ROWS = ("softmax_row", "layernorm_row")
TRITON = [name for name in DESIGNS if not name.startswith("cuda")]


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    table = pd.read_csv(data_folder("projections") / "validation" / "kernels.csv.gz")
    rows = table[table.kernel.isin(TRITON) & (table.split == "fit")].drop_duplicates("cubin")
    designs = [memory_design(r.kernel, r.dtype, r.shape, r.config, r.launch) for r in rows.itertuples()]
    return rows.assign(design=designs)


def test_instructions_are_as_many_as_the_compilers(measured: pd.DataFrame) -> None:
    few = measured[measured.warp_insts < 2e7]
    built = [family_of(d).build(d, "sm_90a").warp_instructions for d in few.design]
    error = (pd.Series(built, few.index) / few.warp_insts - 1).abs()
    assert error.median() < 0.06
    assert error[few.kernel.isin(HELD_ROWS)].max() < 0.15


def test_registers_of_held_rows_are_near_the_compilers(measured: pd.DataFrame) -> None:
    rows = measured[measured.kernel.isin(HELD_ROWS)]
    registers = [family_of(d).resources(d)[0] for d in rows.design]
    error = (pd.Series(registers, rows.index) / rows.regs_per_thread - 1).abs()
    assert error.median() < 0.12 and error.max() < 0.3


def test_launches_are_those_of_the_measured_kernels(measured: pd.DataFrame) -> None:
    for row in measured.itertuples():
        design = row.design
        assert design.n_ctas == math.prod(json.loads(row.launch)["grid"])
        assert check_design(design, load_hw("h200")) == []


def test_kernels_without_options_are_refused() -> None:
    with pytest.raises(Unsupported):
        memory_design("conv2d", "bf16", "{}", "{}", "{}")
    with pytest.raises(Unsupported):
        memory_design("cuda_reduce", "fp32", '{"n": 64}', '{"variant": "sequential"}', '{"grid": [1, 1, 1]}')


def test_errors_of_a_kernel_are_signed_and_absolute() -> None:
    table = pd.DataFrame({"kernel": "k", "cycles": [100, 100], "design_cycles": [110, 80]})
    (row,) = errors(table).to_dict("records")
    assert (row["n"], row["mean_error"], row["median_error"], row["bias"]) == (2, *(pytest.approx(x) for x in (15, 15, -5)))


def test_the_examples_are_legal_designs() -> None:
    for path in sorted((data_folder("kernel_traces") / "designs").glob("*.yaml")):
        assert check_design(load_design(path), load_hw("h200")) == [], path.name
