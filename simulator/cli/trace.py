"""``kernelcast trace``: build a trace from a compiled kernel, look into one, import another tool's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simulator.cli.output import emit_json, stderr, stdout
from simulator.errors import UserError

if TYPE_CHECKING:
    from simulator.frontends.sass.launch import LaunchSpec
    from simulator.trace.kernel_trace import KernelTrace

MOST_OPCODES = 12
IMPORTERS: dict[str, str] = {}
"""Trace formats of other tools that can be imported: name -> module with ``import_trace(path) -> KernelTrace``."""


def register(app: typer.Typer) -> None:
    """Add ``trace build``, ``trace info`` and ``trace import`` to the command line."""
    group = typer.Typer(help="Traces: build one from a compiled kernel, look into one, import one.")
    group.command("build")(build)
    group.command("info")(info)
    group.command("import")(import_)
    app.add_typer(group, name="trace")


def build(
    cubin: Annotated[Path, typer.Argument(metavar="FILE.cubin", help="Compiled kernel.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="T.npz", help="Trace to write.")],
    launch: Annotated[Path | None, typer.Option(help="Launch: a JSON or YAML file.")] = None,
    kernel: Annotated[str | None, typer.Option(help="Kernel, when the cubin has several.")] = None,
    grid: Annotated[str | None, typer.Option(metavar="X,Y,Z", help="CTAs.")] = None,
    block: Annotated[str | None, typer.Option(metavar="X[,Y,Z]", help="Threads.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="X,Y,Z", help="CTAs of a cluster.")] = None,
    smem: Annotated[int, typer.Option(metavar="BYTES", help="Dynamic shared memory.")] = 0,
    arg: Annotated[
        list[str] | None, typer.Option(metavar="TYPE:VALUE", help="Argument, in order: i32:8192, buffer:a:67108864, ...")
    ] = None,
    allow_unknown: Annotated[bool, typer.Option(help="Go on past unknown opcodes, and list them.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Execute a compiled kernel functionally, without a GPU, and write its trace."""
    from simulator.frontends.sass.build import build_trace
    from simulator.trace.io import save_trace

    spec = _launch(launch, kernel, grid, block, cluster, smem, arg or [])
    trace = build_trace(cubin, spec, kernel, allow_unknown)
    save_trace(trace, output)
    stderr.print(f"Wrote {output}")
    _show(trace, output, json)


def info(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Trace.")],
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """What is in a trace: kernel, launch, classes, instructions, events."""
    from simulator.trace.io import load_trace

    _show(load_trace(path), path, json)


def import_(
    fmt: Annotated[str, typer.Argument(metavar="FMT", help="Format.")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Trace of another tool.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="T.npz", help="Trace to write.")],
) -> None:
    """Import a trace of another tool."""
    import importlib

    from simulator.trace.io import save_trace

    if fmt not in IMPORTERS:
        known = ", ".join(sorted(IMPORTERS)) or "none yet"
        raise UserError(f"trace format '{fmt}' cannot be imported; formats: {known}")
    save_trace(importlib.import_module(IMPORTERS[fmt]).import_trace(path), output)


def _launch(
    launch: Path | None,
    kernel: str | None,
    grid: str | None,
    block: str | None,
    cluster: str | None,
    smem: int,
    arguments: list[str],
) -> LaunchSpec:
    from simulator.frontends.sass.launch import launch_from_flags, load_launch

    flags = grid or block or cluster or smem or arguments
    if launch is not None:
        if flags:
            raise UserError(f"--launch {launch} describes the launch; leave out --grid, --block, --cluster, --smem and --arg")
        return load_launch(launch)
    if not grid or not block:
        raise UserError("give the launch: --launch FILE.json or FILE.yaml, or --grid X,Y,Z --block X and each --arg in order")
    return launch_from_flags(grid, block, arguments, kernel=kernel, cluster=cluster or "1,1,1", smem=smem)


def _show(trace: KernelTrace, path: Path, json: bool) -> None:
    found = _summary(trace, path)
    if json:
        emit_json(found)
        return
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in found.items():
        if name == "opcodes":
            value = ", ".join(f"{opcode} {share:.1%}" for opcode, share in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value)) or "none"
        elif isinstance(value, int):
            value = f"{value:,}"
        table.add_row(name.replace("_", " "), str(value))
    stdout().print(table)


def _summary(trace: KernelTrace, path: Path) -> dict[str, Any]:
    executed: Counter[str] = Counter()
    for warps in trace.streams:
        for stream in warps:
            for row in stream.instruction.tolist():
                executed[trace.static.opcode[row].split(".")[0]] += 1
    total = sum(executed.values())
    return {
        "kernel": trace.kernel,
        "arch": trace.arch,
        "grid": list(trace.launch.grid),
        "block": list(trace.launch.block),
        "cluster": list(trace.launch.cluster),
        "registers_per_thread": trace.registers_per_thread,
        "smem_bytes_per_cta": trace.smem_bytes_per_cta,
        "ctas": trace.launch.n_ctas,
        "warps": trace.launch.n_ctas * trace.launch.n_warps,
        "instructions": trace.warp_instructions,
        "classes": trace.n_classes,
        "events": len(trace.events),
        "opcodes": {opcode: count / total for opcode, count in executed.most_common(MOST_OPCODES)},
        "file_bytes": path.stat().st_size,
        "source": trace.origin.source,
        "digest": trace.origin.digest,
        "warnings": list(trace.warnings),
    }
