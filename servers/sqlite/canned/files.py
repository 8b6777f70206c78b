"""The files of canned queries: read when they change, and left as they were while they are wrong."""

import logging
import os
import sqlite3
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from servers.sqlite.canned.definitions import Definition, defined
from servers.sqlite.engine.limits import Stop, patiently
from servers.sqlite.errors import SqliteError
from shared.kit.rooted.entries import open_unblocked

__all__ = ["Files", "compiles"]

log = logging.getLogger("servers.sqlite")

_MOST_BYTES = 1_000_000

Signature = tuple[int, int, int]
"""Another one says that a file was written or replaced."""


class _File(NamedTuple):
    signature: Signature
    good: Definition | None
    """What it last had that was right."""
    wrong: str | None
    """What is wrong with what it has now."""


class Files:
    """The canned queries of a directory. Nobody may call `look` while it is under way.

    `check` raises ValueError or SqliteError for what can't be served, besides what is no query.
    """

    def __init__(self, directory: Path, check: Callable[[Definition], Awaitable[None]]) -> None:
        self._directory = directory
        self._check = check
        self._files: dict[str, _File] = {}

    async def look(self) -> list[Definition]:
        """The queries that are right, or were, in the order of their files' names; says in the log what is wrong.

        What is wrong is tried again each time: it may be a table that was missing.
        """
        found = await to_thread.run_sync(lambda: dict(_signatures(self._directory)))
        for name in self._files.keys() - found.keys():
            del self._files[name]
        for name, signature in sorted(found.items()):
            known = self._files.get(name)
            if known is None or known.signature != signature or known.wrong is not None:
                self._files[name] = await self._read(name, signature, known)
        return [one.good for _, one in sorted(self._files.items()) if one.good is not None]

    async def _read(self, name: str, signature: Signature, known: _File | None) -> _File:
        good = None if known is None else known.good
        try:
            definition = defined(await to_thread.run_sync(_text, self._directory / name), Path(name).stem)
            others = (one.good for other, one in self._files.items() if other != name and one.good is not None)
            if definition.name in {other.name for other in others}:
                raise ValueError(f"another file has a query called {definition.name!r}")
            await self._check(definition)
        except (ValueError, SqliteError, OSError) as error:
            said = error.line if isinstance(error, SqliteError) else str(error)
            wrong = "it can't be read" if isinstance(error, OSError) else said
            if known is None or (known.signature, known.wrong) != (signature, wrong):
                kept = "left out" if good is None else "what it had before stays"
                log.warning("--queries: %s: %s; %s", name, wrong, kept)
            return _File(signature, good, wrong)
        return _File(signature, definition, None)


def compiles(sql: str, connection: sqlite3.Connection, stop: Stop) -> None:
    """Raises what running the statement would raise before it begins; does not run it."""
    patiently(stop, partial(connection, sql))


def _signatures(directory: Path) -> Iterator[tuple[str, Signature]]:
    for path in _found(directory):
        with suppress(OSError):  # gone in between, or a link to nothing
            status = path.stat()
            yield path.name, (status.st_mtime_ns, status.st_size, status.st_ino)


def _found(directory: Path) -> list[Path]:
    try:
        return [*directory.glob("*.sql")]
    except OSError:  # the directory may be gone for a moment
        return []


def _text(path: Path) -> str:
    with open(path, "rb", opener=open_unblocked) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
