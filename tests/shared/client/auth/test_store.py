"""`FileTokens`: a file that only its owner can read, that survives crashes, and that processes share."""

import asyncio
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import filelock
import pytest

from shared.client.auth import store
from shared.client.auth.store import FileTokens
from shared.errors import AuthError

KEY = ("https://as.example", "https://mcp.example/mcp")
VALUE = {"access_token": "s3cret", "scope": "a b"}
_ADD = """
import anyio, sys
from pathlib import Path
from shared.client.auth.store import FileTokens

async def main():
    tokens = FileTokens(Path(sys.argv[1]))
    for _ in range(10):
        async with tokens.lock(("a", "b")):
            found = await tokens.get(("a", "b")) or {"n": 0}
            await tokens.put(("a", "b"), {"n": found["n"] + 1})

anyio.run(main)
"""


@pytest.fixture
def tokens(tmp_path: Path) -> FileTokens:
    return FileTokens(tmp_path / "state" / "logins")


async def test_a_stored_value_is_read_by_another_store(tokens: FileTokens, tmp_path: Path) -> None:
    await tokens.put(KEY, VALUE)
    assert await FileTokens(tmp_path / "state" / "logins").get(KEY) == VALUE
    assert await tokens.get((KEY[0], "https://mcp.example/other")) is None


async def test_a_deleted_entry_is_gone(tokens: FileTokens) -> None:
    await tokens.delete(KEY)
    await tokens.put(KEY, VALUE)
    await tokens.delete(KEY)
    assert await tokens.get(KEY) is None
    assert tokens.entries() == {}


async def test_only_the_owner_can_read_the_files(tokens: FileTokens) -> None:
    before = os.umask(0)
    try:
        await tokens.put(KEY, VALUE)
        async with tokens.lock(KEY):
            pass
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in tokens.path.parent.iterdir()}
    assert modes == {0o600}
    assert tokens.path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_write_restores_the_permissions_of_a_readable_file(tokens: FileTokens) -> None:
    await tokens.put(KEY, VALUE)
    tokens.path.chmod(0o644)
    await tokens.put(KEY, VALUE)
    assert tokens.path.stat().st_mode & 0o777 == 0o600


DAMAGED = {
    "empty": b"",
    "half": b"{",
    "a list": b"[]",
    "of another format": b'{"format": 2, "entries": {}}',
    "flat": b'{"format":1,"entries":{"a":1}}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
async def test_a_damaged_file_is_renamed_with_an_error(tokens: FileTokens, text: bytes) -> None:
    await tokens.put(KEY, VALUE)
    tokens.path.write_bytes(text)
    with pytest.raises(AuthError, match=r"was damaged, and has been renamed to tokens\.damaged; log in again"):
        await tokens.get(KEY)
    assert await tokens.get(KEY) is None
    assert tokens.path.with_suffix(".damaged").read_bytes() == text


async def test_a_damaged_file_is_not_renamed_while_another_program_has_the_lock(
    tokens: FileTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tokens.put(KEY, VALUE)
    good = tokens.path.read_bytes()
    tokens.path.write_bytes(b"{")
    monkeypatch.setattr(store, "WRITE_SECONDS", 0)  # a shorter timeout
    with filelock.FileLock(tokens.path.with_suffix(".lock")):
        with pytest.raises(AuthError, match="another program has locked it"):
            await tokens.get(KEY)
        tokens.path.write_bytes(good)
    assert await tokens.get(KEY) == VALUE


async def test_a_full_disk_leaves_the_stored_value(tokens: FileTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    await tokens.put(KEY, VALUE)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(AuthError, match=r"tokens can't be stored in .*: No space left on device") as caught:
            await tokens.put(KEY, {"access_token": "n3w"})
    assert "n3w" not in str(caught.value)
    assert await tokens.get(KEY) == VALUE
    assert not list(tokens.path.parent.glob("*.tmp"))


async def test_a_lock_has_one_holder_at_a_time(tokens: FileTokens) -> None:
    inside, most = 0, 0

    async def hold() -> None:
        nonlocal inside, most
        async with tokens.lock(KEY):
            inside += 1
            most = max(most, inside)
            await anyio.lowlevel.checkpoint()
            inside -= 1

    with anyio.fail_after(20):
        await asyncio.gather(*(hold() for _ in range(4)))
    assert most == 1


@pytest.mark.slow
def test_concurrent_processes_lose_no_entries(tmp_path: Path) -> None:
    line = [sys.executable, "-c", _ADD, str(tmp_path / "logins")]
    started = [subprocess.Popen(line) for _ in range(4)]
    assert [one.wait(50) for one in started] == [0] * 4
    assert json.loads((tmp_path / "logins" / "tokens.json").read_text())["entries"] == {"a": {"b": {"n": 40}}}
