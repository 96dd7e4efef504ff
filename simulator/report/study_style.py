"""One look for every figure of a study: light, printable, colour-blind safe; the same file for the same figure."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, QUIET, GRID = "#1d2330", "#667085", "#e4e2dc"
DOWN, UP = "#0072b2", "#d55e00"
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
"""Okabe and Ito's colours: distinguishable with every common colour vision."""
OTHER = "#c9c4b8"
MARKERS = "os^Dv<>Pp*hX"
SEQUENTIAL, DIVERGING = "cividis", "RdBu_r"
WIDTH = 9.2
PNG_DPI = 110

RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
    "svg.hashsalt": "kernelcast",
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Drawing:
    """A figure with the ``name`` of its files, a ``caption`` under it, and the ``alt`` text that stands in for it."""

    name: str
    caption: str
    alt: str
    figure: Figure
    _files: dict[str, bytes] = field(default_factory=dict, repr=False)

    def svg(self) -> bytes:
        return self._saved("svg")

    def png(self) -> bytes:
        return self._saved("png")

    def _saved(self, form: str) -> bytes:
        if form in self._files:
            return self._files[form]
        target = io.BytesIO()
        with mpl.rc_context(RC):
            FigureCanvasAgg(self.figure)
            metadata = {"Date": None} if form == "svg" else {"Software": None}
            self.figure.savefig(target, format=form, dpi=PNG_DPI, metadata=metadata)
        self._files[form] = target.getvalue()
        return self._files[form]

    def _repr_png_(self) -> bytes:
        return self.png()


def axes_of(height: float, columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of the report's width with a row (or grid) of axes."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, [ax for line in axes for ax in line]


def short(name: str, length: int = 44) -> str:
    """A long dotted name with its middle left out."""
    return name if len(name) <= length else f"{name[: length // 2 - 1]}…{name[-length // 2 :]}"
