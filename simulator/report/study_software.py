"""Which tile design won on which chip, for the kernels of a study that are tuned again on every chip."""

from __future__ import annotations

import pandas as pd

from simulator.report.study_tables import Table, titled
from simulator.study.points import STEP
from simulator.study.results import StudyResults

N_POINTS_NAMED, N_KERNELS_NAMED = 6, 3
NOTE = (
    "Searched again on every chip; the base's winner is marked. Designs whose times are close change places easily: "
    "a change says which won, not by how much."
)


def software(results: StudyResults) -> Table | None:
    """One row per kernel and design that won somewhere, the base's first; None where nothing is tuned again."""
    frame = _on_designs(results)
    if frame.empty:
        return None
    rows: list[list[str]] = []
    marked: set[int] = set()
    for (kernel, design), group in frame.groupby(["kernel", "design"], sort=False):
        if design == group["base_design"].iloc[0]:
            marked.add(len(rows))
        names = [titled(results, point) for point in group["point"][:N_POINTS_NAMED]]
        more = len(group) - len(names)
        rows.append([str(kernel), str(design), ", ".join(names) + (f" and {more} more" if more else ""), str(len(group))])
    return Table(["kernel", "best design", "on", "chips"], rows, 3, NOTE, frozenset(marked))


def software_sentence(results: StudyResults) -> str:
    """What the best design of the study means for the tiles of its kernels; empty where nothing is tuned again."""
    frame = _on_designs(results)
    if frame.empty:
        return ""
    best = results.best(results.spec.objectives[0])["point"]
    there = frame[frame["point"] == best]
    changed = there[there["design"] != there["base_design"]]
    if not changed.empty:
        return f"The best software changes with the hardware: on {best} {_changes(changed)}."
    elsewhere = frame[frame["design"] != frame["base_design"]]
    if elsewhere.empty:
        return "The best tiles are the same on every chip of this study."
    first = elsewhere.iloc[0]["point"]
    changes = _changes(elsewhere[elsewhere["point"] == first])
    return f"The best software changes with the hardware, though not on the best design: on {first} {changes}."


def _changes(rows: pd.DataFrame) -> str:
    parts = [
        f"{row['kernel']} is fastest as {row['design']} instead of {row['base_design']}"
        for _, row in rows.head(N_KERNELS_NAMED).iterrows()
    ]
    more = len(rows) - len(parts)
    return "; ".join(parts) + (f"; and {more} more kernels change" if more else "")


def _on_designs(results: StudyResults) -> pd.DataFrame:
    """``results.software`` without steps of the tornado, and with each chip once."""
    frame = results.software
    digests = frame["point"].map(lambda name: results.point(name).digest)
    once = ~pd.DataFrame({"kernel": frame["kernel"], "digest": digests}).duplicated()
    return frame[once & (frame["kind"] != STEP)]
