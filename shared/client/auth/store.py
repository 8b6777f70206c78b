"""Tokens in a file that its owner alone can read, for all programs of a user.

The file is replaced as a whole, under a lock over processes; who obtains or refreshes a token holds a lock of its own
meanwhile, so that a second process finds the result of the first.
"""

import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import filelock

from ...errors import AuthError
from ...program.files.atomic import prepared, put_in_place
from ...program.files.entries import current, entry_at
from .tokens import Key

IN_KEYRING = "in_keyring"
"""Says of an entry that its secrets are in the keyring of the system."""

POLL_SECONDS = 0.05
"""Between two looks at a lock that another process holds."""
WRITE_SECONDS = 10.0
"""How long another process may take to write the file."""
_FORMAT = 1

Entries = dict[str, dict[str, dict[str, Any]]]


class OutOfReach(AuthError):
    """Tokens are kept, and can't be had where this runs, or now."""


class FileTokens:
    """A `TokenStore` in `folder`, which is made where it is not there."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tokens.json"
        self._folder = folder

    async def get(self, key: Key) -> Mapping[str, Any] | None:
        """What was put there last. Raises AuthError for a file that can't be read, and OutOfReach for tokens that a
        `KeyringTokens` has put there."""
        found = self.entries().get(key)
        if found is None or not found.get(IN_KEYRING):
            return found
        if not key[1]:
            return None  # as whom an issuer knows the client: it is told anew
        raise OutOfReach(
            "the tokens of this login are in the keyring of the system, which is not there now: go where it is, or "
            "log in again"
        )

    async def put(self, key: Key, value: Mapping[str, Any]) -> None:
        """Keeps `value`. Raises AuthError where it can't be written; the file stays as it was then."""
        with self._changing() as entries:
            entries.setdefault(key[0], {})[key[1]] = dict(value)

    async def delete(self, key: Key) -> None:
        """Forgets it. Raises as `put`."""
        if key not in self.entries():
            return
        with self._changing() as entries:
            entries.get(key[0], {}).pop(key[1], None)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Held by one at a time, whatever process it is in. Raises AuthError where no lock can be had."""
        # A URL is no name of a file: it has slashes, and letters that Windows does not take.
        digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:32]
        with self._told():
            self._make_folder()
            held = filelock.FileLock(self._folder / f"{digest}.lock", timeout=0, mode=0o600)
        while not self._acquired(held):  # noqa: ASYNC110 - nothing tells that another process has let it go
            await anyio.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            held.release()

    def entries(self) -> dict[Key, dict[str, Any]]:
        """All that is kept. Raises AuthError for a file that can't be read; one that is damaged is set aside."""
        with self._told():
            found = self._read()
        if found is None:
            with self._locked():
                found = self._whole()
        return {(issuer, of): value for issuer, values in found.items() for of, value in values.items()}

    def _acquired(self, lock: filelock.BaseFileLock) -> bool:
        with self._told():
            try:
                lock.acquire()
            except filelock.Timeout:
                return False
        return True

    @contextmanager
    def _changing(self) -> Iterator[Entries]:
        with self._locked():
            entries = self._whole()
            yield entries
            left = {issuer: values for issuer, values in entries.items() if values}
            text = json.dumps({"format": _FORMAT, "entries": left}, indent=1).encode()
            entry = entry_at(self.path.resolve())
            found = current(entry)
            if found is not None and found.st_mode & 0o077 and os.name != "nt":
                # The new file takes over the mode, which is not ours where somebody has copied this one or opened it.
                self.path.chmod(0o600)
                found = current(entry)
            put_in_place(prepared(entry, text, found, mode=0o600), entry, found)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._told():
            self._make_folder()
            with filelock.FileLock(self._folder / "tokens.lock", timeout=WRITE_SECONDS, mode=0o600):
                yield

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (OSError, filelock.Timeout) as error:
            why = getattr(error, "strerror", None) or "another program has it"
            raise AuthError(f"tokens can't be kept in {self.path}: {why}") from None

    def _make_folder(self) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def _read(self) -> Entries | None:
        """What the file has; None where it is damaged."""
        try:
            return _parsed(self.path.read_bytes())
        except FileNotFoundError:
            return {}

    def _whole(self) -> Entries:
        """The same for whoever has the lock, or another program could have put a good file in place meanwhile. Raises
        AuthError for one that is damaged, and sets it aside."""
        found = self._read()
        if found is not None:
            return found
        # Not deleted: a program of a later version may have written it.
        aside = self.path.with_suffix(".damaged")
        self.path.replace(aside)
        raise AuthError(f"{self.path} is damaged, and was set aside as {aside.name}; log in again")


def _parsed(text: bytes) -> Entries | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    entries = document.get("entries") if isinstance(document, dict) else None
    # Another format is another version's: to write over it would lose what that has kept.
    if not isinstance(entries, dict) or document.get("format") != _FORMAT:
        return None
    is_whole = all(
        isinstance(values, dict) and all(isinstance(value, dict) for value in values.values())
        for values in entries.values()
    )
    return entries if is_whole else None
