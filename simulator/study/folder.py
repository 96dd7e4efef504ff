"""The folder of a study: what it holds, whose it is, and its tables; every file appears whole."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import UserError
from simulator.version import simulator_version

MANIFEST = "study.json"
FOLDER_FORMAT = 1


@dataclass(frozen=True)
class StudyFolder:
    """``path`` with the study whose file has the text ``text``."""

    path: Path
    text: str

    def manifest(self) -> dict[str, Any]:
        return {
            "format": FOLDER_FORMAT,
            "simulator": simulator_version(),
            "study_digest": hashlib.sha256(self.text.encode()).hexdigest(),
        }

    def claim(self, resume: bool) -> None:
        """Take the folder for this study, or refuse in one sentence; nothing that is there is touched then."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"folder {self.path} cannot be made: {error.strerror}") from error
        file = self.path / MANIFEST
        if file.is_file():
            self._require_same(file, resume)
        elif any(self.path.iterdir()):
            raise UserError(f"folder {self.path} holds other files and no study; choose an empty folder with -o")

    def _require_same(self, file: Path, resume: bool) -> None:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            version, study = found["simulator"], found["study_digest"]
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise UserError(f"{file} is damaged; remove it or choose another folder with -o") from error
        mine = self.manifest()
        if found.get("format") != FOLDER_FORMAT or version != mine["simulator"]:
            raise UserError(
                f"folder {self.path} was written by kernelcast {version}, this is {mine['simulator']}: its results stay "
                "as they are; choose another folder with -o"
            )
        if study != mine["study_digest"]:
            raise UserError(f"folder {self.path} holds another study (or an earlier form of this one); choose another with -o")
        if not resume:
            raise UserError(f"folder {self.path} holds this study already; go on with --resume, or choose another with -o")

    def file(self, name: str) -> Path:
        return self.path / name
