"""Stores tokens in a file that only its owner can read, and that all programs of a user share.

Each change replaces the whole file, under a lock that all processes share. While a process obtains or refreshes a
token, it also holds the lock of that login, so that a second process uses the result of the first.
"""

import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import filelock

from ...errors import AuthError
from ...program.files.atomic import prepare_replacement, put_in_place
from ...program.files.entries import entry_at, stat_entry
from .tokens import Key

IN_KEYRING = "in_keyring"
"""Marks an entry whose secrets are in the system keyring."""

POLL_SECONDS = 0.05
"""Seconds between two attempts to acquire a lock that another process holds."""
WRITE_SECONDS = 10.0
"""Maximum number of seconds to wait while another process writes the file."""
_FORMAT = 1

Entries = dict[str, dict[str, dict[str, Any]]]
"""Stored values by issuer and resource."""


class TokensUnavailable(AuthError):
    """Raised if tokens are stored, but are not available in this environment or at the moment."""


class FileTokens:
    """A `TokenStore` in `folder`, which is created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tokens.json"
        self._folder = folder

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """Return the stored value. Raises AuthError for a file that can't be read, and TokensUnavailable for tokens
        that a `KeyringTokens` has stored."""
        entry = self.entries().get(key)
        if entry is None or not entry.get(IN_KEYRING):
            return entry
        if not key[1]:
            return None  # the registration of a client, which can be repeated
        raise TokensUnavailable(
            "the tokens of this login are in the system keyring, which is not available here: run the command where "
            "it is available, or log in again"
        )

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Store `value`. Raises AuthError if the file can't be written; it is then unchanged."""
        with self._change() as entries:
            entries.setdefault(key[0], {})[key[1]] = dict(value)

    async def delete(self, key: Key) -> None:
        """Delete the value. Raises the same errors as `put`."""
        if key not in self.entries():
            return
        with self._change() as entries:
            entries.get(key[0], {}).pop(key[1], None)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Hold the lock of `key`, which only one holder, in any process, can acquire at a time. Raises AuthError if
        no lock is available."""
        # The name is a digest because a URL is not a valid file name: it has slashes, and characters that Windows
        # does not allow.
        digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:32]
        with self._convert_errors():
            self._make_folder()
            file_lock = filelock.FileLock(self._folder / f"{digest}.lock", timeout=0, mode=0o600)
        while True:
            with self._convert_errors(), suppress(filelock.Timeout):
                file_lock.acquire()
                break
            await anyio.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            file_lock.release()

    def entries(self) -> dict[Key, dict[str, Any]]:
        """Return all stored values. Raises AuthError for an unreadable file; a damaged file is also renamed."""
        with self._convert_errors():
            contents = self._read()
        if contents is None:
            with self._lock_file():
                contents = self._require_entries()
        return {
            (issuer, resource): value for issuer, values in contents.items() for resource, value in values.items()
        }

    @contextmanager
    def _change(self) -> Iterator[Entries]:
        with self._lock_file():
            entries = self._require_entries()
            yield entries
            non_empty = {issuer: values for issuer, values in entries.items() if values}
            text = json.dumps({"format": _FORMAT, "entries": non_empty}, indent=1).encode()
            entry = entry_at(self.path.resolve())
            status = stat_entry(entry)
            if status is not None and status.st_mode & 0o077 and os.name != "nt":
                # The replacement gets the mode of this file, so the mode is corrected first if others may read the
                # file.
                self.path.chmod(0o600)
                status = stat_entry(entry)
            put_in_place(prepare_replacement(entry, text, status, mode=0o600), entry, status)

    @contextmanager
    def _lock_file(self) -> Iterator[None]:
        with self._convert_errors():
            self._make_folder()
            with filelock.FileLock(self._folder / "tokens.lock", timeout=WRITE_SECONDS, mode=0o600):
                yield

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, filelock.Timeout) as error:
            reason = getattr(error, "strerror", None) or "another program has locked it"
            raise AuthError(f"tokens can't be stored in {self.path}: {reason}") from None

    def _make_folder(self) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def _read(self) -> Entries | None:
        """Return the contents of the file; None if it is damaged."""
        try:
            document = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError):
            return None
        entries = document.get("entries") if isinstance(document, dict) else None
        # A file in another format belongs to another version of this program: overwriting it would lose that
        # version's data.
        if not isinstance(entries, dict) or document.get("format") != _FORMAT:
            return None
        is_valid = all(
            isinstance(values, dict) and all(isinstance(value, dict) for value in values.values())
            for values in entries.values()
        )
        return entries if is_valid else None

    def _require_entries(self) -> Entries:
        """Return the contents of the file. If it is damaged, rename it, and raise AuthError. The lock must be held,
        because another program could otherwise replace the file between the two steps."""
        entries = self._read()
        if entries is not None:
            return entries
        # The file is not deleted, because a later version of this program may have written it.
        damaged_path = self.path.with_suffix(".damaged")
        self.path.replace(damaged_path)
        raise AuthError(f"{self.path} was damaged, and has been renamed to {damaged_path.name}; log in again")
