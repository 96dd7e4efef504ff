"""Does the report stand alone, and does it say what its tables say?"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from simulator.report.study import StudyReport, answer, report_files
from simulator.study.results import StudyResults

Run = Callable[..., StudyResults]
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?![\w]|\.\d)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """Table cells, image texts and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.addresses: list[str] = []
        self.heads: list[str] = []
        self._in: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))
            self._in.pop()
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        while self._in and self._in.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "td" in self._in or "th" in self._in or "figcaption" in self._in:
            self.cells.append(data)
        if "h2" in self._in:
            self.heads.append(data)


@pytest.fixture
def report(run_study: Run) -> StudyReport:
    return StudyReport(run_study(constraints=["cost <= 8"]), "name: closed form\n", "kernelcast study s.yaml -o out")


def test_are_all_numbers_of_the_answer_in_the_tables(report: StudyReport) -> None:
    cells = " ".join(Page(report.page()[0]).cells)
    in_tables = set(NUMBER.findall(cells))
    sentences = answer(report.results)
    assert len(sentences) == 5
    numbers = [number for sentence in sentences for number in NUMBER.findall(sentence)]
    assert len(numbers) > 12
    fixed = {"2"}  # "within 2 % of the best": the definition of a knee
    assert [number for number in numbers if number not in in_tables | fixed] == []


def test_does_the_page_stand_alone(report: StudyReport) -> None:
    text, drawings = report.page()
    page = Page(text)
    assert len(text) < 10_000_000
    assert all(address.startswith("data:") for address in page.addresses)
    assert "<script" not in text
    assert len(page.images) == len(drawings) >= 6
    assert all(image["alt"] and len(str(image["alt"])) > 30 for image in page.images)


def test_are_the_sections_in_the_order_of_the_questions(report: StudyReport) -> None:
    assert Page(report.page()[0]).heads == [
        "The answer",
        "Designs",
        "Kernels and chips",
        "What each parameter is worth",
        "Time against cost",
        "Two axes at a time",
        "Where the bottleneck moves",
        "Roofs",
        "How much is enough",
        "Occupancy and bank conflicts",
        "Clock and power",
        "What this rests on",
        "Points without a result",
        "Appendix",
    ]


def test_are_rejected_points_and_small_differences_told(report: StudyReport) -> None:
    text = report.page()[0]
    assert "constraint cost &lt;= 8 does not hold" in text
    assert "not distinguishable" in text


def test_is_the_report_the_same_each_time(report: StudyReport) -> None:
    first, again = (dict(report_files(report.results, report.text, report.command)) for _ in range(2))
    assert first == again
    assert {name for name in first if name.endswith(".svg")} == {n.replace(".png", ".svg") for n in first if n.endswith(".png")}


def test_does_a_study_without_axes_or_tornado_have_a_report(run_study: Run) -> None:
    results = run_study(axes=[], sensitivity=None, proxies={}, objectives=["time"])
    text = StudyReport(results).page()[0]
    assert "asks for no tornado" in text
    assert "HBM at 2x" in answer(results)[2]


def test_does_a_study_with_interactions_have_a_report(run_study: Run) -> None:
    results = run_study(
        axes=[], sensitivity={"second_order": {"top": 2, "samples": 2}, "parameters": ["sm.count", "l2.capacity_bytes"]}
    )
    assert "spread of the effect" in StudyReport(results).page()[0]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_does_a_browser_show_and_print_it_without_complaint(report: StudyReport, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(report.page()[0])
    common = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path}/profile",
    ]
    for job, target in (("--screenshot", "page.png"), ("--print-to-pdf", "page.pdf")):
        done = subprocess.run(
            [*common, "--window-size=1280,2000", f"{job}={tmp_path / target}", (tmp_path / "report.html").as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert "CONSOLE" not in done.stderr
        assert (tmp_path / target).stat().st_size > 20_000
