"""A timeline for a terminal: one row per track, one letter per cause."""

from __future__ import annotations

from simulator.projection.timeline import Timeline, Track

LETTERS = {
    "issue": "#", "tensor": "T", "bulk_copy": "C", "global_memory": "G", "shared_memory": "S", "cta": "=", "summarised": "~",
    "mbarrier": "m", "barrier": "b", "gmma": "g", "long_scoreboard": "l", "short_scoreboard": "s", "wait": "w",
    "mio_throttle": "o", "lg_throttle": "q", "math_pipe_throttle": "p", "dispatch_stall": "d", "not_selected": "n",
    "membar": "f", "branch_resolving": "r",
}  # fmt: skip
MEANING = {"issue": "issues", "cta": "CTA resident", "summarised": "not shown"}
LABEL = 26
MOST_ROWS = 40


def ascii_timeline(timeline: Timeline, width: int = 100) -> str:
    """Rows of at most ``width`` characters; each period gets columns in proportion to nothing but its turn."""
    columns = max(10, (width - LABEL - len(timeline.periods)) // len(timeline.periods))
    titles = [f"{name} {first:,.0f}-{last:,.0f}"[:columns].ljust(columns) for name, first, last in timeline.periods]
    head = " " * LABEL + " ".join(titles)
    rows = [head.rstrip()]
    used: set[str] = set()
    for track in timeline.tracks[:MOST_ROWS]:
        parts = [_row(track, first, last, columns, used) for _, first, last in timeline.periods]
        rows.append((track.name[: LABEL - 1].ljust(LABEL) + "|".join(parts)).rstrip())
    if len(timeline.tracks) > MOST_ROWS:
        rows.append(f"and {len(timeline.tracks) - MOST_ROWS} more tracks")
    legend = [f"{LETTERS[kind]} {MEANING.get(kind, kind.replace('_', ' '))}" for kind in LETTERS if kind in used]
    return "\n".join(rows + _wrapped(legend, width))


def _row(track: Track, first: float, last: float, columns: int, used: set[str]) -> str:
    """The kind that takes most of each column's time, a dot where nothing happens."""
    step = (last - first) / columns
    best: list[tuple[float, str]] = [(step / 8, "")] * columns
    taken: list[dict[str, float]] = [{} for _ in range(columns)]
    for piece in track.slices:
        begin, end = max(piece.start, first), min(piece.end, last)
        if end <= begin:
            continue
        for column in range(int((begin - first) / step), min(columns, int((end - first) / step) + 1)):
            left = first + column * step
            share = min(end, left + step) - max(begin, left)
            taken[column][piece.kind] = taken[column].get(piece.kind, 0.0) + max(0.0, share)
    for column, kinds in enumerate(taken):
        best[column] = max([best[column], *((share, kind) for kind, share in kinds.items())])
    used.update(kind for _, kind in best if kind)
    return "".join(LETTERS.get(kind, "?") if kind else "." for _, kind in best)


def _wrapped(words: list[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 2 + len(word) > width:
            lines.append("")
        lines[-1] += ("  " if lines[-1] else "") + word
    return lines
