"""Tokens in a file: readable by its owner alone, whole whatever happens, and shared by processes."""

import asyncio
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import filelock
import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from shared.client.auth import store
from shared.client.auth.keyring_store import KeyringTokens, usable_keyring
from shared.client.auth.store import FileTokens, OutOfReach
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


async def test_what_was_put_is_there_for_others(tokens: FileTokens, tmp_path: Path) -> None:
    await tokens.put(KEY, VALUE)
    assert await FileTokens(tmp_path / "state" / "logins").get(KEY) == VALUE
    assert await tokens.get((KEY[0], "https://mcp.example/other")) is None


async def test_what_was_deleted_is_gone(tokens: FileTokens) -> None:
    await tokens.delete(KEY)
    await tokens.put(KEY, VALUE)
    await tokens.delete(KEY)
    assert await tokens.get(KEY) is None
    assert tokens.entries() == {}


async def test_only_the_owner_can_read(tokens: FileTokens) -> None:
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


async def test_a_file_that_others_could_read_is_the_owner_s_again(tokens: FileTokens) -> None:
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
async def test_a_damaged_file_is_set_aside(tokens: FileTokens, text: bytes) -> None:
    await tokens.put(KEY, VALUE)
    tokens.path.write_bytes(text)
    with pytest.raises(AuthError, match=r"is damaged, and was set aside as tokens\.damaged; log in again"):
        await tokens.get(KEY)
    assert await tokens.get(KEY) is None
    assert tokens.path.with_suffix(".damaged").read_bytes() == text


async def test_a_damaged_file_stays_while_another_program_writes(
    tokens: FileTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tokens.put(KEY, VALUE)
    good = tokens.path.read_bytes()
    tokens.path.write_bytes(b"{")
    monkeypatch.setattr(store, "WRITE_SECONDS", 0)
    with filelock.FileLock(tokens.path.with_suffix(".lock")):
        with pytest.raises(AuthError, match="another program has it"):
            await tokens.get(KEY)
        tokens.path.write_bytes(good)
    assert await tokens.get(KEY) == VALUE


async def test_a_full_disk_leaves_what_was_there(tokens: FileTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    await tokens.put(KEY, VALUE)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(AuthError, match=r"tokens can't be kept in .*: No space left on device") as caught:
            await tokens.put(KEY, {"access_token": "n3w"})
    assert "n3w" not in str(caught.value)
    assert await tokens.get(KEY) == VALUE
    assert not list(tokens.path.parent.glob("*.tmp"))


async def test_one_holds_a_lock_at_a_time(tokens: FileTokens) -> None:
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
def test_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    line = [sys.executable, "-c", _ADD, str(tmp_path / "logins")]
    started = [subprocess.Popen(line) for _ in range(4)]
    assert [one.wait(50) for one in started] == [0] * 4
    assert json.loads((tmp_path / "logins" / "tokens.json").read_text())["entries"] == {"a": {"b": {"n": 40}}}


class Full(Exception):
    """As that of pywin32, which is no error of Python's."""


class Ring(KeyringBackend):  # type: ignore[misc]
    """A keyring in memory."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Any, str] = {}
        self.is_locked = False
        self.room = 1_000_000

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked("s3cret")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password) > self.room:
            raise Full(1783, "CredWrite", "s3cret")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


async def test_a_keyring_has_the_secrets(tmp_path: Path) -> None:
    ring = Ring()
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    assert "s3cret" not in (tmp_path / "logins" / "tokens.json").read_text()
    assert await tokens.get(KEY) == VALUE
    await tokens.delete(KEY)
    assert ring.kept == {}
    assert await tokens.get(KEY) is None


async def test_a_keyring_that_is_locked(tmp_path: Path) -> None:
    ring = Ring()
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    ring.is_locked = True
    with pytest.raises(AuthError, match="the keyring of the system can't be used: KeyringLocked") as caught:
        await tokens.get(KEY)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000], ids=["half", "a list", "deep"])
async def test_a_damaged_item_of_a_keyring(tmp_path: Path, text: str) -> None:
    ring = Ring()
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    ring.kept = dict.fromkeys(ring.kept, text)
    with pytest.raises(AuthError, match="can't be read; log out and in again"):
        await tokens.get(KEY)
    ring.kept.clear()
    assert await tokens.get(KEY) is None


async def test_what_a_keyring_has_no_room_for_is_in_the_file(tmp_path: Path) -> None:
    ring, long = Ring(), {**VALUE, "access_token": "x" * 1_300}
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    ring.room = 1_280
    await tokens.put(KEY, long)
    assert ring.kept == {}
    assert await tokens.get(KEY) == long
    assert await FileTokens(tmp_path / "logins").get(KEY) == long
    ring.room = 10
    with pytest.raises(OutOfReach, match="can't be used: Full") as caught:
        await tokens.put(KEY, VALUE)
    assert "s3cret" not in str(caught.value)


async def test_where_there_is_no_keyring_its_tokens_are_out_of_reach(tmp_path: Path) -> None:
    ring, client = Ring(), ("https://as.example", "")
    await KeyringTokens(tmp_path / "logins", ring).put(KEY, VALUE)
    await KeyringTokens(tmp_path / "logins", ring).put(client, {"client_id": "x", "client_secret": "s3cret"})
    tokens = FileTokens(tmp_path / "logins")
    with pytest.raises(OutOfReach, match="in the keyring of the system, which is not there now"):
        await tokens.get(KEY)
    assert await tokens.get(client) is None
    await tokens.put(KEY, VALUE)
    assert await tokens.get(KEY) == VALUE


def test_a_keyring_that_is_misnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    for name in ("no.Such", "json.Such", "Such", "json.JSONDecoder"):
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", name)
        with pytest.raises(AuthError, match=r"PYTHON_KEYRING_BACKEND .* names what is no keyring here: "):
            usable_keyring()
