"""The cases of the demo: rows of a measured file that travels with the product, with the names that readers see."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.data_files import data_folder
from simulator.errors import UserError
from simulator.validation.cubins import locate_cubins
from simulator.validation.measured import Case, cases_of, numbers, read_measured, select

SETTINGS = ("warps", "stages")
TILE_KEYS = ("B", "BM", "BN", "BK")
CASE_LIST = "demo.yaml"


@dataclass(frozen=True)
class DemoCase:
    """One case. ``name`` with the problem's size, ``tile`` and settings as text; ``cycles``, ``time_us``: measured;
    ``split``: fit or check."""

    case: Case
    name: str
    tile: str
    split: str
    cycles: float
    time_us: float


@dataclass(frozen=True)
class Demo:
    """What the demo projects, and on which chip. ``cubins``: file stem -> path."""

    hw: str
    cases: list[DemoCase]
    cubins: dict[str, Path]


def load_demo() -> Demo:
    """The demo of this installation; UserError when its files are damaged or disagree."""
    path = data_folder("kernel_traces") / CASE_LIST
    try:
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
        names = {str(entry["id"]): str(entry["name"]) for entry in listed["cases"]}
        hw, measured, cubins = (str(listed[key]) for key in ("hw", "measured", "cubins"))
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UserError(f"the demo's case list {path} is damaged ({error}); install the package again") from error
    frame = select(read_measured(data_folder("projections") / measured), ids=list(names))
    cycles, times = numbers(frame, "cycles"), numbers(frame, "ncu_time_ns")
    described = {}
    for case in cases_of(frame):
        problem, tile = describe(frame["shape"][case.index], frame["config"][case.index])
        described[case.id] = DemoCase(
            case=case,
            name=f"{names[case.id]} {problem}",
            tile=tile,
            split=str(frame["split"][case.index]),
            cycles=float(cycles[case.index]),
            time_us=float(times[case.index]) * 1e-3,
        )
    return Demo(hw, [described[name] for name in names], locate_cubins(data_folder("projections") / cubins))


def describe(shape: str, config: str) -> tuple[str, str]:
    """Problem and tile in a few words, from their JSON texts: ("64x4096", "tile 128x128x64, 4 warps, 3 stages")."""
    problem, tile = json.loads(shape), json.loads(config)
    sizes = _product({key: size for key, size in tile.items() if key in TILE_KEYS})
    settings = [f"{tile[key]} {key if tile[key] != 1 else key[:-1]}" for key in SETTINGS if key in tile]
    return _product(problem), ", ".join([f"tile {sizes}", *settings])


def _product(sizes: dict[str, Any]) -> str:
    return "x".join(str(size) for size in sizes.values() if not isinstance(size, bool))
