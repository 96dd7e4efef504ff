"""Does a report say what the projection says, in text and in HTML?"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.console import Console

from simulator.projection.projection import Projection
from simulator.report import format, summary
from simulator.report.projection_html import render_page
from simulator.report.projection_text import blocks, render


def text_of(projection: Projection) -> str:
    console = Console(width=120, record=True, file=None, quiet=False, color_system=None)
    with console.capture() as capture:
        console.print(render(projection))
    return capture.get()


def test_does_the_text_hold_the_answer(projection: Projection) -> None:
    text = text_of(projection)
    for part in (
        "matmul<bf16> on chip",
        "412,345 cycles, 233 us at 1769 MHz, bound by shared memory",
        "12.5 %",
        "2 CTAs per SM, 8 warps, limited by registers and shared memory",
        "mbarrier",
        "L2 read",
        "14.6 GB",
        "Warning: an instruction is approximated",
        "25.0 % of the launch simulated in 1.50 s",
    ):
        assert part in text


def test_does_the_page_stand_alone_and_escape_names(projection: Projection) -> None:
    page = render_page(projection)
    assert "matmul&lt;bf16&gt;" in page and "matmul<bf16>" not in page
    assert not re.search(r"(?:src|href)=|<script|@import|url\(", page)
    assert "412,345" in page and "an instruction is approximated" in page


def test_do_the_bars_of_the_mix_fill_the_whole_width(projection: Projection) -> None:
    bars = summary.stall_bars(projection)
    assert sum(bar.share for bar in bars) == pytest.approx(1.0)
    assert [bar.name for bar in bars] == ["long_scoreboard", "selected", "mbarrier", "rest"]
    assert bars[-1].note == "wait, membar"


def test_is_a_bound_shown_as_its_share_of_the_cycles(projection: Projection) -> None:
    bars = summary.bound_bars(projection)
    assert [bar.name for bar in bars] == ["shared_memory", "issue"]
    assert bars[0].share == pytest.approx(371 / 412.345)


def test_does_a_kernel_without_shared_memory_say_so(projection: Projection) -> None:
    plain = replace(projection, smem={"wavefronts": 0, "bank_conflicts": 0}, stalls={}, bounds={}, bytes={})
    assert "does not use shared memory" in text_of(plain)
    assert "does not use shared memory" in render_page(plain)


@pytest.mark.parametrize(
    ("share", "bar"), [(0.0, "    "), (0.5, "██  "), (1.0, "████"), (7.0, "████"), (0.28125, "█▏  ")]
)
def test_is_a_bar_as_long_as_its_share(share: float, bar: str) -> None:
    assert blocks(share, 4) == bar


@pytest.mark.parametrize(
    ("value", "text"),
    [(334_036_992, "334 M"), (999, "999"), (1_000, "1.00 k"), (0, "0"), (2.5, "2.50"), (float("nan"), "-")],
)
def test_are_numbers_short_and_honest(value: float, text: str) -> None:
    assert format.scaled(value) == text


@pytest.mark.parametrize(("time_us", "text"), [(4.7, "4.70 us"), (2383.8, "2.38 ms"), (2.5e6, "2.50 s")])
def test_has_a_duration_its_natural_unit(time_us: float, text: str) -> None:
    assert format.duration(time_us) == text


def test_does_a_notebook_show_the_answer_and_escape_names(projection: Projection) -> None:
    html = projection._repr_html_()
    assert "matmul&lt;bf16&gt; on chip" in html and "412,345 cycles" in html and "bound by shared memory" in html
    assert html.count("<tr>") == html.count("</tr>") > 4


def test_is_a_row_plain_and_flat(projection: Projection) -> None:
    row = projection.to_row()
    assert row["stalls_mbarrier"] == 0.186 and row["bounds_issue"] == 101_000 and row["ctas_per_sm"] == 2
    assert all(isinstance(value, (str, int, float)) for value in row.values())
