"""Does the engine issue every instruction at the time that the naive SM does?"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.machine import Machine, run
from tests.engine.programs import Op, assemble
from tests.reference.naive_sm import NaiveSm
from tests.reference.random_programs import kernels, machines


@given(kernel=kernels(), machine=machines(), n_ctas=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_do_engine_and_naive_sm_agree_on_the_whole_issue_log(
    kernel: list[list[Op]], machine: Machine, n_ctas: int
) -> None:
    engine = run(assemble(kernel, n_ctas=n_ctas), machine)
    naive = NaiveSm(kernel, machine, n_ctas)
    assert engine.log == naive.run()
