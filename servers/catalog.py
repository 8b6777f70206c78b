"""Typed records of `catalog.yaml`: which servers there are, how each is started, what it offers and what it needs.

The values in a catalog are used as they are: nothing in them is expanded or passed to a shell. `catalog.schema.json`
next to this file is the JSON Schema of these records, for editors.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from shared.program.settings.command_line import Spelling, spellings
from shared.program.settings.options import describe_value_error
from shared.yaml import YamlError, read_yaml

PACKAGE = __package__
"""The package of these servers: `servers` in a checkout, `mcp_server_bundle.servers` in an installed wheel."""

_SERVERS = Path(__file__).resolve().parent
CATALOG = next(path for path in (_SERVERS / "catalog.yaml", _SERVERS.parent / "catalog.yaml") if path.exists())
"""The bundle's own catalog: in `servers` in an installed wheel, in the directory above it in a checkout."""

MAX_CATALOG = 1_000_000
"""Maximum size of a catalog, in bytes."""

# A value that becomes part of a command or a path must be a plain name, so that it can't be mistaken for an option.
_NAME = re.compile(r"^[a-z][a-z0-9-]{0,63}$")
Name = Annotated[str, StringConstraints(pattern=_NAME.pattern)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Module = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
Script = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Option = Annotated[str, StringConstraints(pattern=r"^--[a-z][a-z0-9-]*$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$")]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Argument(_Record):
    """One argument of a server's command line. If it has no `option`, it is the positional arguments."""

    name: Key
    type: Literal["string", "integer", "number", "boolean", "file", "directory"]
    description: Line
    metavar: Line | None = None
    """The placeholder for the value in a usage line."""
    option: Option | None = None
    environment: Variable | None = None
    """The environment variable that sets the same value."""
    repeated: bool = False
    """True if the option may be repeated, each time with one value."""
    required: bool = False
    default: bool | int | float | str | list[int] | None = None
    choices: list[str] = []
    secret: bool = False
    """True if the value must not be shown in logs, on screens or in links."""


class Tools(_Record):
    """The names of the tools: those that are always there, and those that need permission to write."""

    read: list[str] = []
    write: list[str] = []


class Permissions(_Record):
    """What a server uses on its machine."""

    paths: list[str] = []
    """The arguments that name the files and directories that it opens. It opens no others."""
    network: Literal["none", "public", "named", "any"] = "none"
    """The hosts to which it connects by default: none, hosts on the public internet, those named in its settings, or
    any."""
    writing: Option | None = None
    """The option that allows it to make changes; None if it never makes any."""


class Entry(_Record):
    """One server of a catalog."""

    name: Name
    title: Line
    version: Line
    summary: Annotated[Line, StringConstraints(max_length=100)]
    """The purpose of the server in one sentence."""
    description: Line
    """The purpose and behavior of the server in a few sentences."""
    category: Literal["files", "data", "web", "prompts", "testing"]
    icon: str | None = None
    """A picture, preferably a PNG file of 512 by 512 pixels: its URL, or its path relative to the catalog's
    directory."""
    module: Module
    """The module that is run with `python -m`."""
    script: Script | None = None
    """The console script that starts it, if there is one."""
    extra: str | None = None
    """The extra of the package that installs the libraries that only this server needs."""
    transports: list[Literal["stdio", "http"]] = Field(min_length=1)
    arguments: list[Argument] = []
    permissions: Permissions = Permissions()
    tools: Tools = Tools()
    scopes: dict[str, list[str]] = {}
    """The tools that require each scope by default, by scope."""
    resources: list[str] = []
    """The URIs of the resources that it always has."""
    resource_templates: list[str] = []
    prompts: list[str] = []
    documentation: str | None = None
    """The documentation: its URL, or its path relative to the catalog's directory."""
    image: str | None = None
    """The name of the container image."""
    license: str | None = None
    """An SPDX license expression."""

    def spellings(self) -> dict[str, Spelling]:
        """Return all spellings of the options on a command line, such as a short one, by their text."""
        named = [(argument.option, argument) for argument in self.arguments if argument.option is not None]
        return {
            spelling: spelling_of
            for option, argument in named
            for spelling, spelling_of in spellings(
                option, option, is_switch=argument.type == "boolean", choices=argument.choices
            ).items()
        }


class Catalog(_Record):
    """The servers of a catalog."""

    servers: list[Entry]

    def entry(self, name: str) -> Entry:
        """Return the server called `name`. Raises ValueError, which lists the existing names, if there is none."""
        for entry in self.servers:
            if entry.name == name:
                return entry
        names = ", ".join(entry.name for entry in self.servers)
        raise ValueError(f"there is no server {name!r} in the catalog; available: {names}")


def load_catalog(path: Path = CATALOG) -> Catalog:
    """Read the catalog in the file at `path`. Paths in it become absolute.

    Raises ValueError with a one-line message for a file that can't be read or is not a catalog.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CATALOG + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if len(text) > MAX_CATALOG:
        raise ValueError(f"{path}: a catalog may have at most {MAX_CATALOG} bytes")
    document: Any = None
    try:
        document = read_yaml(text.decode("utf-8-sig"))
        catalog = Catalog.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        reason = describe_value_error(first["type"], first["msg"])
        raise ValueError(
            ": ".join(filter(None, [str(path), _format_location(document, first["loc"]), reason]))
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not valid UTF-8") from None
    except YamlError as error:
        raise ValueError(f"{path}: {error}") from None
    names = [entry.name for entry in catalog.servers]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path}: two servers are named {name!r}")
    # In a wheel, the bundle's own catalog is one directory deeper than in a checkout, but the files that it names are
    # not.
    directory = _SERVERS.parent if path == CATALOG else path.absolute().parent
    package_prefix = PACKAGE.removesuffix("servers") if path == CATALOG else ""
    servers = []
    for entry in catalog.servers:
        named = {"icon": entry.icon, "documentation": entry.documentation}
        absolute_paths = {key: str(directory / name) for key, name in named.items() if name and "://" not in name}
        servers.append(entry.model_copy(update={**absolute_paths, "module": package_prefix + entry.module}))
    return Catalog(servers=servers)


def _format_location(document: Any, location: Sequence[int | str]) -> str:
    """Return the keys that lead to `location`, joined by dots. An entry of a list is identified by its name, or, if
    it has none, by its position, counted from 1."""
    keys: list[str] = []
    value = document
    for part in location:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):  # a field that is missing
            value = None
        name = value.get("name") if isinstance(part, int) and isinstance(value, dict) else None
        is_name = isinstance(name, str) and _NAME.fullmatch(name)
        keys.append(str(name if is_name else part + 1 if isinstance(part, int) else part))
    return ".".join(keys)


def catalog_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a catalog."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Catalog.model_json_schema()}
