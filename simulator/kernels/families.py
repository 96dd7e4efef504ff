"""Every family of designs: what it is called, how it loads, what makes a kernel of it, what its limits are.

A new family is one generator file and one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from simulator.errors import UserError
from simulator.hw.config import HardwareConfig
from simulator.kernels import attention, convolution, gemm, normalization, reduction, streaming
from simulator.kernels.attention_design import AttentionDesign
from simulator.kernels.attention_legality import check_attention
from simulator.kernels.convolution_design import ConvolutionDesign
from simulator.kernels.convolution_legality import check_convolution
from simulator.kernels.gemm_design import GemmDesign
from simulator.kernels.gemm_legality import check_gemm
from simulator.kernels.legality import Violation
from simulator.kernels.memory_legality import check_normalization, check_reduction, check_streaming
from simulator.kernels.normalization_design import NormalizationDesign
from simulator.kernels.reduction_design import ReductionDesign
from simulator.kernels.sampling import Extent
from simulator.kernels.streaming_design import StreamingDesign
from simulator.trace.kernel_trace import KernelTrace


@dataclass(frozen=True)
class Family:
    """Functions of a design. ``build(design, instruction_set, extent)``: its trace, or that of a part of its work;
    ``check(design, hw)``: violations; ``resources``: (registers per thread, threads, bytes of shared memory) of a CTA;
    ``launched_on(design, n_sms, ctas_per_sm)``: what depends on the chip's size is filled in; ``extent_of``: work of the
    busiest CTA; ``neighbours``: (what changes, design) of single-step changes; ``flops``, ``least_bytes``: of the problem.
    ``moves_data``: its speed is told in bytes per second, and as a share of what the DRAM could move; ``shares_lines``: all
    CTAs read a few lines at about the same time.
    """

    name: str
    model: type[BaseModel]
    build: Callable[..., KernelTrace]
    check: Callable[[Any, HardwareConfig], list[Violation]]
    resources: Callable[[Any], tuple[int, int, int]]
    launched_on: Callable[[Any, int, int], Any]
    extent_of: Callable[[Any], Extent]
    neighbours: Callable[[Any], list[tuple[str, Any]]]
    flops: Callable[[Any], float]
    least_bytes: Callable[[Any], float]
    sample_steps: int = 12
    """Loop steps of a part of the work from which a longer loop is extrapolated (and from twice as many)."""
    moves_data: bool = False
    shares_lines: bool = False


def _memory_family(
    name: str, model: type[BaseModel], g: Any, check: Callable[..., list[Violation]], shares_lines: bool = False
) -> Family:
    """A family whose generator module ``g`` has every function under its usual name."""
    functions = (g.build, check, g.resources, g.launched_on, g.extent_of, g.neighbours, g.flops, g.least_bytes)
    return Family(name, model, *functions, moves_data=True, shares_lines=shares_lines)


FAMILIES = {
    "gemm": Family(
        "gemm",
        GemmDesign,
        gemm.build,
        check_gemm,
        gemm.resources,
        gemm.launched_on,
        gemm.extent_of,
        gemm.neighbours,
        gemm.flops,
        gemm.least_bytes,
    ),
    "attention": Family(
        "attention",
        AttentionDesign,
        attention.build,
        check_attention,
        attention.resources,
        attention.launched_on,
        attention.extent_of,
        attention.neighbours,
        attention.flops,
        attention.least_bytes,
        sample_steps=attention.SAMPLE_STEPS,
    ),
    "layer_norm": _memory_family("layer_norm", NormalizationDesign, normalization, check_normalization, shares_lines=True),
    "rms_norm": _memory_family("rms_norm", NormalizationDesign, normalization, check_normalization, shares_lines=True),
    "softmax": _memory_family("softmax", NormalizationDesign, normalization, check_normalization),
    "reduction": _memory_family("reduction", ReductionDesign, reduction, check_reduction),
    "streaming": _memory_family("streaming", StreamingDesign, streaming, check_streaming),
    "convolution": Family(
        "convolution",
        ConvolutionDesign,
        convolution.build,
        check_convolution,
        convolution.resources,
        gemm.launched_on,
        gemm.extent_of,
        convolution.neighbours,
        convolution.flops,
        convolution.least_bytes,
    ),
}
"""By ``kind``."""


def family_of(design: BaseModel) -> Family:
    """The family of a loaded design."""
    return FAMILIES[str(design.kind)]  # type: ignore[attr-defined]


def parse_design(values: object, where: str) -> BaseModel:
    """A design from plain values; UserError names field, value and what is valid. ``where``: file or command."""
    if not isinstance(values, dict):
        raise UserError(f"{where} is not a design: it must be a mapping with the key 'kind' ({', '.join(FAMILIES)})")
    kind = values.get("kind")
    if kind not in FAMILIES:
        raise UserError(f"{where}: kind '{kind}' is not known; kinds: {', '.join(FAMILIES)}")
    try:
        return FAMILIES[str(kind)].model.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{where}: {sentence_of(error, FAMILIES[str(kind)].model)}") from error


def load_design(path: Path) -> BaseModel:
    """A design from a YAML file."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"design {path} cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"design {path} is not YAML: {' '.join(str(error).split())}") from error
    return parse_design(values, str(path))


def sentence_of(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem of values for ``model``: its field, its value and what is valid."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"field '{field}' is not known; fields: {', '.join(model.model_fields)}"
    if first["type"] == "missing":
        return f"field '{field}' is missing"
    message = first["msg"].removeprefix("Value error, ")
    return f"{field} is {first['input']!r}: {message[0].lower()}{message[1:]}" if field else message
