"""A design in words."""

from __future__ import annotations

from typing import Any


def describe(design: dict[str, Any]) -> str:
    """Tile, stages, warps, and what is not usual, of plain values: ``128x256x64 4 stages 8+4 warps persistent group 8``."""
    producers = design.get("producer_warps", 0)
    tile = design.get("tile", {})
    parts = ["x".join(str(tile[name]) for name in ("m", "n", "k") if name in tile)]
    parts += [f"{design['block_m']}x{design['block_n']}"] if "block_m" in design else []
    parts += [f"{design['stages']} stages"] if "stages" in design else []
    parts += [f"{design['warps']}{f'+{producers}' if producers else ''} warps"] if "warps" in design else []
    parts += [f"{design['rows_per_cta']} rows"] if design.get("rows_per_cta", 1) > 1 else []
    if "passes" in design:
        block = f" of {design['block']}-column blocks" if design.get("block") else ""
        parts.append("row in registers" if design["passes"] == 1 else f"{design['passes']} passes{block}")
    parts += [f"{design['vector_bytes']}-byte vectors"] if design.get("vector_bytes") else []
    parts += ["no bounds checks"] if not design.get("masked", True) else []
    parts += [str(design[name]) for name, usual in (("multiply", "wgmma"), ("loads", "tma")) if design.get(name, usual) != usual]
    if design.get("schedule", "cooperative") != "cooperative" or design.get("ping_pong"):
        parts.append("ping-pong")
    parts += [name.replace("_", "-") for name in ("persistent", "stream_k") if design.get(name)]
    if design.get("split_k", 1) > 1:
        parts.append(f"split-k {design['split_k']}")
    parts += ["packed heads"] if design.get("pack_gqa") else []
    if design.get("split_kv", 1) > 1:
        parts.append(f"split keys {design['split_kv']}")
    if design.get("cluster", 1) > 1:
        parts.append(f"cluster {design['cluster']} ({design['multicast']} shared)")
    parts += [f"group {design['group_m']}"] if "group_m" in design else []
    if design.get("epilogue", "tma") != "tma":
        parts.append(f"{design['epilogue']} stores")
    return " ".join(part for part in parts if part)
