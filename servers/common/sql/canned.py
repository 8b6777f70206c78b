"""Reads canned queries from the files in the operator's directory.

A file has front matter in YAML between two lines of `---`, and then the SQL. Files are read again when they change.
While a file contains a mistake, its last valid query stays in use.
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

from shared.program.files.entries import open_unblocked
from shared.yaml import YamlError, read_yaml

from .errors import SqlError

log = logging.getLogger("servers.sql")

FindParameters = Callable[[str], Sequence[str]]
"""Finds the parameters of a statement, as they are written in it."""
Signature = tuple[int, int, int]
"""Modification time, size and inode of a file. A different signature means that the file was written or replaced."""

_MAX_BYTES = 1_000_000
"""Maximum size of a file in bytes."""
_FILE_FORM = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n(.*)", re.DOTALL | re.MULTILINE)
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_ADDED_PARAMETERS = frozenset({"max_rows", "cursor"})
"""Parameters that every query which only reads has in addition to its own."""
_KEY_TYPES = {"name": str, "description": str, "parameters": dict, "writable": bool, "database": str}
_PARAMETER_KEY_TYPES = {"type": str, "description": str, "default": object, "optional": bool}
TYPES: dict[str, type] = {"integer": int, "number": float, "string": str, "boolean": bool, "blob": str}
"""The Python type of each type of a parameter. A blob is passed as base64."""


class QueryParameter(NamedTuple):
    """A parameter of a canned query."""

    name: str
    type: str
    """One of `TYPES`."""
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
    match = _FILE_FORM.fullmatch(text.removeprefix("\ufeff"))
    if match is None:
        raise ValueError("it must begin with front matter enclosed by two `---` lines")
    try:
        # Line 1 of the file is ---.
        front_matter = read_yaml(match[1], what="the front matter", line=2)
    except YamlError as error:
        raise ValueError(f"{error.reason} (line {error.line})") from None
    if not isinstance(front_matter, dict):
        raise ValueError("the front matter is not a mapping")
    sql = match[2].strip()
    _require_types(front_matter, _KEY_TYPES, "the front matter")
    name, description = front_matter.get("name", stem), front_matter.get("description", "").strip()
    if _TOOL_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is not a valid tool name: it must have 1 to 128 of the characters A-Z a-z 0-9 _ . -"
        )
    if not description:
        raise ValueError("it has no description")
    parameters = tuple(_parse_parameter(*item) for item in front_matter.get("parameters", {}).items())
    writable = front_matter.get("writable", False)
    used_parameters = find_parameters(sql)
    declared, used_names = {item.name for item in parameters}, {parameter[1:] for parameter in used_parameters}
    if without_colon := [parameter for parameter in used_parameters if not parameter.startswith(":")]:
        raise ValueError(f"the SQL has the parameter {without_colon[0]}; write parameters as :name")
    if undeclared := used_names - declared:
        raise ValueError(f"the SQL has the parameter :{min(undeclared)}, which the front matter does not declare")
    if unused := declared - used_names:
        raise ValueError(f"the SQL has no :{min(unused)}")
    if not writable and (added := declared & _ADDED_PARAMETERS):
        raise ValueError(f"a parameter can't be called {min(added)!r}: every query has one with that name")
    return Definition(name, description, parameters, writable, front_matter.get("database"), sql)


def _require_types(mapping: dict[Any, Any], types: dict[str, type], subject: str) -> None:
    for key, value in mapping.items():
        if key not in types:
            raise ValueError(f"{subject} has {key!r}, which is not a known key (known: {', '.join(types)})")
        if not isinstance(value, types[key]):
            raise ValueError(f"{subject}: {key} is not a {types[key].__name__}")


def _parse_parameter(name: Any, properties: Any) -> QueryParameter:
    subject = f"the parameter {name!r}"
    if not isinstance(name, str) or _PARAMETER_NAME.fullmatch(name) is None:
        raise ValueError(f"{subject} has no name of letters, digits and _ that begins with a letter")
    if not isinstance(properties, dict):
        raise ValueError(f"{subject} is not a mapping with a type")
    _require_types(properties, _PARAMETER_KEY_TYPES, subject)
    type_name, default = properties.get("type"), properties.get("default")
    if type_name not in TYPES:
        raise ValueError(f"{subject} has no type (types: {', '.join(TYPES)})")
    # In Python a bool is an int, but not in JSON.
    has_type = isinstance(default, (int, float) if type_name == "number" else TYPES[type_name])
    has_type &= isinstance(default, bool) == (type_name == "boolean")
    if default is not None and not has_type:
        raise ValueError(f"{subject}: its default is not of type {type_name}")
    optional = default is not None or properties.get("optional", False)
    return QueryParameter(name, type_name, properties.get("description"), optional, default)


class _File(NamedTuple):
    signature: Signature
    last_valid: Definition | None
    """The last valid query of the file."""
    mistake: str | None
    """The mistake in the current contents; None if they are valid."""


class QueryFiles:
    """Reads the canned queries of a directory. Calls of `read` must not overlap.

    `check` must raise ValueError or SqlError for a query that can't be offered.
    """

    def __init__(
        self, directory: Path, check: Callable[[Definition], Awaitable[None]], find_parameters: FindParameters
    ) -> None:
        self._directory = directory
        self._check = check
        self._find_parameters = find_parameters
        self._files: dict[str, _File] = {}

    async def read(self) -> list[Definition]:
        """Read the changed files, log mistakes in them, and return the last valid query of each file, in the order of
        file names."""
        signatures = await to_thread.run_sync(lambda: dict(_find_signatures(self._directory)))
        for name in self._files.keys() - signatures.keys():
            del self._files[name]
        for name, signature in sorted(signatures.items()):
            previous = self._files.get(name)
            # Read a file with a mistake each time: the mistake may be a missing table that has been created since.
            if previous is None or previous.signature != signature or previous.mistake is not None:
                self._files[name] = await self._read_file(name, signature, previous)
        return [file.last_valid for _, file in sorted(self._files.items()) if file.last_valid is not None]

    async def _read_file(self, name: str, signature: Signature, previous: _File | None) -> _File:
        last_valid = None if previous is None else previous.last_valid
        try:
            text = await to_thread.run_sync(_read_text, self._directory / name)
            definition = parse_definition(text, Path(name).stem, self._find_parameters)
            others = (file.last_valid for other, file in self._files.items() if other != name)
            if definition.name in {other.name for other in others if other is not None}:
                raise ValueError(f"another file has a query called {definition.name!r}")
            await self._check(definition)
        except (ValueError, SqlError, OSError) as error:
            reason = error.line if isinstance(error, SqlError) else str(error)
            mistake = "it can't be read" if isinstance(error, OSError) else reason
            if previous is None or (previous.signature, previous.mistake) != (signature, mistake):
                consequence = "left out" if last_valid is None else "its last valid version stays in use"
                log.warning("--queries: %s: %s; %s", name, mistake, consequence)
            return _File(signature, last_valid, mistake)
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
