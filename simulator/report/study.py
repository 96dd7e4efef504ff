"""The report of a study: one page that opens from disk, its figures as files, and a summary for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from rich.console import Group, RenderableType
from rich.table import Table as TextTable
from rich.text import Text

from simulator.data_files import data_folder
from simulator.report import study_bottlenecks, study_figures, study_tables
from simulator.report.projection_html import embedded, render_template
from simulator.report.study_answer import answer
from simulator.report.study_software import software
from simulator.report.study_style import Drawing
from simulator.report.study_tables import Table
from simulator.study.results import StudyResults

__all__ = ["StudyReport", "answer", "report_files", "summary_text"]

DEVIATIONS = "validation/DEVIATIONS.md"
N_SHOWN_IN_TERMINAL = 8


@dataclass(frozen=True)
class StudyReport:
    """Results with their figures; shows itself in a notebook. ``text``: the study file; ``command``: what made it."""

    results: StudyResults
    text: str = ""
    command: str = ""

    def tornado(self) -> Drawing | None:
        return study_figures.tornado(self.results)

    def elasticities(self) -> Drawing | None:
        return study_figures.elasticities(self.results)

    def speedups(self) -> Drawing:
        return study_figures.speedups(self.results)

    def pareto(self) -> Drawing | None:
        return study_figures.pareto(self.results)

    def maps(self) -> list[Drawing]:
        return list(study_figures.maps(self.results))

    def stalls(self) -> Drawing:
        return study_bottlenecks.stalls(self.results)

    def roofline(self) -> Drawing | None:
        return study_bottlenecks.roofline(self.results)

    def answer(self) -> list[str]:
        return answer(self.results)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{sentence}</li>" for sentence in self.answer())
        return f"<ol>{items}</ol>{self.results._repr_html_()}"

    def page(self) -> tuple[str, list[Drawing]]:
        """The HTML page and every figure on it."""
        drawings: list[Drawing] = []

        def shown(drawing: Drawing | None) -> dict[str, str] | None:
            if drawing is not None:
                drawings.append(drawing)
            return embedded(drawing)

        results = self.results
        page = render_template(
            "study.html.j2",
            title=results.spec.name,
            question=results.spec.question,
            answer=self.answer(),
            sections=list(_sections(self, shown)),
            values=list(study_tables.changed_values(results)),
            chips=[(name, chip.digest(), _as_yaml(chip.values())) for name, chip in results.chips.items()],
            kernels=[(k.name, k.source, k.digest, k.weight) for k in results.kernels],
            text=self.text,
            command=self.command,
            version=results.version,
        )
        return page, drawings


def _sections(report: StudyReport, shown: Any) -> Iterator[dict[str, Any]]:
    """Title, figures and tables in the order in which a reader asks."""
    results = report.results
    yield _section("Designs", [], [study_tables.designs(results)])
    yield _section("Kernels and chips", [shown(report.speedups())], [study_tables.speedups(results)])
    if (tiles := software(results)) is not None:
        yield _section("The best software on each chip", [], [tiles])
    step = f"{100 * results.spec.sensitivity.delta:.0f} %" if results.spec.sensitivity else ""
    yield _section(
        "What each parameter is worth",
        [shown(report.tornado()), shown(report.elasticities())],
        [study_tables.tornado(results), study_tables.interactions(results)],
        f"A step is {step} of the parameter (whole numbers: at least one). Elasticity: d ln time / d ln parameter."
        if step
        else "The study file asks for no tornado.",
    )
    text = (
        "" if results.rules.cost else "The study file gives no proxy for area, power or cost, so that there is no front to draw."
    )
    yield _section("Time against cost", [shown(report.pareto())], [_formulas(results)], text)
    maps = [shown(drawing) for drawing in report.maps()]
    yield _section("Two axes at a time", maps, [], "" if maps else "The designs form no grid of two axes.")
    yield _section("Where the bottleneck moves", [shown(report.stalls())], [study_tables.bounds(results)])
    yield _section("Roofs", [shown(report.roofline())], [])
    yield _section("How much is enough", [], [study_tables.knees(results)], "" if results.spec.axes else "The study has no axes.")
    yield _section("Occupancy and bank conflicts", [], [study_tables.occupancy(results)])
    yield _section("Clock and power", [], [study_tables.clocks(results), study_tables.power(results)])
    yield _section(
        "What this rests on", [], [study_tables.certainty(results), study_tables.weakest(results), _not_modelled(results)]
    )
    yield _section(
        "Points without a result", [], [study_tables.rejected(results)], "" if study_tables.rejected(results) else "None."
    )


def _section(title: str, figures: list[dict[str, str] | None], tables: list[Table | None], text: str = "") -> dict[str, Any]:
    return {"title": title, "figures": [f for f in figures if f], "tables": [t for t in tables if t and t.rows], "text": text}


def _formulas(results: StudyResults) -> Table:
    rows = [["proxy", f"{name} = {formula.text}"] for name, formula in results.rules.cost.items()]
    rows += [["constraint", formula.text] for formula in results.rules.constraints]
    rows += [["objective", formula.text] for formula in results.rules.objectives]
    return Table(["", "formula"], rows, 2, "Given by the study file; kernelcast knows nothing of area, power or cost.")


def _not_modelled(results: StudyResults) -> Table:
    """Known misses of the model, and what the suite's traces take for granted."""
    rows = [[warning, kernel.name, "assumed"] for kernel in results.kernels for warning in kernel.warnings]
    path = data_folder("projections") / DEVIATIONS
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) >= 5 and cells[0].isdigit():
            rows.append([cells[1], cells[2], cells[-1]])
    return Table(["not modelled, or modelled wrong", "size of the error, or kernel", "status"], rows, 3)


def _as_yaml(values: dict[str, Any]) -> str:
    return yaml.safe_dump(values, sort_keys=False, width=140)


def report_files(results: StudyResults, text: str, command: str) -> Iterator[tuple[str, str | bytes]]:
    """Name in the study's folder and content of every file of the report."""
    page, drawings = StudyReport(results, text, command).page()
    for drawing in drawings:
        yield f"figures/{drawing.name}.svg", drawing.svg()
        yield f"figures/{drawing.name}.png", drawing.png()
    yield "study.yaml", text
    yield "report.html", page


def summary_text(results: StudyResults) -> RenderableType:
    """The answer and the best designs for a terminal."""
    table = study_tables.designs(results)
    shown = TextTable(show_edge=False, pad_edge=False)
    for number, name in enumerate(table.head[:5]):
        shown.add_column(name, justify="left" if number in (0, 4) else "right", overflow="fold")
    for row in table.rows[:N_SHOWN_IN_TERMINAL]:
        shown.add_row(*row[:5])
    parts: list[RenderableType] = [Text(results.spec.name, style="bold"), Text("")]
    parts += [Text(f"{number}. {sentence}") for number, sentence in enumerate(answer(results), 1)]
    lost = len(results.rejected), len(results.failed)
    if any(lost):
        parts.append(Text(f"\n{lost[0]} points rejected, {lost[1]} projections failed: see the report", style="yellow"))
    if results.n_corrupt:
        parts.append(Text(f"{results.n_corrupt} damaged results were found and computed again", style="yellow"))
    return Group(*parts, Text(""), shown, Text(""))
