"""Tokens in the keyring of the system: the file keeps what anybody may know of them, such as their scopes."""

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
from .store import IN_KEYRING, FileTokens, OutOfReach
from .tokens import Key

SERVICE = "mcp-server-bundle"
SECRETS = ("access_token", "refresh_token", "client_secret", "dpop_key")
MAX_SAFE = 1_280
"""Letters that every keyring takes: that of Windows has room for 2,560 bytes, and two for each letter."""
_NO_SUCH = (AttributeError, ImportError, OSError, TypeError, ValueError)
_UNUSABLE = (KeyringError, RuntimeError, configparser.Error)


def usable_keyring() -> KeyringBackend | None:
    """The keyring of the system; None where there is none, or one that keeps nothing. Raises AuthError where the user
    has named one that can't be had."""
    try:
        found = keyring.get_keyring()
    except (*_NO_SUCH, *_UNUSABLE) as error:
        why = escape(str(error))[:200]
        raise AuthError(f"PYTHON_KEYRING_BACKEND or keyringrc.cfg names no usable keyring: {why}") from None
    # The library's own measure of what is recommended: below are `fail`, `null` and files without encryption.
    return found if found.priority >= 1 else None


class KeyringTokens:
    """A `TokenStore` whose secrets are in a keyring, and the rest in a file in `folder`; there is also what a keyring
    has no room for."""

    def __init__(self, folder: Path, system: KeyringBackend) -> None:
        self._file = FileTokens(folder)
        self._system = system

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """What was put there last; None where somebody has taken it out of the keyring. Raises OutOfReach where that
        can't be used, and AuthError for what can't be read."""
        known = self._file.entries().get(key)
        if known is None or not known.get(IN_KEYRING):
            return known
        text = await self._ask(self._system.get_password, SERVICE, _name(key))
        if text is None:
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise AuthError("what the keyring of the system has of this login can't be read; log out and in again")
        return {**{name: value for name, value in known.items() if name != IN_KEYRING}, **found}

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Keeps `value`. Raises AuthError where the keyring or the file does not take it."""
        secrets = {name: value[name] for name in SECRETS if name in value}
        known = dict(value)
        if secrets and await self._is_taken(_name(key), json.dumps(secrets)):
            known = {name: one for name, one in value.items() if name not in secrets} | {IN_KEYRING: True}
        await self._file.put(key, known)

    async def delete(self, key: Key) -> None:
        """Forgets it. Raises as `put`."""
        known = self._file.entries().get(key)
        if known is not None and known.get(IN_KEYRING):
            await self._ask(self._forget, _name(key))
        await self._file.delete(key)

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Held by one at a time, whatever process it is in."""
        return self._file.lock(key)

    def entries(self) -> dict[Key, dict[str, Any]]:
        """All that is kept, without its secrets. Raises AuthError."""
        return self._file.entries()

    def _forget(self, name: str) -> None:
        try:
            self._system.delete_password(SERVICE, name)
        except PasswordDeleteError:  # somebody has taken it out
            return

    async def _is_taken(self, name: str, text: str) -> bool:
        """Whether the keyring has `text` now, or is too small. Raises OutOfReach where it can't be used."""
        try:
            await self._ask(self._system.set_password, SERVICE, name, text)
        except OutOfReach as error:
            # A keyring that takes nothing has failed; of one that is merely too small for this, the file takes
            # over.
            if len(text) <= MAX_SAFE or isinstance(error, _Closed):
                raise
            with suppress(OutOfReach):
                await self._ask(self._forget, name)  # it may have an older one
            return False
        return True

    async def _ask(self, what: Any, *how: str) -> Any:
        # A keyring is a plugin, and may raise anything: pywin32, D-Bus and others have errors of their own.
        asking = to_thread.run_sync(partial(what, *how))
        found: Any = (await asyncio.gather(asking, return_exceptions=True))[0]
        if isinstance(found, Exception):
            is_closed = isinstance(found, InitError | KeyringLocked | NoKeyringError)
            kind, why = _Closed if is_closed else OutOfReach, type(found).__name__
            raise kind(f"the keyring of the system can't be used: {why}")
        if isinstance(found, BaseException):
            raise found
        return found


class _Closed(OutOfReach):
    """It takes nothing, however short."""


def _name(key: Key) -> str:
    return " ".join(key)
