"""`KeyringTokens`: secrets in the system keyring, or in the file if they are too long for it."""

from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from shared.client.auth.keyring_store import KeyringTokens, usable_keyring
from shared.client.auth.store import FileTokens, TokensUnavailable
from shared.errors import AuthError

KEY = ("https://as.example", "https://mcp.example/mcp")
VALUE = {"access_token": "s3cret", "scope": "a b"}


class Full(Exception):
    """A stand-in for the error of pywin32, which derives from no built-in error but Exception."""


class Ring(KeyringBackend):  # type: ignore[misc]
    """A keyring in memory."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()
        self.passwords: dict[Any, str] = {}
        self.is_locked = False
        self.room = 1_000_000

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked("s3cret")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password) > self.room:
            raise Full(1783, "CredWrite", "s3cret")
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.passwords[service, username]


async def test_secrets_are_stored_in_the_keyring_and_not_in_the_file(tmp_path: Path) -> None:
    ring = Ring()
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    assert "s3cret" not in (tmp_path / "logins" / "tokens.json").read_text()
    assert await tokens.get(KEY) == VALUE
    await tokens.delete(KEY)
    assert ring.passwords == {}
    assert await tokens.get(KEY) is None


async def test_a_locked_keyring_is_an_error(tmp_path: Path) -> None:
    ring = Ring()
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    ring.is_locked = True
    with pytest.raises(AuthError, match="the system keyring can't be used: KeyringLocked") as caught:
        await tokens.get(KEY)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000], ids=["half", "a list", "deep"])
async def test_a_damaged_keyring_item_is_an_error_until_it_is_deleted(tmp_path: Path, text: str) -> None:
    ring = Ring()
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    ring.passwords = dict.fromkeys(ring.passwords, text)
    with pytest.raises(AuthError, match="can't be read; log out and in again"):
        await tokens.get(KEY)
    ring.passwords.clear()
    assert await tokens.get(KEY) is None


async def test_a_value_too_long_for_the_keyring_is_stored_in_the_file(tmp_path: Path) -> None:
    ring, long = Ring(), {**VALUE, "access_token": "x" * 1_300}
    tokens = KeyringTokens(tmp_path / "logins", ring)
    await tokens.put(KEY, VALUE)
    ring.room = 1_280
    await tokens.put(KEY, long)
    assert ring.passwords == {}
    assert await tokens.get(KEY) == long
    assert await FileTokens(tmp_path / "logins").get(KEY) == long
    ring.room = 10
    with pytest.raises(TokensUnavailable, match="can't be used: Full") as caught:
        await tokens.put(KEY, VALUE)
    assert "s3cret" not in str(caught.value)


async def test_tokens_in_a_missing_keyring_are_unavailable(tmp_path: Path) -> None:
    ring, client = Ring(), ("https://as.example", "")
    await KeyringTokens(tmp_path / "logins", ring).put(KEY, VALUE)
    await KeyringTokens(tmp_path / "logins", ring).put(client, {"client_id": "x", "client_secret": "s3cret"})
    tokens = FileTokens(tmp_path / "logins")
    with pytest.raises(TokensUnavailable, match="in the system keyring, which is not available here"):
        await tokens.get(KEY)
    assert await tokens.get(client) is None
    await tokens.put(KEY, VALUE)
    assert await tokens.get(KEY) == VALUE


def test_an_unusable_name_of_a_keyring_backend_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # The library looks for a keyring once.
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    for name in ("no.Such", "json.Such", "Such", "json.JSONDecoder"):
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", name)
        with pytest.raises(AuthError, match=r"PYTHON_KEYRING_BACKEND .* names no usable keyring: "):
            usable_keyring()
