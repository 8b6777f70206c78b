"""What the operator of the SQLite server may set."""

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, Field, PrivateAttr, field_validator, model_validator

from servers.common.sql.settings import Directory, Narrowing, rows_unasked
from shared.program.settings.options import expand_home, option, positional

from .engine.database import MEMORY, Source
from .engine.deadline import Limits

_MODES = {"ro": False, "rw": True}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Settings(BaseModel):
    """The databases, whether they may be changed, and what one statement may cost."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing
    _names: frozenset[str] | None = PrivateAttr(None)

    databases: list[Path] = positional("database files; each is named by its file name without ending", "DATABASE")
    db: list[str] = option(
        [], "database with a name or a permission of its own: NAME=PATH[:ro|:rw]", "NAME=PATH", paths_after="="
    )
    demo: bool = Field(False, description="make a small shop called demo for first steps, which ends with the server")
    allow_write: bool = Field(False, description="allow changes, in every database without :ro")
    create: bool = Field(False, description="make database files that do not exist")
    timeout: float = Field(30, gt=0, le=3_600, description="seconds until a statement is stopped that is no task")
    busy_timeout: float = Field(5, ge=0, le=3_600, description="seconds to wait for the lock of another process")
    max_rows: int = Field(10_000, ge=1, description="rows that one answer may have")
    max_page: int = Field(100_000, ge=2_000, le=900_000, description="bytes of rows that one answer may have")
    max_cell: int = Field(10_000, ge=100, description="bytes of one value that an answer shows")
    max_value: int = Field(16_000_000, ge=1_000, description="bytes that one value may have in a statement")
    max_memory: int = Field(512, ge=16, description="mebibytes that SQLite may hold, to sort and group for example")
    confirm: bool = Field(False, description="ask the user before anything is changed")
    confirm_rows: int | None = Field(
        None,
        ge=0,
        description="ask the user before the schema or more rows than this are changed",
        json_schema_extra={"metavar": "ROWS"},
    )
    files: Directory = option(None, "directory of CSV files to import, and of the backups that are made", "DIR")
    readers: int = Field(8, ge=1, le=64, description="queries that may run at once, for each database")
    queries: Directory = option(None, "directory of SQL files that become tools", "DIR")
    max_export: int = Field(100_000_000, ge=1_000, description="bytes that one export may have")

    @field_validator("databases", mode="before")
    @classmethod
    def _are_named(cls, databases: Any) -> Any:
        # A path that is empty, as that of an unset shell variable, would mean the working directory.
        if isinstance(databases, list) and "" in databases:
            raise ValueError("the name of a database is empty")
        return databases

    @field_validator("db")
    @classmethod
    def _are_assigned(cls, given: list[str]) -> list[str]:
        for one in given:
            name, _, path = one.partition("=")
            if not path or _NAME.fullmatch(name) is None:
                raise ValueError(f"{one!r} is not NAME=PATH with a name of letters, digits, '_', '.' and '-'")
        return given

    @model_validator(mode="after")
    def _are_there(self) -> Self:
        if not self.sources:
            raise ValueError("give at least one DATABASE, or --demo")
        names = [source.name for source in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two databases are called {name!r}; name them with --db NAME=PATH")
        return self

    @cached_property
    def sources(self) -> list[Source]:
        """Each database, and whether it may be changed."""
        plain = [Source(_find_name(path), expand_home(path), self.allow_write) for path in self.databases]
        sample = [Source("demo", Path("demo.db"), self.allow_write, sample=True)] if self.demo else []
        found = plain + [_parse_source(one, self.allow_write) for one in self.db] + sample
        return [one for one in found if self._names is None or one.name in self._names]

    def narrowed(self, narrowing: Narrowing) -> Self:
        """These settings for who has these databases alone, and what of the directory of files it is given. Raises
        ValueError for what is not here."""
        known = [source.name for source in self.sources]
        own = self.model_copy(update={"files": narrowing.place_files(known, self.files)})
        own.keep_to(narrowing.databases)
        return own

    def keep_to(self, names: Iterable[str]) -> None:
        """Has the databases of these names be all that there are."""
        self._names = frozenset(names)
        self.__dict__.pop("sources", None)

    @property
    def limits(self) -> Limits:
        """What one statement may cost."""
        return Limits(self.timeout, self.busy_timeout, self.max_value, self.max_memory)

    @property
    def unasked_rows(self) -> int | None:
        """How many rows may change without asking the user; None where nobody needs to be asked."""
        return rows_unasked(self.confirm, self.confirm_rows)

    @property
    def writes(self) -> bool:
        """Whether any database may be changed."""
        return any(source.writable or str(source.path) == MEMORY for source in self.sources)


def _find_name(path: Path) -> str:
    """The name of a database by its path."""
    return "memory" if str(path) == MEMORY else re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:64] or "data"


def _parse_source(given: str, writable: bool) -> Source:
    name, _, written = given.partition("=")
    path, _, mode = written.rpartition(":")
    if mode in _MODES and path:
        return Source(name, expand_home(path), _MODES[mode])
    return Source(name, expand_home(written), writable)
