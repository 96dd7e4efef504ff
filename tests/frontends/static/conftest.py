"""Real cubins that the static front end is tested on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator.frontends.sass.decode import list_kernels, load_kernel
from simulator.frontends.sass.disassemble import CACHE_VARIABLE
from simulator.frontends.sass.operands import SassKernel


@pytest.fixture(scope="session")
def probes(repository: Path) -> dict[str, Path]:
    """Probe cubin per architecture."""
    folder = repository / "tests" / "data" / "cubins"
    return {f"sm_{arch}": folder / f"probe_sm{arch}.cubin" for arch in ("80", "90a", "100a")}


@pytest.fixture(scope="session")
def examples(repository: Path) -> Path:
    """Folder of compiled example kernels with their launches."""
    return repository / "kernel_traces" / "cubins"


@pytest.fixture(scope="session")
def kernels(probes: dict[str, Path], examples: Path, tmp_path_factory: pytest.TempPathFactory) -> list[SassKernel]:
    """Every kernel of every committed cubin, decoded."""
    files = [*probes.values(), *sorted(examples.glob("*.cubin"))]
    with pytest.MonkeyPatch.context() as patch:
        if CACHE_VARIABLE not in os.environ:
            patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.getbasetemp() / "kernelcast-cache"))
        return [load_kernel(path, name) for path in files for name in list_kernels(path)]
