"""Canned queries, read from the files of the operator's directory.

A file has front matter in YAML between two lines of `---`, then the SQL. Files are read again when they change. A
file with a mistake keeps its last valid query.
"""

import logging
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from anyio import to_thread

from servers.common.sql.errors import SqlError
from shared.program.files.entries import open_unblocked
from shared.yaml import YamlError, read_yaml

log = logging.getLogger("servers.sql")

FindParameters = Callable[[str], Sequence[str]]
"""Finds the parameters of a statement, as they are written in it."""
Signature = tuple[int, int, int]
"""Size, modification time and inode of a file: a different one means that the file was written or replaced."""

_MAX_BYTES = 1_000_000
_FORM = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n(.*)", re.DOTALL | re.MULTILINE)
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_ADDED_PARAMETERS = frozenset({"max_rows", "cursor"})
"""Parameters that every reading query has in addition to its own."""
_KEYS = {"name": str, "description": str, "parameters": dict, "writable": bool, "database": str}
_PARAMETER_KEYS = {"type": str, "description": str, "default": object, "optional": bool}
TYPES: dict[str, type] = {"integer": int, "number": float, "string": str, "boolean": bool, "blob": str}
"""The parameter types and their Python types; a blob is base64."""


class QueryParameter(NamedTuple):
    """A parameter."""

    name: str
    type: str
    """integer, number, string, boolean, or blob, which is base64."""
    description: str | None
    optional: bool
    default: Any
    """The default value; None if it is NULL or not set."""


class Definition(NamedTuple):
    """A canned query."""

    name: str
    description: str
    parameters: tuple[QueryParameter, ...]
    writable: bool
    database: str | None
    sql: str


def parse_definition(text: str, stem: str, find_parameters: FindParameters) -> Definition:
    """Parse the `text` of a file into a query, named `stem` if the file gives no name.

    Raises ValueError with the reason.
    """
    match = _FORM.fullmatch(text.removeprefix("\ufeff"))
    if match is None:
        raise ValueError("it must begin with front matter enclosed by two `---` lines")
    try:
        # The line of --- precedes it.
        front = read_yaml(match[1], what="the front matter", line=2)
    except YamlError as error:
        raise ValueError(f"{error.reason} (line {error.line})") from None
    if not isinstance(front, dict):
        raise ValueError("the front matter is not a mapping")
    sql = match[2].strip()
    _require_kinds(front, _KEYS, "the front matter")
    name, description = front.get("name", stem), front.get("description", "").strip()
    if _TOOL.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is not a valid tool name: it must have 1 to 128 of the characters A-Z a-z 0-9 _ . -"
        )
    if not description:
        raise ValueError("it has no description")
    parameters = tuple(_parse_parameter(*item) for item in front.get("parameters", {}).items())
    writable = front.get("writable", False)
    _require_same_names(
        find_parameters(sql), {item.name for item in parameters}, frozenset() if writable else _ADDED_PARAMETERS
    )
    return Definition(name, description, parameters, writable, front.get("database"), sql)


def _require_kinds(mapping: dict[Any, Any], kinds: dict[str, type], where: str) -> None:
    for key, value in mapping.items():
        if key not in kinds:
            raise ValueError(f"{where} has {key!r}, which is not a known key (known: {', '.join(kinds)})")
        if not isinstance(value, kinds[key]):
            raise ValueError(f"{where}: {key} is not a {kinds[key].__name__}")


def _parse_parameter(name: Any, written: Any) -> QueryParameter:
    where = f"the parameter {name!r}"
    if not isinstance(name, str) or _PARAMETER.fullmatch(name) is None:
        raise ValueError(f"{where} has no name of letters, digits and _ that begins with a letter")
    if not isinstance(written, dict):
        raise ValueError(f"{where} is not a mapping with a type")
    _require_kinds(written, _PARAMETER_KEYS, where)
    kind, default = written.get("type"), written.get("default")
    if kind not in TYPES:
        raise ValueError(f"{where} has no type (types: {', '.join(TYPES)})")
    # In Python, unlike elsewhere, a bool is an int.
    fits = isinstance(default, (int, float) if kind == "number" else TYPES[kind])
    fits &= isinstance(default, bool) == (kind == "boolean")
    if default is not None and not fits:
        raise ValueError(f"{where}: its default is not of type {kind}")
    optional = default is not None or written.get("optional", False)
    return QueryParameter(name, kind, written.get("description"), optional, default)


