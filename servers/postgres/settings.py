"""What the operator of the PostgreSQL server may set."""

from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from servers.common.sql.settings import Directory, Narrowing, rows_unasked
from shared.program.settings.options import option

from .engine.deadline import Limits
from .engine.target import Target, parse_target


class Settings(BaseModel):
    """The databases, whether they may be changed, and what one statement may cost."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing
    _names: frozenset[str] | None = PrivateAttr(None)

    databases: list[str] = Field(
        [],
        repr=False,  # there may be passwords in them
        description="databases: [NAME=]postgresql://... or [NAME=]service=NAME, with :ro or :rw after it",
        json_schema_extra={"positional": "URL", "required": True},
    )
    allow_write: bool = Field(False, description="allow changes, in every database without :ro")
    allow_privileged: bool = Field(
        False, description="take roles that may read files, run programs or end sessions of others, as superusers may"
    )
    watch_triggers: bool = Field(
        False, description="make triggers that tell of changes, in the databases that may be changed"
    )
    timeout: float = Field(30, gt=0, le=3_600, description="seconds until a statement is stopped that is no task")
    busy_timeout: float = Field(5, ge=0, le=3_600, description="seconds to wait for the lock of another session")
    max_rows: int = Field(10_000, ge=1, description="rows that one answer may have")
    max_page: int = Field(100_000, ge=2_000, le=900_000, description="bytes of rows that one answer may have")
    max_cell: int = Field(10_000, ge=100, description="bytes of one value that an answer shows")
    max_value: int = Field(16_000_000, ge=1_000, description="bytes that one row may have on its way")
    confirm: bool = Field(False, description="ask the user before anything is changed")
    confirm_rows: int | None = Field(
        None,
        ge=0,
        description="ask the user before the schema or more rows than this are changed",
        json_schema_extra={"metavar": "ROWS"},
    )
    files: Directory = option(None, "directory of CSV files to import", "DIR")
    readers: int = Field(8, ge=1, le=64, description="queries that may run at once, for each database")
    queries: Directory = option(None, "directory of SQL files that become tools", "DIR")
    max_export: int = Field(100_000_000, ge=1_000, description="bytes that one export may have")

    @model_validator(mode="after")
    def _are_there(self) -> Self:
        if not self.targets:
            raise ValueError("give at least one URL of a database")
        names = [target.name for target in self.targets]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two databases are called {name!r}; name them: NAME=postgresql://...")
        return self

    @cached_property
    def targets(self) -> list[Target]:
        """Each database, and whether it may be changed."""
        found = [parse_target(one, self.allow_write) for one in self.databases]
        return [one for one in found if self._names is None or one.name in self._names]

    def narrowed(self, narrowing: Narrowing) -> Self:
        """These settings for who has these databases alone, and what of the directory of files it is given. Raises
        ValueError for what is not here."""
        known = [target.name for target in self.targets]
        own = self.model_copy(update={"files": narrowing.place_files(known, self.files)})
        own.keep_to(narrowing.databases)
        return own

    def keep_to(self, names: Iterable[str]) -> None:
        """Has the databases of these names be all that there are."""
        self._names = frozenset(names)
        self.__dict__.pop("targets", None)

    @property
    def limits(self) -> Limits:
        """What one statement may cost."""
        return Limits(self.timeout, self.busy_timeout, self.max_value)

    @property
    def unasked_rows(self) -> int | None:
        """How many rows may change without asking the user; None where nobody needs to be asked."""
        return rows_unasked(self.confirm, self.confirm_rows)

    @property
    def writes(self) -> bool:
        """Whether any database may be changed."""
        return any(target.writable for target in self.targets)
