"""Which chips there are, where their files lie, and what the sources are called."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from simulator.data_files import data_folder
from simulator.errors import UserError
from simulator.hw.provenance import OVERRIDE_SOURCE, Source
from simulator.hw.schema import did_you_mean

SOURCES_FILE = "_sources.yaml"
FAMILY_FOLDER = "_families"
SOURCE_KINDS = ("vendor", "measurement", "paper", "community", "model", "assumption")


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which a key that is given twice is an error, instead of the last one winning silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                line = node.value[index][0].start_mark.line + 1
                raise UserError(f"the key '{key}' is given twice (line {line})")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def read_yaml(path: Path, holds: str = "sections (identity, sm, shared_memory, ...)") -> dict[str, Any]:
    """The mapping in a YAML file; raises UserError (naming file and line) for anything else; ``holds`` says what is due."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text (UTF-8)") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} must hold a mapping of {holds}")
    return content


def chip_names() -> list[str]:
    """Names of the chips that are shipped, sorted."""
    return sorted(path.stem for path in data_folder("hw_configs").glob("*.yaml") if not path.stem.startswith("_"))


def chip_file(name_or_path: str | Path) -> Path:
    """File of a chip: a path to a YAML file, or the name of a shipped chip (case, spaces and hyphens do not matter)."""
    text = str(name_or_path)
    if text.endswith((".yaml", ".yml")) or isinstance(name_or_path, Path) or "/" in text:
        return Path(text)
    wanted = text.strip().lower().replace("-", "_").replace(" ", "_")
    names = chip_names()
    if wanted not in names:
        hint = did_you_mean(wanted, names)
        raise UserError(f"there is no chip '{text}'{hint or ''} (chips: {', '.join(names)}; or a path to a .yaml file)")
    return data_folder("hw_configs") / f"{wanted}.yaml"


def parent_file(parent: str, child: Path) -> Path:
    """File that ``extends: parent`` in ``child`` names: beside the child or shipped, a family first."""
    folders = dict.fromkeys((child.parent, child.parent.parent, data_folder("hw_configs")))
    candidates = [folder / place / f"{parent}.yaml" for folder in folders for place in (FAMILY_FOLDER, ".")]
    for candidate in candidates:
        if candidate.is_file() and candidate.resolve() != child.resolve():
            return candidate
    known = {path.stem for candidate in candidates for path in candidate.parent.glob("[!_]*.yaml")} - {child.stem}
    raise UserError(f"{child}: extends '{parent}', which is neither a family nor a chip{did_you_mean(parent, known)}")


def load_sources(folder: Path) -> dict[str, Source]:
    """The shipped sources, and on top of them those of ``folder`` where it has a ``_sources.yaml`` of its own."""
    shipped = data_folder("hw_configs") / SOURCES_FILE
    own = folder / SOURCES_FILE
    files = [shipped, own] if own.is_file() and own.resolve() != shipped.resolve() else [shipped]
    return {source.key: source for file in files for source in _sources_of(file)}


def _sources_of(file: Path) -> Iterable[Source]:
    for key, entry in read_yaml(file).items():
        if not isinstance(entry, dict) or not {"title", "kind"} <= set(entry) <= {"title", "kind", "address"}:
            raise UserError(f"{file}: source '{key}' must have a title, a kind and, where there is one, an address")
        if entry["kind"] not in SOURCE_KINDS:
            raise UserError(
                f"{file}: source '{key}' is of kind '{entry['kind']}'; it must be one of {', '.join(SOURCE_KINDS)}"
            )
        if key == OVERRIDE_SOURCE:
            raise UserError(f"{file}: the source name '{key}' is kept for values set on the command line")
        yield Source(str(key), str(entry["title"]), entry["kind"], str(entry.get("address", "")))