def _require_same_names(used: Sequence[str], names: set[str], ours: frozenset[str]) -> None:
    odd = [parameter for parameter in used if not parameter.startswith(":")]
    if odd:
        raise ValueError(f"the SQL has the parameter {odd[0]}; write parameters as :name")
    missing = {parameter[1:] for parameter in used} - names
    if missing:
        raise ValueError(f"the SQL has the parameter :{min(missing)}, which the front matter does not declare")
    if names - {parameter[1:] for parameter in used}:
        raise ValueError(f"the SQL has no :{min(names - {parameter[1:] for parameter in used})}")
    if names & ours:
        raise ValueError(f"a parameter can't be called {min(names & ours)!r}: every query has one with that name")


class _File(NamedTuple):
    signature: Signature
    good: Definition | None
    """The last valid query of the file."""
    wrong: str | None
    """The mistake in the current contents; None if they are valid."""


class QueryFiles:
    """The canned queries of a directory. Calls of `look` must not overlap.

    `check` raises ValueError or SqlError for queries that can't be served.
    """

    def __init__(
        self, directory: Path, check: Callable[[Definition], Awaitable[None]], find_parameters: FindParameters
    ) -> None:
        self._directory = directory
        self._check = check
        self._find_parameters = find_parameters
        self._files: dict[str, _File] = {}

    async def look(self) -> list[Definition]:
        """Return the valid queries, or the last valid ones, by file name, and log mistakes."""
        signatures = await to_thread.run_sync(lambda: dict(_find_signatures(self._directory)))
        for name in self._files.keys() - signatures.keys():
            del self._files[name]
        for name, signature in sorted(signatures.items()):
            previous = self._files.get(name)
            # A file with a mistake is tried again each time, since the mistake may have been a missing table.
            if previous is None or previous.signature != signature or previous.wrong is not None:
                self._files[name] = await self._read(name, signature, previous)
        return [file.good for _, file in sorted(self._files.items()) if file.good is not None]

    async def _read(self, name: str, signature: Signature, previous: _File | None) -> _File:
        good = None if previous is None else previous.good
        try:
            text = await to_thread.run_sync(_read_text, self._directory / name)
            definition = parse_definition(text, Path(name).stem, self._find_parameters)
            others = (file.good for other, file in self._files.items() if other != name and file.good is not None)
            if definition.name in {other.name for other in others}:
                raise ValueError(f"another file has a query called {definition.name!r}")
            await self._check(definition)
        except (ValueError, SqlError, OSError) as error:
            reason = error.line if isinstance(error, SqlError) else str(error)
            wrong = "it can't be read" if isinstance(error, OSError) else reason
            if previous is None or (previous.signature, previous.wrong) != (signature, wrong):
                consequence = "left out" if good is None else "its last valid version stays in use"
                log.warning("--queries: %s: %s; %s", name, wrong, consequence)
            return _File(signature, good, wrong)
        return _File(signature, definition, None)


def _find_signatures(directory: Path) -> Iterator[tuple[str, Signature]]:
    paths: list[Path] = []
    with suppress(OSError):  # the directory may be missing for a moment
        paths += directory.glob("*.sql")
    for path in paths:
        with suppress(OSError):  # deleted in the meantime, or a dangling link
            status = path.stat()
            yield path.name, (status.st_mtime_ns, status.st_size, status.st_ino)


def _read_text(path: Path) -> str:
    with open(path, "rb", opener=open_unblocked) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
