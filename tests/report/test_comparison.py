"""Does a comparison show every kernel, the missed ones as well?"""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from simulator.projection.projection import Projection
from simulator.report.comparison import Compared, average, page, table


@pytest.fixture
def rows(projection: Projection) -> list[Compared]:
    return [
        Compared("GEMM", "4096x4096x4096", 400_000.0, 230.0, projection),
        Compared("Softmax", "8192x1024", 300_000.0, 170.0, projection),
        Compared("Odd <one>", "1x1", 1000.0, 1.0, None, "opcode FOO at 0x40 is unknown"),
    ]


def test_is_the_error_that_of_the_cycles(rows: list[Compared]) -> None:
    assert [row.error for row in rows[:2]] == pytest.approx([3.086, 37.448], abs=1e-3)
    assert average(rows) == "2 kernels: mean error 20.3 %, median 20.3 %, bias +20.3 %"
    assert average(rows[2:]) == "nothing was projected"


def test_does_the_table_hold_every_kernel(rows: list[Compared]) -> None:
    console = Console(width=150, color_system=None)
    with console.capture() as capture:
        console.print(table(rows))
    text = capture.get()
    for part in ("GEMM", "412,345", "400,000", "+3.1 %", "12.5 %", "long scoreboard 60 %", "opcode FOO at 0x40"):
        assert part in text


def test_does_the_page_hold_every_kernel_and_stand_alone(rows: list[Compared]) -> None:
    html = page("Demo", "on a chip", rows, "the end")
    for part in ("GEMM", "Odd &lt;one&gt;", "+37.4 %", "opcode FOO at 0x40 is unknown", "1 not projected", "the end"):
        assert part in html
    assert not re.search(r"(?:src|href)=|<script|@import|url\(", html)
