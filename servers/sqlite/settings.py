"""Settings of the SQLite server."""

import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from servers.common.sql import settings
from servers.common.sql.settings import Directory, SqlSettings, StatementLimits
from shared.program.settings.options import expand_home, option, positional

from .engine.database import MEMORY, Source
from .engine.deadline import Limits
from .engine.extensions import parse_extension
from .engine.hiding import parse_hidden
from .engine.opening import ConnectionOptions

_MODES = {"ro": False, "rw": True}
"""For each access mode in `--db`, True if the database is writable."""
_MAX_ATTACHED = 10
"""Maximum number of databases that SQLite attaches to another one (https://sqlite.org/limits.html, 11)."""
_RESERVED_NAMES = {"main", "temp"}
"""Names of schemas that SQLite itself uses."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SCHEME = re.compile(r"(?P<url>[a-z][a-z0-9+.-]{0,30})://|(?:jdbc:)?(?P<plain>file|sqlite3?):", re.IGNORECASE)


def _check_hidden(names: list[str]) -> list[str]:
    for name in names:
        parse_hidden(name)
    return names


_HiddenNames = Annotated[list[str], AfterValidator(_check_hidden)]


class _Databases(BaseModel):
    databases: list[Path] = positional(
        "database files; each database is named after its file, without the extension", "DATABASE"
    )
    db: list[str] = option(
        [], "database with its own name or permission: NAME=PATH[:ro|:rw]", "NAME=PATH", paths_after="="
    )
    demo: bool = Field(False, description="create a sample database called demo, deleted at exit")
    allow_write: bool = Field(False, description="allow changes, in every database without :ro")
    hide: _HiddenNames = option(
        [], "hide TABLE or TABLE.COLUMN from everyone; TABLE.COLUMN=EXPRESSION shows the expression instead", "NAME"
    )
    extension: list[str] = option(
        [], "SQLite extension to load: PATH, or PATH=ENTRY with its entry point", "PATH", paths_after=""
    )
    attach: bool = Field(False, description="let a statement on one database also read the others, as NAME.TABLE")
    create: bool = Field(False, description="create database files that do not exist")

    @field_validator("databases", mode="before")
    @classmethod
    def _read_locations(cls, databases: Any) -> Any:
        # An empty path, as from an unset shell variable, would mean the working directory.
        if isinstance(databases, list) and "" in databases:
            raise ValueError("a database name is empty")
        if not isinstance(databases, list):
            return databases
        return [read_location(path) if isinstance(path, str) else path for path in databases]

    @field_validator("db")
    @classmethod
    def _check_assignments(cls, assignments: list[str]) -> list[str]:
        for assignment in assignments:
            name, _, path = assignment.partition("=")
            if not path or _NAME.fullmatch(name) is None:
                raise ValueError(f"{assignment!r} is not NAME=PATH with a name of letters, digits, '_', '.' and '-'")
            read_location(path)
        return assignments


class _Memory(BaseModel):
    max_memory: int = Field(512, ge=16, description="memory limit of SQLite in mebibytes, for example for sorting")


class Narrowing(settings.Narrowing):
    """What the operator allows one principal: some of the databases, a directory, and what is hidden in addition."""

    hide: _HiddenNames = Field(
        [], description="tables and columns hidden from the principal, in addition to those of --hide"
    )


class Settings(SqlSettings, _Memory, StatementLimits, _Databases):
    """All settings of the SQLite server."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing
    missing_hint: ClassVar[str] = "specify at least one DATABASE, or --demo"
    naming_hint: ClassVar[str] = "name them with --db NAME=PATH"

    files: Directory = option(None, "directory for CSV files to import, and for backups", "DIR")

    @model_validator(mode="after")
    def _check_attaching(self) -> Self:
        if not self.attach:
            return self
        if self.hide:
            raise ValueError("--attach and --hide can't be combined: hidden names apply to only one database")
        if len(self.sources) > _MAX_ATTACHED + 1:
            raise ValueError(f"--attach takes {_MAX_ATTACHED + 1} databases at most")
        for source in self.sources:
            if source.name.lower() in _RESERVED_NAMES:
                raise ValueError(f"with --attach no database can be called {source.name!r}; {self.naming_hint}")
        if len({source.name.lower() for source in self.sources}) < len(self.sources):
            raise ValueError(
                f"with --attach two databases can't have names that differ only in case; {self.naming_hint}"
            )
        return self

    @cached_property
    def sources(self) -> list[Source]:
        """The databases that this server opens, with their access modes."""
        sources = []
        for path in self.databases:
            name = "memory" if str(path) == MEMORY else re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:64] or "data"
            sources.append(Source(name, expand_home(path), self.allow_write))
        for assignment in self.db:
            name, _, location = assignment.partition("=")
            path_before_mode, _, mode = location.rpartition(":")
            if mode in _MODES and path_before_mode:
                location, writable = path_before_mode, _MODES[mode]
            else:
                writable = self.allow_write
            sources.append(Source(name, expand_home(read_location(location)), writable))
        if self.demo:
            sources.append(Source("demo", Path("demo.db"), self.allow_write, sample=True))
        return [source for source in sources if self._names is None or source.name in self._names]

    def narrow(self, narrowing: settings.Narrowing) -> Self:
        """Return a copy of these settings for one principal, limited by `narrowing`. Raises ValueError."""
        narrowed = super().narrow(narrowing)
        narrowed.hide = [*self.hide, *getattr(narrowing, "hide", ())]
        if narrowed.attach and narrowed.hide:
            raise ValueError("hide: --attach lets statements read what would be hidden")
        return narrowed

    @property
    def connection_options(self) -> ConnectionOptions:
        """The options of every connection."""
        loaded = [parse_extension(extension) for extension in self.extension]
        extensions = [extension._replace(path=expand_home(extension.path).absolute()) for extension in loaded]
        return ConnectionOptions(tuple(map(parse_hidden, self.hide)), tuple(extensions))

    @property
    def limits(self) -> Limits:
        """The limits of one statement."""
        return Limits(self.timeout, self.busy_timeout, self.max_value, self.max_memory)

    @property
    def writes(self) -> bool:
        """True if at least one database may be changed. A database in memory is always writable."""
        return super().writes or any(str(source.path) == MEMORY for source in self.sources)


def read_location(location: str) -> str:
    """Return the path of a database, given the path, or a URL as other programs write it.

    A path after `sqlite://` begins after one more slash, as in SQLAlchemy: `sqlite:///shop.db` is `shop.db`, and
    `sqlite:////shop.db` is `/shop.db`. After `sqlite:`, as in PDO and JDBC, it begins at once. Raises ValueError for
    a URL of another kind, or with parameters.
    """
    text = location.strip().strip("'\"")
    match = _SCHEME.match(text)
    if match is None:
        return location
    scheme = (match["url"] or match["plain"]).lower().partition("+")[0]
    if scheme in ("postgres", "postgresql"):
        raise ValueError("a PostgreSQL URL is for the PostgreSQL server: mcp-bundle-postgres")
    if scheme not in ("file", "sqlite", "sqlite3"):
        raise ValueError(f"a URL with {scheme} is not an SQLite database; specify the path of a file")
    url_path, _, query = text[match.end() :].partition("?")
    if query:
        name = query.partition("=")[0][:40]
        raise ValueError(f"a URL has no parameter {name!r} here; a permission is written as --db NAME=PATH:ro")
    # file:///shop.db has an empty host before its path.
    path = unquote(url_path.removeprefix("/") if match["url"] and scheme != "file" else url_path)
    return MEMORY if path in ("", MEMORY) and scheme != "file" else path
