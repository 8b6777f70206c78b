"""Stores tokens in the system keyring, and the parts that are not secret, such as the scopes, in a file."""

import asyncio
import configparser
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import keyring
from anyio import to_thread
from keyring.backend import KeyringBackend
from keyring.errors import InitError, KeyringError, KeyringLocked, NoKeyringError, PasswordDeleteError

from ...errors import AuthError
from ...text import escape
from .store import IN_KEYRING, FileTokens, TokensUnavailable
from .tokens import Key

_SERVICE = "mcp-server-bundle"
SECRET_FIELDS = ("access_token", "refresh_token", "client_secret", "dpop_key")
MAX_PORTABLE_LENGTH = 1_280
"""The longest text that every keyring accepts: Windows accepts 2,560 bytes, at two bytes per character."""
_LOOKUP_ERRORS = (
    *(AttributeError, ImportError, OSError, TypeError, ValueError),
    *(KeyringError, RuntimeError, configparser.Error),
)
"""The errors that `keyring.get_keyring` may raise: it imports a class that the user names, and reads a file."""


def usable_keyring() -> KeyringBackend | None:
    """Return the system keyring; None if there is none that stores secrets safely. Raises AuthError if the user has
    named a keyring that is not available."""
    try:
        backend = keyring.get_keyring()
    except _LOOKUP_ERRORS as error:
        reason = escape(str(error))[:200]
        raise AuthError(f"PYTHON_KEYRING_BACKEND or keyringrc.cfg names no usable keyring: {reason}") from None
    # A priority below 1 means that the library does not recommend the keyring: `fail`, `null` and unencrypted files.
    return backend if backend.priority >= 1 else None


class KeyringTokens:
    """A `TokenStore` with the secrets in a keyring and the rest in a file in `folder`. Secrets that are too long for
    the keyring are in the file, too."""

    def __init__(self, folder: Path, backend: KeyringBackend) -> None:
        self._file = FileTokens(folder)
        self._backend = backend

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """Return the stored value; None if there is none, or if its secrets were removed from the keyring. Raises
        TokensUnavailable if the keyring can't be used, and AuthError for a value that can't be read."""
        entry = self._file.entries().get(key)
        if entry is None or not entry.get(IN_KEYRING):
            return entry
        text = await self._call_keyring(self._backend.get_password, _SERVICE, _user_name(key))
        if text is None:
            return None
        try:
            secrets = json.loads(text)
        except (ValueError, RecursionError):
            secrets = None
        if not isinstance(secrets, dict):
            raise AuthError("the entry for this login in the system keyring can't be read; log out and in again")
        return {**{name: value for name, value in entry.items() if name != IN_KEYRING}, **secrets}

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Store `value`. Raises AuthError if the keyring or the file does not accept it."""
        secrets = {name: value[name] for name in SECRET_FIELDS if name in value}
        entry = dict(value)
        if secrets:
            user_name, text = _user_name(key), json.dumps(secrets)
            try:
                await self._call_keyring(self._backend.set_password, _SERVICE, user_name, text)
            except TokensUnavailable as error:
                # If the failure may be due to the length of the text, store it in the file. A short text means that
                # the keyring itself has failed.
                if len(text) <= MAX_PORTABLE_LENGTH or isinstance(error, _KeyringLockedOrMissing):
                    raise
                with suppress(TokensUnavailable):
                    # The keyring may contain an older value.
                    await self._call_keyring(self._delete_password, user_name)
            else:
                entry = {name: field for name, field in value.items() if name not in secrets} | {IN_KEYRING: True}
        await self._file.put(key, entry)

    async def delete(self, key: Key) -> None:
        """Delete the value. Raises the same errors as `put`."""
        entry = self._file.entries().get(key)
        if entry is not None and entry.get(IN_KEYRING):
            await self._call_keyring(self._delete_password, _user_name(key))
        await self._file.delete(key)

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Return a lock that only one holder, in any process, can acquire at a time."""
        return self._file.lock(key)

    def entries(self) -> dict[Key, dict[str, Any]]:
        """Return the entries of the file, without the secrets that are in the keyring. Raises AuthError if the file
        can't be read."""
        return self._file.entries()

    def _delete_password(self, name: str) -> None:
        try:
            self._backend.delete_password(_SERVICE, name)
        except PasswordDeleteError:  # it was removed in the meantime
            return

    async def _call_keyring(self, call: Any, *arguments: str) -> Any:
        # A keyring is a plugin, and may raise any error: pywin32, D-Bus and others have their own.
        pending = to_thread.run_sync(partial(call, *arguments))
        outcome: Any = (await asyncio.gather(pending, return_exceptions=True))[0]
        if isinstance(outcome, Exception):
            is_locked_or_missing = isinstance(outcome, InitError | KeyringLocked | NoKeyringError)
            kind, reason = (
                _KeyringLockedOrMissing if is_locked_or_missing else TokensUnavailable,
                type(outcome).__name__,
            )
            raise kind(f"the system keyring can't be used: {reason}")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class _KeyringLockedOrMissing(TokensUnavailable):
    """The keyring is locked or missing: the failure was not due to a long text."""


def _user_name(key: Key) -> str:
    """Return what the keyring calls the user name of an entry."""
    return " ".join(key)
