"""Do shortcuts of the interpreter leave the trace as it is?"""

from __future__ import annotations

import numpy as np
import pytest

from simulator.data_files import data_folder
from simulator.frontends.sass import group_execution, slicing
from simulator.frontends.sass.build import build_trace
from simulator.frontends.sass.contents import parse_contents
from simulator.frontends.sass.one_by_one import is_cheaper
from simulator.trace.io import trace_digest
from simulator.trace.kernel_trace import KernelTrace
from simulator.validation.cubins import locate_cubins
from simulator.validation.measured import read_measured, select
from simulator.validation.traces import launch_from_json

CHASE = (
    "uint32 pointer chase over 512 lines of 128 bytes: all 32 words of line l hold the number of the next line, "
    "(l*5+7) mod 2^32 & 511"
)


def shortened(name: str, n_ctas: int, steps: tuple[int, int]) -> KernelTrace:
    """A hand-written kernel with a smaller grid and fewer iterations: (as measured, here)."""
    folder = data_folder("projections") / "validation"
    row = select(read_measured(folder / "ladder.csv.gz"), ids=[name])
    launch = row["launch"][0].replace(f'"i32": {steps[0]}', f'"i32": {steps[1]}')
    spec = launch_from_json(launch)
    spec = spec.model_copy(update={"grid": (n_ctas, 1, 1)})
    return build_trace(locate_cubins(folder / "ladder_cubins.tar.xz")[row["cubin"][0]], spec)


@pytest.mark.parametrize("name", ["G.ldg_chain.l1.w1", "G.ldg_chain.l2.w4"])
def test_ctas_executed_one_by_one_make_the_trace_that_differences_make(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (2048 if ".l1." in name else 1024, 12)
    followed = shortened(name, 20, steps)
    monkeypatch.setattr(group_execution, "is_cheaper", lambda n_settled, n_ctas, n_logged: n_ctas > 1)
    alone = shortened(name, 20, steps)
    assert followed.cta_base.any() and trace_digest(alone) == trace_digest(followed)


def test_long_chains_over_few_ctas_are_executed_one_by_one_but_tile_loops_are_not() -> None:
    assert is_cheaper(n_settled=4_000, n_ctas=132, n_logged=6_000)
    assert not is_cheaper(n_settled=4_000, n_ctas=132, n_logged=2_000_000)
    assert not is_cheaper(n_settled=10, n_ctas=1, n_logged=100)


@pytest.mark.parametrize("name", ["G.live96_spill40", "G.live32_local"])
def test_spilled_data_is_not_followed_and_no_address_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sliced = shortened(name, 1, (64, 1))
    monkeypatch.setattr(slicing, "frame_words", lambda fields, zero: [range(0)] * len(fields))
    assert trace_digest(shortened(name, 1, (64, 1))) == trace_digest(sliced)


def test_repeated_contents_are_kept_once() -> None:
    contents = parse_contents(CHASE)
    assert contents is not None and contents.repeat == 32
    assert np.array_equal(np.repeat(contents.distinct(512 * 128), 32), contents.elements(512 * 128))
