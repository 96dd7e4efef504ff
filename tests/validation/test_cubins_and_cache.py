"""Are compiled kernels found wherever they lie, and kept results never stale?"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from simulator.errors import UserError
from simulator.validation import cache
from simulator.validation.cubins import locate_cubins


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def test_is_a_folder_searched_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.cubin").write_bytes(b"1")
    (tmp_path / "b.json").write_bytes(b"2")
    assert locate_cubins(tmp_path) == {"a": tmp_path / "deep" / "a.cubin"}


def test_is_an_archive_unpacked_once_and_only_its_cubins(tmp_path: Path) -> None:
    source = archive(tmp_path / "k.tar.xz", {"x/a.cubin": b"one", "../../b.cubin": b"two", "a.ttgir": b"text"})
    first = locate_cubins(source)
    assert {stem: path.read_bytes() for stem, path in first.items()} == {"a": b"one", "b": b"two"}
    assert {path.parent for path in first.values()} == {first["a"].parent}
    stamp = first["a"].stat().st_mtime_ns
    assert locate_cubins(source)["a"].stat().st_mtime_ns == stamp
    assert not [path for path in first["a"].parent.parent.iterdir() if path.name.startswith(".partial")]


def test_is_a_bad_source_refused_in_one_sentence(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no archive")
    cut = archive(tmp_path / "c.tar.xz", {"a.cubin": bytes(5000)})
    cut.write_bytes(cut.read_bytes()[:60])
    (tmp_path / "empty").mkdir()
    for source, said in [
        (tmp_path / "nowhere", "does not exist"),
        (text, "neither a folder nor a readable tar"),
        (cut, "neither a folder nor a readable tar"),
        (tmp_path / "empty", "holds no .cubin"),
    ]:
        with pytest.raises(UserError, match=said):
            locate_cubins(source)


def test_does_a_trace_belong_to_its_kernel_launch_and_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache.trace_path(b"cubin", "launch")
    assert path == cache.trace_path(b"cubin", "launch")
    others = {cache.trace_path(b"cubi", "nlaunch"), cache.trace_path(b"cubin", "launch", "allow")}
    monkeypatch.setattr(cache, "builder_version", lambda: "another")
    others.add(cache.trace_path(b"cubin", "launch"))
    assert path not in others and len(others) == 3


def test_is_an_unusable_cache_folder_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNELCAST_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set KERNELCAST_CACHE"):
        cache.cache_folder("traces")
