"""``kernelcast project``: one kernel on one chip."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.cli.output import atomic_write, emit_json, require_writable, stderr, stdout
from simulator.cli.progress import announce_compilation
from simulator.errors import UserError

if TYPE_CHECKING:
    from simulator.hw.config import HardwareConfig
    from simulator.projection.explanations import Explanations
    from simulator.projection.projection import Projection
    from simulator.projection.run import Replay
    from simulator.trace.kernel_trace import KernelTrace

ELF_MAGIC = b"\x7fELF"
ZIP_MAGIC = b"PK"
DESIGN_SUFFIXES = (".yaml", ".yml")


def register(app: typer.Typer) -> None:
    """Add ``project`` to the command line."""
    app.command("project")(project)


def project(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A trace (.npz), a cubin with --launch, or a tile design (.yaml).")
    ],
    hw: Annotated[str, typer.Option(help="Chip: a name, or a YAML file.")],
    launch: Annotated[Path | None, typer.Option(help="Launch of the cubin: a JSON or YAML file.")] = None,
    kernel: Annotated[str | None, typer.Option(help="Kernel of the cubin (default: the one that the launch names).")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a hardware value.")] = None,
    allow_unknown: Annotated[bool, typer.Option(help="Go on past unknown opcodes, and list them.")] = False,
    what_if: Annotated[bool, typer.Option("--what-if", help="Replay with one resource ideal at a time; rank the gains.")] = False,
    advise: Annotated[bool, typer.Option("--advise", help="Say what to change; every gain is replayed.")] = False,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="List the N instructions with most stall cycles.")] = 0,
    timeline: Annotated[
        Path | None, typer.Option(metavar="F.json", help="Write a timeline: .json (Perfetto), .html, .txt.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="F.html", help="Write a self-contained HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")] = False,
) -> None:
    """Project a kernel: cycles, time, occupancy, stalls, bytes, bounds."""
    from simulator.hw.loader import load_hw
    from simulator.projection.run import project_replay, replay_trace
    from simulator.projection.timeline import build_timeline
    from simulator.report import explanation_text, projection_text
    from simulator.report.timeline_file import FORMATS, timeline_file

    chip = load_hw(hw, tuple(overrides or ()))
    chip.execution_sections()
    for path in (report, timeline):
        if path is not None:
            require_writable(path)
    if timeline is not None and timeline.suffix not in FORMATS:
        raise UserError(f"--timeline {timeline}: the name must end in {', '.join(FORMATS)} (Perfetto, pipeline diagram, text)")
    started = time.perf_counter()
    trace = _trace(source, launch, kernel, allow_unknown, hw, chip)
    replay = replay_trace(trace, chip, profile=bool(top or advise))
    found = project_replay(replay, chip, started)
    more = _explanations(found, replay, chip, source, what_if, advise, top)
    if timeline is not None:
        atomic_write(timeline, timeline_file(build_timeline(replay, chip), timeline.suffix))
        stderr.print(f"Wrote {timeline}" + ("; open it at ui.perfetto.dev" if timeline.suffix == ".json" else ""))
    if report is not None:
        from simulator.report.projection_report import ProjectionReport

        atomic_write(report, ProjectionReport(found, replay.trace, chip).page())
        stderr.print(f"Wrote {report}")
    if json:
        emit_json(asdict(found) | more.to_json())
    else:
        stdout().print(projection_text.render(found))
        stdout().print(explanation_text.render(more))


def _explanations(
    found: Projection, replay: Replay, chip: HardwareConfig, source: Path, what_if: bool, advise: bool, top: int
) -> Explanations:
    """What the options ask for beside the projection itself."""
    from simulator.frontends.sass.source_lines import source_lines
    from simulator.projection.explanations import explain

    is_cubin = _first_bytes(source).startswith(ELF_MAGIC)
    lines = source_lines(source, replay.trace.kernel) if is_cubin and (top or advise) else {}
    return explain(found, replay, chip, what_if, advise, top, lines)


def _trace(
    source: Path, launch: Path | None, kernel: str | None, allow_unknown: bool, hw: str, chip: HardwareConfig
) -> KernelTrace:
    """The trace in ``source``, the one that the cubin ``source`` gives under ``launch``, or that of the design."""
    from simulator.frontends.sass.launch import load_launch
    from simulator.trace.io import load_trace
    from simulator.validation.traces import cached_trace
    from simulator.validation.warm_up import ensure_compiled

    if source.suffix in DESIGN_SUFFIXES:
        return _designed(source, launch, chip)
    magic = _first_bytes(source)
    if magic.startswith(ZIP_MAGIC) or source.suffix == ".npz":
        if launch is not None:
            raise UserError(f"--launch goes with a cubin; {source} is a trace and holds its launch")
        return load_trace(source)
    if not magic.startswith(ELF_MAGIC) and source.suffix != ".cubin":
        raise UserError(f"{source} is neither a trace (.npz), a cubin nor a tile design (.yaml)")
    if launch is None:
        raise UserError(f"{source} is a cubin: give its launch with --launch FILE.json or FILE.yaml")
    spec = load_launch(launch)
    ensure_compiled(hw, announce_compilation)
    return cached_trace(source, spec, kernel, allow_unknown)


def _designed(source: Path, launch: Path | None, chip: HardwareConfig) -> KernelTrace:
    """The trace of a tile design; an illegal one ends the command with exit code 1."""
    from simulator.kernels.families import family_of, load_design
    from simulator.projection.tile_card import check_design, ready_to_build

    if launch is not None:
        raise UserError(f"--launch goes with a cubin; {source} is a design and makes its launch")
    design = load_design(source)
    violations = check_design(design, chip)
    if violations:
        for violation in violations:
            change = f"; nearest legal change: {violation.change}" if violation.change else ""
            stderr.print(f"Error: {source} is not legal on {chip.name}: {violation.message}{change}", soft_wrap=True)
        raise typer.Exit(1)
    ready, _, _ = ready_to_build(design, chip)
    return family_of(design).build(ready, chip.identity.instruction_set)


def _first_bytes(source: Path) -> bytes:
    try:
        with source.open("rb") as file:
            return file.read(len(ELF_MAGIC))
    except FileNotFoundError as error:
        raise UserError(f"{source} does not exist; give a trace (.npz) or a cubin") from error
    except OSError as error:
        raise UserError(f"{source} cannot be read: {error.strerror}") from error
