"""Where the data that travels with the product lies: beside the package in a checkout, inside it when installed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from simulator.errors import UserError

DataKind = Literal["hw_configs", "kernel_traces", "projections"]

_PACKAGE = Path(__file__).resolve().parent


def data_folder(kind: DataKind) -> Path:
    """Folder of ``kind``: the checkout's top-level folder where there is one, else the packaged copy.

    Raises UserError when neither exists, which means a broken installation.
    """
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    packaged = _PACKAGE / "_data" / kind
    if packaged.is_dir():
        return packaged
    raise UserError(f"this installation lacks its {kind} folder ({packaged}); install the package again")
