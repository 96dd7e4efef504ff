"""Is a cubin disassembled once, and does a missing tool say how to get it?"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import UserError
from simulator.frontends.sass import disassemble as tool
from simulator.frontends.sass.elf import read_cubin


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(tool.CACHE_VARIABLE, str(tmp_path / "cache"))
    tool.disassemble.cache_clear()
    return tmp_path / "cache"


def _disassemble(path: Path) -> list[dict[str, object]]:
    cubin = read_cubin(path)
    return tool.disassemble(cubin.content, cubin.digest, cubin.source)


def test_the_second_time_the_tool_does_not_run(
    examples: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _disassemble(examples / "add_fp32.cubin")
    assert [path.suffix for path in (own_cache / "sass").iterdir()] == [".json"]
    tool.disassemble.cache_clear()
    monkeypatch.setattr(tool, "_disassemble", lambda *_: pytest.fail("the tool ran"))
    assert _disassemble(examples / "add_fp32.cubin") == first


def test_a_damaged_cache_entry_is_replaced(examples: Path, own_cache: Path) -> None:
    first = _disassemble(examples / "add_fp32.cubin")
    (entry,) = (own_cache / "sass").iterdir()
    entry.write_text("[{")
    tool.disassemble.cache_clear()
    assert _disassemble(examples / "add_fp32.cubin") == first
    assert entry.stat().st_size > 1000


def test_a_cache_that_cannot_be_written_is_no_error(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(tool.CACHE_VARIABLE, str(tmp_path / "file"))
    assert _disassemble(examples / "add_fp32.cubin")


def test_without_the_tool_the_user_learns_what_to_install(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "_package_folders", lambda name: [])
    monkeypatch.setattr(tool.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match=r"pip install kernelcast\[sass\]"):
        _disassemble(examples / "add_fp32.cubin")


def test_code_that_the_tool_rejects_is_one_sentence(examples: Path) -> None:
    content = bytearray((examples / "add_fp32.cubin").read_bytes())
    at = bytes(content).index(read_cubin(bytes(content)).kernel(None).code)
    content[at : at + 16] = b"\xff" * 16
    with pytest.raises(UserError, match="nvdisasm failed") as caught:
        tool.disassemble(bytes(content), "damaged", "add.cubin")
    assert "\n" not in str(caught.value)
