"""Compiled kernel + launch -> KernelTrace, without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simulator import __name__ as BUILDER
from simulator.errors import Unsupported
from simulator.frontends.sass.classes import classify
from simulator.frontends.sass.decode import load_kernel
from simulator.frontends.sass.execution_log import entry_columns
from simulator.frontends.sass.group_execution import ClassExecution, GroupExecutor
from simulator.frontends.sass.launch import BoundLaunch, LaunchSpec, bind
from simulator.frontends.sass.memory_image import BufferImage
from simulator.frontends.sass.micro_ops import LoweredKernel, lower
from simulator.frontends.sass.operands import SassKernel
from simulator.frontends.sass.semantics import codes
from simulator.frontends.sass.static_table import build_static_table
from simulator.isa.table import find_opcode
from simulator.trace.builder import ClassStreams, assemble
from simulator.trace.kernel_trace import NONE, KernelTrace, Origin

INSTRUCTION_LIMIT = 100_000_000


def build_trace(
    source: str | Path | bytes,
    spec: LaunchSpec,
    kernel: str | None = None,
    allow_unknown: bool = False,
    instruction_limit: int = INSTRUCTION_LIMIT,
) -> KernelTrace:
    """Execute a kernel of a cubin (path or bytes) functionally for every CTA of a launch.

    ``allow_unknown``: opcodes that the instruction table lacks become warnings. ``instruction_limit``: warp instructions
    of one CTA at most. UserError for a bad cubin, launch or an endless loop; Unsupported when a branch, address, barrier
    or descriptor depends on data or instructions that are not known.
    """
    sass = load_kernel(source, kernel or spec.kernel)
    warnings = _unknown_opcodes(sass, allow_unknown)
    bound = bind(sass, spec)
    lowered = lower(sass, bound)
    executor = GroupExecutor(sass, bound, lowered, _needed_contents(bound, lowered), instruction_limit)
    executions = classify(executor)[::-1]
    tensors = _TensorRows(sass, bound)
    classes = [_class_streams(executions.pop(), tensors) for _ in range(len(executions))]
    assembled = assemble(classes, executor.log.patterns[: executor.state.cta[0].n_patterns], bound.launch.n_ctas)
    return KernelTrace(
        kernel=sass.name,
        arch=sass.arch,
        launch=bound.launch,
        registers_per_thread=sass.registers_per_thread,
        static_smem_bytes=sass.static_smem_bytes,
        local_bytes_per_thread=sass.local_bytes_per_thread,
        static=build_static_table(sass),
        tensor_maps=bound.tensor_maps,
        buffers=bound.buffers,
        origin=Origin("cubin bytes" if isinstance(source, bytes) else Path(source).name, sass.digest, BUILDER),
        warnings=(*warnings, *_assumptions(sass, lowered, classes)),
        streams=assembled.streams,
        events=assembled.events,
        lane_patterns=assembled.lane_patterns,
        cta_class=assembled.cta_class,
        cta_base=assembled.cta_base,
    )


def _unknown_opcodes(sass: SassKernel, allow_unknown: bool) -> list[str]:
    """Sentences about opcodes outside the instruction table; raises the first one unless they are allowed."""
    sentences: dict[str, str] = {}
    for instruction in sass.instructions:
        if instruction.opcode in sentences:
            continue
        try:
            find_opcode(instruction.opcode)
        except Unsupported:
            sentences[instruction.opcode] = (
                f"kernel '{sass.name}', address {instruction.address:#x}: opcode {instruction.opcode} is not in the "
                "instruction table"
            )
    if sentences and not allow_unknown:
        raise Unsupported(next(iter(sentences.values())) + "; --allow-unknown goes on without it")
    return [sentence + "; it takes its issue slot alone" for sentence in sentences.values()]


def _needed_contents(bound: BoundLaunch, lowered: LoweredKernel) -> list[BufferImage]:
    """Contents of the buffers, if a load of the kernel must return values."""
    rows = lowered.rows
    reads = np.isin(rows["verb"], (codes.GLOBAL_READ, codes.GENERIC_READ)) & (rows["family"] == codes.MEMORY)
    if not (reads & (rows["action"] == codes.EXECUTE)).any():
        return []
    return [
        BufferImage(
            buffer.address,
            buffer.n_bytes // contents.dtype.itemsize * contents.dtype.itemsize,
            contents.distinct(buffer.n_bytes),
            contents.repeat,
        )
        for buffer in bound.buffers
        if (contents := bound.contents.get(buffer.name)) is not None
    ]


class _TensorRows:
    """Descriptor addresses as rows of the trace's tensor maps, and the bytes of their boxes."""

    def __init__(self, sass: SassKernel, bound: BoundLaunch):
        self.sass = sass
        self.bound = bound
        self.box_bytes = np.array(
            [int(np.prod(m.box)) * m.element_bytes for m in bound.tensor_maps] + [0], np.int64
        )

    def rows(self, descriptors: np.ndarray) -> np.ndarray:
        """Row per event, NONE without a descriptor. Unsupported for a descriptor that is not a kernel parameter."""
        known = self.bound.tensor_map_of_address
        rows = np.full(len(descriptors), NONE, np.int64)
        for address in np.unique(descriptors[descriptors != NONE]).tolist():
            if address not in known:
                raise Unsupported(
                    f"kernel '{self.sass.name}' copies with a tensor map at {address:#x} that is not one of its parameters "
                    "(built on the device, or a parameter that the launch does not describe as a tensormap)"
                )
            rows[descriptors == address] = known[address]
        return rows


def _class_streams(execution: ClassExecution, tensors: _TensorRows) -> ClassStreams:
    events = execution.events
    tensor = tensors.rows(events["descriptor"])
    count = np.where(tensor != NONE, tensors.box_bytes[tensor], events["count"])
    columns = {name: events[name] for name in (
        "pattern", "address", "shared_address", "shared_pattern", "coordinate", "mbarrier", "parity", "cta_mask",
    )}
    return ClassStreams(
        members=execution.members,
        warps=[entry_columns(entries) for entries in execution.entries],
        events={**columns, "tensor": tensor, "count": count},
        address_difference=events["difference"],
        coordinate_difference=events["coordinate_difference"],
        differences=execution.differences,
    )


def _assumptions(sass: SassKernel, lowered: LoweredKernel, classes: list[ClassStreams]) -> list[str]:
    """What the trace takes for granted."""
    sentences = []
    executed = {
        row for found in classes for instruction, _, _ in found.warps for row in np.unique(instruction).tolist()
    } if lowered.assumed else set()
    assumed = [sass.instructions[row].address for row in lowered.assumed if row in executed]
    if assumed:
        places = ", ".join(f"{address:#x}" for address in assumed[:4])
        sentences.append(f"branches around slow paths of software routines take the fast path ({places})")
    return sentences
