"""A chip in a folder of its own, for tests that break one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def write_chip(tmp_path: Path) -> Callable[..., Path]:
    """Write the smallest chip that loads, after ``edit`` has changed its document (or raw ``text``); its path."""

    def write(
        edit: Callable[[dict[str, Any]], object] | None = None, text: str | None = None, name: str = "chip.yaml"
    ) -> Path:
        document: dict[str, Any] = {
            "extends": "hopper",
            "identity": {"product": {"value": "Test chip", "source": "assumption", "confidence": "assumed"}},
            "sm": {"count": {"value": 4, "source": "assumption", "confidence": "assumed"}},
        }
        if edit is not None:
            edit(document)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document) if text is None else text)
        return path

    return write
